/**
 * Leases for objects that end by themselves (events, what servers tell of each other). As upstream
 * does it, objects that are written within a while share one lease, which lives that while longer
 * than the last of them must.
 */
import type { LeaseId } from '@megaplane/etcd/client/messages';

/** Objects of one lease; etcd ends them all at once. */
const LEASE_OBJECTS_MAX = 1000;
const REUSE_SECONDS_MAX = 60;
/** A share of the time to live, for short ones. */
const REUSE_SHARE = 0.05;

interface Current {
  readonly id: LeaseId;
  readonly untilMs: number;
  objects: number;
}

export class LeasePool {
  readonly ttlSeconds: number;
  readonly #reuseSeconds: number;
  #current: Current | null = null;

  constructor(ttlSeconds: number) {
    this.ttlSeconds = ttlSeconds;
    this.#reuseSeconds = Math.min(REUSE_SECONDS_MAX, Math.floor(ttlSeconds * REUSE_SHARE));
  }

  /** What to grant when `take` gives null. */
  get grantSeconds(): number {
    return this.ttlSeconds + this.#reuseSeconds;
  }

  /** A lease for one more object, or null: grant one and call `add`. */
  take(nowMs: number): LeaseId | null {
    const current = this.#current;
    if (current === null || nowMs >= current.untilMs) return null;
    if (current.objects >= LEASE_OBJECTS_MAX) return null;
    current.objects++;
    return current.id;
  }

  add(id: LeaseId, nowMs: number): void {
    this.#current = { id, untilMs: nowMs + this.#reuseSeconds * 1000, objects: 0 };
  }

  /** The lease is not there any more: do not give it out again. */
  drop(): void {
    this.#current = null;
  }
}
