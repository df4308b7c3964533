// data plane: slots in an order, brought up to date when somebody looks
//
// What changed is told as it changes; the order is made anew by one pass over what is there and
// one search for each slot that came. A look without changes costs nothing.
import { doubled } from './interned.ts';

export class SortedSlots {
  items: Int32Array<ArrayBuffer> = new Int32Array(4);
  #count = 0;
  #touched: number[] = [];
  readonly #belongs: (slot: number) => boolean;
  readonly #compare: (left: number, right: number) => number;

  readonly #marks: () => Uint8Array;

  /**
   * `compare` never answers 0 for two slots that belong. `marks` has a byte for each slot, zero
   * whenever no list is at work.
   */
  constructor(
    marks: () => Uint8Array,
    belongs: (slot: number) => boolean,
    compare: (left: number, right: number) => number,
  ) {
    this.#marks = marks;
    this.#belongs = belongs;
    this.#compare = compare;
  }

  /** A slot comes, goes, or changes its place. */
  touch(slot: number): void {
    this.#touched.push(slot);
  }

  /** How many there are now; `items` is in order up to it. */
  refresh(): number {
    if (this.#touched.length > 0) this.#merge();
    return this.#count;
  }

  #merge(): void {
    const marks = this.#marks();
    for (const slot of this.#touched) marks[slot] = 1;
    let kept = 0;
    for (let at = 0; at < this.#count; at++) {
      const slot = this.items[at]!;
      if (marks[slot] === 0) this.items[kept++] = slot;
    }
    const come: number[] = [];
    for (const slot of this.#touched) {
      if (marks[slot] === 1 && this.#belongs(slot)) come.push(slot);
      marks[slot] = 0;
    }
    this.#touched = [];
    come.sort(this.#compare);
    const total = kept + come.length;
    while (this.items.length < total) this.items = doubled(this.items);
    // from the end, so that each slot moves once
    let from = kept;
    let to = total;
    for (let next = come.length - 1; next >= 0; next--) {
      const slot = come[next]!;
      const place = this.#placeOf(slot, from);
      to -= from - place;
      this.items.copyWithin(to, place, from);
      from = place;
      this.items[--to] = slot;
    }
    this.#count = total;
  }

  /** How many of the first `end` come before `slot`. */
  #placeOf(slot: number, end: number): number {
    let low = 0;
    let high = end;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#compare(this.items[middle]!, slot) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
