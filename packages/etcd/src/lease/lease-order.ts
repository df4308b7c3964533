// data plane: leases in an order, found in slices
/**
 * Sorts by digits of 16 bits, the lowest first: every pass is a walk that can stop anywhere, which
 * no other sort of a million is.
 */
import { assert } from '@megaplane/base/assert';
import type { LeaseRows } from '@megaplane/store/lease-rows';

const DIGIT_BITS = 16;
const DIGIT_VALUES: number = 1 << DIGIT_BITS;
/** A tenth of a millisecond, or half of one where memory is cold. */
const STEP_ROWS = 4096;
/** Leases up to which all of it takes a millisecond. */
export const LEASES_AT_ONCE_MAX = 4096;

type Phase = 'gather' | 'count' | 'place';

export abstract class LeaseOrder {
  protected readonly rows: LeaseRows;
  readonly #digits: number;
  /** Lease numbers, in order once all digits are done, and where the next pass puts them. */
  #order: Uint32Array;
  #next: Uint32Array;
  /** Of a digit: how often each value is there, then where the next row with it goes. */
  readonly #places = new Uint32Array(DIGIT_VALUES);
  #phase: Phase = 'gather';
  #digit = 0;
  #at = 1;
  #count = 0;

  constructor(rows: LeaseRows, digits: number) {
    this.rows = rows;
    this.#digits = digits;
    this.#order = new Uint32Array(rows.count);
    this.#next = new Uint32Array(rows.count);
  }

  /** Called once for each lease, before its digits are asked for. */
  protected abstract gather(lease: number): void;

  /** Digit 0 is the lowest; the same whenever it is asked for. */
  protected abstract digitOf(lease: number, digit: number): number;

  get count(): number {
    return this.rows.count;
  }

  /** The lease at a place, once all are in order. */
  at(index: number): number {
    return this.#order[index]!;
  }

  /** One slice of work; true when all leases are in order. */
  step(): boolean {
    if (this.count === 0 || this.#digit === this.#digits) return true;
    const end = this.#phase === 'gather' ? this.rows.end : this.count;
    const to = Math.min(end, this.#at + STEP_ROWS);
    if (this.#phase === 'gather') this.#gather(to);
    else if (this.#phase === 'count') this.#countValues(to);
    else this.#place(to);
    this.#at = to;
    if (to === end) this.#endPhase();
    return this.#digit === this.#digits;
  }

  #gather(to: number): void {
    for (let lease = this.#at; lease < to; lease++) {
      if (!this.rows.isUsed(lease)) continue;
      this.gather(lease);
      this.#order[this.#count++] = lease;
    }
  }

  #countValues(to: number): void {
    for (let i = this.#at; i < to; i++) this.#places[this.digitOf(this.#order[i]!, this.#digit)]!++;
  }

  #place(to: number): void {
    for (let i = this.#at; i < to; i++) {
      const lease = this.#order[i]!;
      this.#next[this.#places[this.digitOf(lease, this.#digit)]!++] = lease;
    }
  }

  #endPhase(): void {
    this.#at = 0;
    if (this.#phase === 'gather') this.#phase = 'count';
    else if (this.#phase === 'count') {
      this.#phase = 'place';
      assert(this.#count === this.count, 'each lease is in the order once');
      let sum = 0;
      for (let value = 0; value < DIGIT_VALUES; value++) {
        const found = this.#places[value]!;
        this.#places[value] = sum;
        sum += found;
      }
      assert(sum === this.count, 'each lease has a digit');
    } else {
      [this.#order, this.#next] = [this.#next, this.#order];
      this.#places.fill(0);
      this.#phase = 'count';
      this.#digit++;
    }
  }
}
