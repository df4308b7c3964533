// data plane
/**
 * Objects by one value that each has: the pods of a node, what carries a label.
 *
 *   values  KeyTable       value -> its number
 *   first   Uint32Column   number -> the first id that has the value, plus one
 *   count   Uint32Column   number -> how many have it
 *   value   Uint32Column   id -> number of its value, plus one; 0 = none
 *   next    Uint32Column   id -> the next id of the same value, plus one; 0 at the end
 *   prev    Uint32Column   id -> the one before it, plus one; 0 at the start
 *
 * A value's number is given back when nothing has the value any more.
 */
import { Uint32Column } from '@megaplane/base/column';
import { KeyTable } from '@megaplane/base/keytable';
import type { Random } from '@megaplane/base/random';
import type { TextRange } from '@megaplane/machinery/selectors-bytes';
import type { Row } from '../storage/storage.ts';

/** Bytes of the values that are told apart; a field with more is given up. */
export const VALUES_BYTES_MAX: number = 256 * 1024 * 1024;

/** Finds the value of the object in `row`; an empty one where it has none and needs no place. */
export type FindValue = (row: Row, found: TextRange) => void;

const found: TextRange = { bytes: Buffer.alloc(0), start: 0, end: 0 };

export class ValueLists {
  readonly #find: FindValue;
  /** A value that is there does not change as long as its object lives. */
  readonly #isLasting: boolean;
  readonly #random: Random;
  #values: KeyTable;
  readonly #first = new Uint32Column();
  readonly #count = new Uint32Column();
  readonly #valueAt = new Uint32Column();
  readonly #next = new Uint32Column();
  readonly #prev = new Uint32Column();
  /** More values were met than are told apart: ask for nothing any more. */
  isGivenUp = false;
  /** An object left a list, by losing its value or its life, at this revision last. */
  leftRevision = 0;

  constructor(
    find: FindValue,
    isLasting: boolean,
    random: Random,
    bytesMax: number = VALUES_BYTES_MAX,
  ) {
    this.#find = find;
    this.#isLasting = isLasting;
    this.#random = random;
    this.#values = new KeyTable({ random, keyBytesMax: bytesMax });
  }

  /** Takes in the state of the object `id`; `isNew` where it had none before. */
  set(id: number, row: Row, isNew: boolean, revision: number): void {
    if (this.isGivenUp) return;
    const before = this.#valueAt.get(id);
    if (this.#isLasting && !isNew && before !== 0) return;
    this.#find(row, found);
    const { bytes, start, end } = found;
    if (before !== 0) {
      if (this.#values.compareKey(before - 1, bytes, start, end) === 0) return;
      this.#take(id, before - 1);
      this.leftRevision = Math.max(this.leftRevision, revision);
    }
    if (end > start) this.#put(id, this.#values.insert(bytes, start, end));
  }

  /** The object is gone. */
  remove(id: number, revision: number): void {
    const before = this.#valueAt.get(id);
    if (before === 0 || this.isGivenUp) return;
    this.#take(id, before - 1);
    this.leftRevision = Math.max(this.leftRevision, revision);
  }

  #put(id: number, value: number): void {
    if (value < 0) {
      this.isGivenUp = true;
      this.#values = new KeyTable({ random: this.#random });
      return;
    }
    const first = this.#first.get(value);
    this.#valueAt.set(id, value + 1);
    this.#prev.set(id, 0);
    this.#next.set(id, first);
    if (first !== 0) this.#prev.set(first - 1, id + 1);
    this.#first.set(value, id + 1);
    this.#count.add(value, 1);
  }

  #take(id: number, value: number): void {
    this.#valueAt.set(id, 0);
    const next = this.#next.get(id);
    const prev = this.#prev.get(id);
    if (next !== 0) this.#prev.set(next - 1, prev);
    if (prev !== 0) this.#next.set(prev - 1, next);
    else this.#first.set(value, next);
    if (this.#count.add(value, -1) === 0) this.#values.remove(value);
  }

  #numberOf(name: string): number {
    const bytes = Buffer.from(name);
    return this.#values.find(bytes, 0, bytes.length);
  }

  /** Objects that have the value. */
  count(name: string): number {
    const value = this.#numberOf(name);
    return value < 0 ? 0 : this.#count.get(value);
  }

  /** Visits the ids of a value, in no order. */
  each(name: string, visit: (id: number) => void): void {
    const value = this.#numberOf(name);
    let at = value < 0 ? 0 : this.#first.get(value);
    while (at !== 0) {
      const id = at - 1;
      at = this.#next.get(id);
      visit(id);
    }
  }
}
