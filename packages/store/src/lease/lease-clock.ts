/**
 * What is left of leases after a restart, by the time that went by while the store was up.
 *
 * The log tells a lease in one of two ways: whole (granted, or renewed after a checkpoint: later
 * renewals are not logged, so it begins anew), or as a checkpoint (so much was left then: a renewal
 * after it is logged, so it goes on from there). Frames carry a clock that no
 * setting of the machine's moves while a process runs; the sum of the
 * differences between them, without those across a restart, is the time that counts. Nobody could
 * renew a lease while the store was down.
 */
import type { Leases } from './lease-table.ts';

export class LeaseClock {
  /** Time up so far, and the latest wall clock seen. */
  #upMs = 0;
  #wallMs = -1;
  /** Lease number to the time up at its checkpoint. */
  readonly #checkpoints: Map<number, number> = new Map();

  /** The latest time that any frame told, 0 without one. */
  get wallMs(): number {
    return Math.max(0, this.#wallMs);
  }

  /** A frame of that wall clock comes; `isStart` when it is the first one of a process. */
  frame(wallMs: number, isStart: boolean): void {
    // A snapshot is newer than what follows.
    if (this.#wallMs >= 0 && !isStart) this.#upMs += Math.max(0, wallMs - this.#wallMs);
    this.#wallMs = Math.max(this.#wallMs, wallMs);
  }

  checkpoint(lease: number): void {
    this.#checkpoints.set(lease, this.#upMs);
  }

  /** The lease was told whole, or ended. */
  forget(lease: number): void {
    this.#checkpoints.delete(lease);
  }

  /** All is read: takes off what went by since the checkpoints. */
  settle(leases: Leases): void {
    for (const [lease, loggedMs] of this.#checkpoints) {
      leases.bringForward(lease, this.#upMs - loggedMs);
    }
  }
}
