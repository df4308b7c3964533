// data plane: pods that came in order of their keys
import { assert } from '@megaplane/base/assert';

/**
 * A ring of entries that are in order already: who comes after the last one is put at the end, and
 * the first is taken, each in O(1). Most pods come so; a heap of a million costs twenty steps.
 *
 *   first, second, third   Float64   keys        ids, stamps   Uint32
 *   at & (length - 1)      where an entry lies; the first is at #begin, the last before #end
 */
const LENGTH_MIN = 256;

export class PodLine {
  #first: Float64Array = new Float64Array(LENGTH_MIN);
  #second: Float64Array = new Float64Array(LENGTH_MIN);
  #third: Float64Array = new Float64Array(LENGTH_MIN);
  #ids: Uint32Array = new Uint32Array(LENGTH_MIN);
  #stamps: Uint32Array = new Uint32Array(LENGTH_MIN);
  #begin = 0;
  #end = 0;

  get size(): number {
    return this.#end - this.#begin;
  }

  /** Puts an entry at the end; false if it belongs before the last one. */
  offer(id: number, stamp: number, first: number, second: number, third: number): boolean {
    if (this.#begin === this.#end) this.#begin = this.#end = 0;
    else if (this.#isBeforeLast(first, second, third)) return false;
    if (this.size === this.#ids.length) this.#grow();
    const at = this.#end++ & (this.#ids.length - 1);
    this.#first[at] = first;
    this.#second[at] = second;
    this.#third[at] = third;
    this.#ids[at] = id;
    this.#stamps[at] = stamp;
    return true;
  }

  /** Of the first entry; the line is not empty. */
  get topId(): number {
    return this.#ids[this.#top]!;
  }

  get topStamp(): number {
    return this.#stamps[this.#top]!;
  }

  get topFirst(): number {
    return this.#first[this.#top]!;
  }

  get topSecond(): number {
    return this.#second[this.#top]!;
  }

  get topThird(): number {
    return this.#third[this.#top]!;
  }

  /** Takes the first entry out. */
  pop(): void {
    assert(this.#begin < this.#end, 'nothing is taken out of an empty line');
    this.#begin++;
  }

  get #top(): number {
    return this.#begin & (this.#ids.length - 1);
  }

  #isBeforeLast(first: number, second: number, third: number): boolean {
    const last = (this.#end - 1) & (this.#ids.length - 1);
    if (first !== this.#first[last]!) return first < this.#first[last]!;
    if (second !== this.#second[last]!) return second < this.#second[last]!;
    return third < this.#third[last]!;
  }

  /** The ring is full: its first entry moves to the start of one twice as long. */
  #grow(): void {
    const top = this.#top;
    assert(this.size === this.#ids.length, 'a line grows when it is full');
    const length = this.#ids.length;
    const longer = <T extends Float64Array | Uint32Array>(grown: T, old: T): T => {
      grown.set(old.subarray(top));
      grown.set(old.subarray(0, top), length - top);
      return grown;
    };
    this.#first = longer(new Float64Array(2 * length), this.#first);
    this.#second = longer(new Float64Array(2 * length), this.#second);
    this.#third = longer(new Float64Array(2 * length), this.#third);
    this.#ids = longer(new Uint32Array(2 * length), this.#ids);
    this.#stamps = longer(new Uint32Array(2 * length), this.#stamps);
    this.#begin = 0;
    this.#end = length;
  }
}
