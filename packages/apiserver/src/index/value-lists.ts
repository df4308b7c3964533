// data plane
/**
 * Objects by one value that each has: the pods of a node, what carries a label.
 *
 *   value   Uint32Column   id -> number of its value, 0 = none
 *   next    Uint32Column   id -> the next id of the same value, plus one; 0 at the end
 *   prev    Uint32Column   id -> the one before it, plus one; 0 at the start
 *
 * Values are numbered as they come; a number is given back when nothing has its value any more.
 */
import { Uint32Column } from '@megaplane/base/column';
import type { Row } from '../storage.ts';

/** Values that are told apart; a field with more is of no use as an index and is given up. */
export const VALUES_MAX = 250_000;

/** The value of the object in `row`; '' where it has none and needs no place. */
export type ValueOf = (row: Row) => string;

interface Value {
  /** The first id of it, plus one. */
  first: number;
  count: number;
  readonly number: number;
}

export class ValueLists {
  readonly #valueOf: ValueOf;
  /** A value that is there does not change as long as its object lives. */
  readonly #isLasting: boolean;
  readonly #values = new Map<string, Value>();
  readonly #names: (string | null)[] = [null];
  readonly #free: number[] = [];
  readonly #valueAt = new Uint32Column();
  readonly #next = new Uint32Column();
  readonly #prev = new Uint32Column();
  /** More values were met than are told apart: ask for nothing any more. */
  isGivenUp = false;
  /** An object left a list, by losing its value or its life, at this revision last. */
  leftRevision = 0;

  constructor(valueOf: ValueOf, isLasting: boolean) {
    this.#valueOf = valueOf;
    this.#isLasting = isLasting;
  }

  /** Takes in the state of the object `id`; `isNew` where it had none before. */
  set(id: number, row: Row, isNew: boolean, revision: number): void {
    if (this.isGivenUp) return;
    const before = this.#valueAt.get(id);
    if (this.#isLasting && !isNew && before !== 0) return;
    const value = this.#valueOf(row);
    if (before !== 0) {
      if (this.#names[before] === value) return;
      this.#take(id, before);
      this.leftRevision = Math.max(this.leftRevision, revision);
    }
    if (value !== '') this.#put(id, value);
  }

  /** The object is gone. */
  remove(id: number, revision: number): void {
    const before = this.#valueAt.get(id);
    if (before === 0) return;
    this.#take(id, before);
    this.leftRevision = Math.max(this.leftRevision, revision);
  }

  #put(id: number, name: string): void {
    let value = this.#values.get(name);
    if (value === undefined) {
      if (this.#values.size >= VALUES_MAX) {
        this.isGivenUp = true;
        this.#values.clear();
        return;
      }
      const number = this.#free.pop() ?? this.#names.length;
      value = { first: 0, count: 0, number };
      this.#values.set(name, value);
      this.#names[number] = name;
    }
    this.#valueAt.set(id, value.number);
    this.#prev.set(id, 0);
    this.#next.set(id, value.first);
    if (value.first !== 0) this.#prev.set(value.first - 1, id + 1);
    value.first = id + 1;
    value.count++;
  }

  #take(id: number, number: number): void {
    const name = this.#names[number] ?? '';
    const value = this.#values.get(name);
    this.#valueAt.set(id, 0);
    if (value === undefined) return;
    const next = this.#next.get(id);
    const prev = this.#prev.get(id);
    if (next !== 0) this.#prev.set(next - 1, prev);
    if (prev !== 0) this.#next.set(prev - 1, next);
    else value.first = next;
    if (--value.count > 0) return;
    this.#values.delete(name);
    this.#names[number] = null;
    this.#free.push(number);
  }

  /** Objects that have the value. */
  count(name: string): number {
    return this.#values.get(name)?.count ?? 0;
  }

  /** Visits the ids of a value, in no order. */
  each(name: string, visit: (id: number) => void): void {
    let at = this.#values.get(name)?.first ?? 0;
    while (at !== 0) {
      const id = at - 1;
      at = this.#next.get(id);
      visit(id);
    }
  }
}
