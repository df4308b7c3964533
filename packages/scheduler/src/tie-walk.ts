// data plane: one of many that are equally good
import type { Random } from '@megaplane/base/random';

/** Draws between two new starts. */
const STEPS_MAX = 4096;

/**
 * Draws from lists as a walk from a random start, begun anew now and then. Each draw by itself is
 * as likely to meet one as another; but neighbours in a list are mostly neighbours in memory, so
 * that a walk over a million nodes waits for memory a tenth as often as jumps do.
 */
export class TieWalk {
  readonly #random: Random;
  #at = 0;
  #left = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** A whole number from 0 to `end` - 1. */
  below(end: number): number {
    if (end === 1) return 0;
    if (this.#left-- <= 0) {
      this.#left = STEPS_MAX;
      this.#at = this.#random.below(end);
      return this.#at;
    }
    this.#at++;
    if (this.#at >= end) this.#at %= end;
    return this.#at;
  }

  /** The walk goes on from here: what lies before was of no use. */
  moveTo(at: number): void {
    this.#at = at;
  }
}
