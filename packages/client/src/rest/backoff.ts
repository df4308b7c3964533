/** Growing pauses between tries. */

export interface BackoffOptions {
  readonly baseMs: number;
  readonly capMs: number;
  /** Share of the pause that is added at random, 0..1 and more. */
  readonly jitter: number;
  /** After so long without a failure the pauses begin anew. */
  readonly resetMs: number;
}

/**
 * Doubling pauses with jitter, so that many clients of one failed server do not come back at once.
 */
export class Backoff {
  readonly #options: BackoffOptions;
  readonly #random: () => number;
  #pauseMs: number;
  #lastMs = -Infinity;

  constructor(options: BackoffOptions, random: () => number) {
    this.#options = options;
    this.#random = random;
    this.#pauseMs = options.baseMs;
  }

  /** How long to wait after a failure at `nowMs`. */
  next(nowMs: number): number {
    const { baseMs, capMs, jitter, resetMs } = this.#options;
    if (nowMs - this.#lastMs > resetMs) this.#pauseMs = baseMs;
    this.#lastMs = nowMs;
    const pauseMs = this.#pauseMs;
    this.#pauseMs = Math.min(capMs, 2 * pauseMs);
    return pauseMs * (1 + jitter * this.#random());
  }

  reset(): void {
    this.#pauseMs = this.#options.baseMs;
  }
}
