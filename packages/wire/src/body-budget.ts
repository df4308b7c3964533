/**
 * Octets that unfinished request bodies of all connections of a listener hold together. Each
 * connection has a bound of its own, but a peer may have many, and nobody knows yet who it is.
 */
import { assert } from '@megaplane/base/assert';

export class BodyBudget {
  readonly #bytesMax: number;
  #used = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get used(): number {
    return this.#used;
  }

  /** False: there is no room, and nothing was taken. */
  take(bytes: number): boolean {
    if (this.#used + bytes > this.#bytesMax) return false;
    this.#used += bytes;
    return true;
  }

  give(bytes: number): void {
    assert(bytes <= this.#used, 'more is given back than was taken');
    this.#used -= bytes;
  }
}
