/**
 * After a pause of the process (SIGSTOP, a suspended laptop) leases are due whose renewals wait in
 * the sockets, and a timer may come before these are read. So nothing is ended for some looks after
 * one that was late: what waits is read between looks. A process that is late all the time goes on
 * ending leases, only less often.
 */

/** A look so long after the one before it was held up: they come ten times a second. */
const STALL_MS = 1000;
/** How long nothing is ended then, and for how many looks at least. */
const HOLD_MS = 1000;
const HOLD_LOOKS = 3;

export class Stalls {
  #lookedMs: number;
  #holdUntilMs = -Infinity;
  #looksLeft = 0;
  /** The hold was given one look more, which happens once. */
  #isExtended = false;

  /** A pause may come before the first look, too: `nowMs` is when there was none yet. */
  constructor(nowMs: number) {
    this.#lookedMs = nowMs;
  }

  /** One look at the clock: may leases be ended now? */
  look(nowMs: number): boolean {
    const isLate = nowMs - this.#lookedMs > STALL_MS;
    this.#lookedMs = nowMs;
    if (this.#looksLeft > 0) {
      this.#looksLeft--;
      // the pause came within the hold of a stall before: what waits is read before the next look
      if (isLate && this.#looksLeft === 0 && !this.#isExtended) {
        this.#isExtended = true;
        this.#looksLeft = 1;
      }
    } else if (isLate && nowMs >= this.#holdUntilMs) {
      this.#holdUntilMs = nowMs + HOLD_MS;
      this.#looksLeft = HOLD_LOOKS;
      this.#isExtended = false;
      return false;
    }
    return this.#looksLeft === 0 && nowMs >= this.#holdUntilMs;
  }
}
