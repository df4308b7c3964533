// data plane: whom the watchers of a store belong to
/**
 * A stream has many watches and a million watches need not name it by a million pointers: each
 * names the number of its owner, which is kept while any of them is open.
 */
import { assertWhole } from '@megaplane/base/assert';
import type { Watcher } from '../contract.ts';

export class WatchOwners {
  readonly #numbers: Map<Watcher, number> = new Map();
  readonly #owners: (Watcher | null)[] = [];
  readonly #counts: number[] = [];
  readonly #free: number[] = [];

  /** The number of an owner that has one watch more. */
  hold(owner: Watcher): number {
    const known = this.#numbers.get(owner);
    if (known !== undefined) {
      this.#counts[known]!++;
      return known;
    }
    const number = this.#free.length > 0 ? this.#free.pop()! : this.#owners.length;
    this.#owners[number] = owner;
    this.#counts[number] = 1;
    this.#numbers.set(owner, number);
    return number;
  }

  /** One watch less. */
  release(number: number): void {
    assertWhole(this.#counts[number]! > 0, 'an owner is let go as often as it was held');
    this.#counts[number]!--;
    if (this.#counts[number] !== 0) return;
    this.#numbers.delete(this.#owners[number]!);
    this.#owners[number] = null;
    this.#free.push(number);
    const numbers = this.#numbers.size + this.#free.length;
    assertWhole(numbers === this.#owners.length, 'a number is of one owner, or free');
  }

  get(number: number): Watcher {
    return this.#owners[number]!;
  }
}
