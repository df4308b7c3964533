/**
 * Moderation of turns, as network cards moderate interrupts. Each turn of the event loop that
 * writes costs a write of the log and one to each socket that is answered. Clients that keep few
 * requests in flight and are slower than the store wake it for one or two at a time, and then most
 * of its time goes to that. Where turns come close together and bring little, a short pause behind
 * the answers of one lets the next bring more: the same requests take less processor time, and the
 * clients get to it sooner.
 *
 * Who writes one at a time, alone, is never made to wait: turns bring one write each then.
 */

/** A pause; what a request waits longer at most. */
export const PAUSE_MS = 0.2;
/** Fewer on average, and there are not several at work. */
const MEAN_WRITES_MIN = 2;
/** With more a turn is worth its costs. */
const WRITES_MAX = 4;
/** Turns that are further apart have other work, or none. */
const APART_MS_MAX = 1;
/** Turns that the average goes back, about. */
const TURNS = 16;

export class Moderation {
  #mean = 0;
  #lastMs = -Infinity;

  /** Whether a pause is due behind a turn that made `writes`, at `nowMs` of a monotonic clock. */
  isDue(writes: number, nowMs: number): boolean {
    const isClose = nowMs - this.#lastMs < APART_MS_MAX;
    this.#lastMs = nowMs;
    this.#mean += (writes - this.#mean) / TURNS;
    return isClose && writes <= WRITES_MAX && this.#mean >= MEAN_WRITES_MIN;
  }
}
