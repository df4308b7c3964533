// data plane: a heap of pods under three keys
import { assert } from '@megaplane/base/assert';
import { PodLine } from './pod-line.ts';

/**
 * The least entry first, by `first`, then `second`, then `third`, then in order of arrival. What
 * has become of an entry meanwhile is not the heap's business: whoever takes one out compares its
 * stamp with the pod's.
 *
 * Who comes in order stands in a line, and only who pushes in is in the heap. So all entries of the
 * heap are less than the last of the line (when that is taken the heap is empty), and of equal
 * ones those of the line came first.
 */
const LENGTH_MIN = 256;

export class PodHeap {
  #first: Float64Array = new Float64Array(LENGTH_MIN);
  #second: Float64Array = new Float64Array(LENGTH_MIN);
  #third: Float64Array = new Float64Array(LENGTH_MIN);
  #arrival: Float64Array = new Float64Array(LENGTH_MIN);
  #ids: Uint32Array = new Uint32Array(LENGTH_MIN);
  #stamps: Uint32Array = new Uint32Array(LENGTH_MIN);
  #arrivals = 0;
  #heaped = 0;
  readonly #line = new PodLine();

  get size(): number {
    return this.#line.size + this.#heaped;
  }

  push(id: number, stamp: number, first: number, second: number, third: number): void {
    if (this.#line.offer(id, stamp, first, second, third)) return;
    if (this.#heaped === this.#ids.length) this.#grow();
    const arrival = this.#arrivals++;
    let at = this.#heaped++;
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      if (!this.#isLess(first, second, third, arrival, parent)) break;
      this.#move(parent, at);
      at = parent;
    }
    this.#put(at, id, stamp, first, second, third, arrival);
  }

  /** Of the least entry; the heap is not empty. */
  get topId(): number {
    return this.#isHeapNext ? this.#ids[0]! : this.#line.topId;
  }

  get topStamp(): number {
    return this.#isHeapNext ? this.#stamps[0]! : this.#line.topStamp;
  }

  get topFirst(): number {
    return this.#isHeapNext ? this.#first[0]! : this.#line.topFirst;
  }

  /** Takes the least entry out. */
  pop(): void {
    assert(this.size > 0, 'nothing is taken out of an empty heap');
    if (this.#isHeapNext) this.#popHeap();
    else this.#line.pop();
  }

  get #isHeapNext(): boolean {
    if (this.#heaped === 0) return false;
    const line = this.#line;
    if (this.#first[0]! !== line.topFirst) return this.#first[0]! < line.topFirst;
    if (this.#second[0]! !== line.topSecond) return this.#second[0]! < line.topSecond;
    return this.#third[0]! < line.topThird;
  }

  #popHeap(): void {
    const last = --this.#heaped;
    if (last === 0) return;
    const id = this.#ids[last]!;
    const stamp = this.#stamps[last]!;
    const first = this.#first[last]!;
    const second = this.#second[last]!;
    const third = this.#third[last]!;
    const arrival = this.#arrival[last]!;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= last) break;
      if (child + 1 < last && this.#isBefore(child + 1, child)) child++;
      if (this.#isLess(first, second, third, arrival, child)) break;
      this.#move(child, at);
      at = child;
    }
    this.#put(at, id, stamp, first, second, third, arrival);
  }

  #isBefore(left: number, right: number): boolean {
    return this.#isLess(
      this.#first[left]!,
      this.#second[left]!,
      this.#third[left]!,
      this.#arrival[left]!,
      right,
    );
  }

  #isLess(first: number, second: number, third: number, arrival: number, at: number): boolean {
    if (first !== this.#first[at]!) return first < this.#first[at]!;
    if (second !== this.#second[at]!) return second < this.#second[at]!;
    if (third !== this.#third[at]!) return third < this.#third[at]!;
    return arrival < this.#arrival[at]!;
  }

  #move(from: number, to: number): void {
    this.#ids[to] = this.#ids[from]!;
    this.#stamps[to] = this.#stamps[from]!;
    this.#first[to] = this.#first[from]!;
    this.#second[to] = this.#second[from]!;
    this.#third[to] = this.#third[from]!;
    this.#arrival[to] = this.#arrival[from]!;
  }

  #put(
    at: number,
    id: number,
    stamp: number,
    first: number,
    second: number,
    third: number,
    arrival: number,
  ): void {
    this.#ids[at] = id;
    this.#stamps[at] = stamp;
    this.#first[at] = first;
    this.#second[at] = second;
    this.#third[at] = third;
    this.#arrival[at] = arrival;
  }

  #grow(): void {
    const length = 2 * this.#ids.length;
    const longer = (old: Float64Array): Float64Array => {
      const grown = new Float64Array(length);
      grown.set(old);
      return grown;
    };
    this.#first = longer(this.#first);
    this.#second = longer(this.#second);
    this.#third = longer(this.#third);
    this.#arrival = longer(this.#arrival);
    const ids = new Uint32Array(length);
    ids.set(this.#ids);
    this.#ids = ids;
    const stamps = new Uint32Array(length);
    stamps.set(this.#stamps);
    this.#stamps = stamps;
  }
}
