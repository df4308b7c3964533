// data plane: one of many that are equally good
import type { Random } from '@megaplane/base/random';

/**
 * Which of equally good nodes is taken: one by chance, the next of their list, or the one that
 * kube-scheduler's heap would give, which takes full evaluation to know.
 */
export type Tie = 'random' | 'rotate' | 'upstream';

/** Draws between two new starts. */
const STEPS_MAX = 4096;

/**
 * Draws from lists as a walk from a random start, begun anew now and then. Each draw by itself is
 * as likely to meet one as another; but neighbours in a list are mostly neighbours in memory, so
 * that a walk over a million nodes waits for memory a tenth as often as jumps do.
 */
export class TieWalk {
  readonly #random: Random;
  readonly #tie: Tie;
  #at = 0;
  #left: number;

  constructor(random: Random, tie: Tie = 'random') {
    this.#random = random;
    this.#tie = tie;
    this.#left = tie === 'rotate' ? Infinity : 0;
  }

  /** One of the best of a full evaluation; `chosen` is upstream's. */
  pick({ best, chosen }: { readonly best: readonly string[]; readonly chosen: string }): string {
    if (this.#tie === 'upstream') return chosen;
    const number =
      this.#tie === 'rotate' ? this.below(best.length) : this.#random.below(best.length);
    return best[number] ?? '';
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
