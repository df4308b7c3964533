/**
 * Gives equal things one number, counts who uses it, and reuses the numbers of things that nobody
 * uses any more. Whoever remembers something by number must forget it when `epoch` changes.
 *
 * Caches hold numbers too, without using them: what only caches hold stays, and `isUsed` tells a
 * cache what it should let go.
 */
import { assert } from '@megaplane/base/assert';

interface Entry<T> {
  readonly key: string;
  readonly value: T;
  users: number;
  holders: number;
}

export class Interner<T> {
  readonly #ids = new Map<string, number>();
  readonly #entries: (Entry<T> | undefined)[] = [];
  readonly #free: number[] = [];
  readonly #onFree: (value: T) => void;
  #epoch = 0;

  /** `onFree` is called with what nobody uses any more. */
  constructor(onFree: (value: T) => void = () => {}) {
    this.#onFree = onFree;
  }

  /** Changes before a number gets a new meaning. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Things in use. */
  get size(): number {
    return this.#ids.size;
  }

  /** All numbers are below this. */
  get idEnd(): number {
    return this.#entries.length;
  }

  /** The number of what `key` stands for, with one more user; `make` is called for a new one. */
  acquire(key: string, make: () => T): number {
    const known = this.#ids.get(key);
    if (known !== undefined) {
      const entry = this.#entries[known];
      assert(entry?.key === key, 'a number in use stands for its key');
      entry.users++;
      return known;
    }
    const id = this.#free.pop() ?? this.#entries.length;
    this.#entries[id] = { key, value: make(), users: 1, holders: 0 };
    this.#ids.set(key, id);
    return id;
  }

  /** One more user of a number in use. */
  retain(id: number): void {
    const entry = this.#entries[id];
    if (entry !== undefined) entry.users++;
  }

  /** One user less; without users and holders the number goes. */
  release(id: number): void {
    const entry = this.#entries[id];
    if (entry === undefined) return;
    assert(entry.users > 0, 'a number is released as often as it was acquired');
    entry.users--;
    this.#letGo(id, entry);
  }

  /** A cache holds a number in use. */
  hold(id: number): void {
    const entry = this.#entries[id];
    if (entry !== undefined) entry.holders++;
  }

  /** A cache holds it no more. */
  unhold(id: number): void {
    const entry = this.#entries[id];
    if (entry === undefined) return;
    assert(entry.holders > 0, 'a number is let go as often as it was held');
    entry.holders--;
    this.#letGo(id, entry);
  }

  /** Whether anybody but caches has the number. */
  isUsed(id: number): boolean {
    return (this.#entries[id]?.users ?? 0) > 0;
  }

  #letGo(id: number, { key, value, users, holders }: Entry<T>): void {
    if (users > 0 || holders > 0) return;
    this.#entries[id] = undefined;
    this.#ids.delete(key);
    this.#free.push(id);
    const numbers = this.#ids.size + this.#free.length;
    assert(numbers === this.#entries.length, 'a number is in use, or free');
    // Now and not when it is given again: what a cache lets go at once changes the epoch at once.
    this.#epoch++;
    this.#onFree(value);
  }

  /** What a number in use stands for. */
  get(id: number): T {
    const entry = this.#entries[id];
    if (entry === undefined) throw new Error(`number ${id} is not in use`);
    return entry.value;
  }
}
