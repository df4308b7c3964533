/**
 * Events end by themselves: `--event-ttl`. As upstream does it in etcd, those that are written
 * within
 * a while share a lease, which lives that while longer than the last of them must.
 */
import type { LeaseTable } from '@megaplane/store/contract';

const EVENTS = Buffer.from('/registry/events/');
/** Objects of one lease: all of them end in one step. */
const LEASE_OBJECTS_MAX = 1000;
const REUSE_SECONDS_MAX = 60;
const REUSE_SHARE = 0.05;
const TWO_32 = 4294967296;

/** True for keys of events. */
export function isEventKey(key: Buffer): boolean {
  // most keys differ at this letter already
  if (key.length <= EVENTS.length || key[10] !== EVENTS[10]) return false;
  return EVENTS.compare(key, 0, EVENTS.length) === 0;
}

export class EventLeases {
  readonly #table: LeaseTable;
  readonly #ttlSeconds: number;
  readonly #reuseSeconds: number;
  readonly #nowMs: () => number;
  readonly #below: (n: number) => number;
  #lease = 0;
  #untilMs = 0;
  #objects = 0;

  /** `nowMs` is the clock that the store's `tick` is given. */
  constructor(
    table: LeaseTable,
    ttlSeconds: number,
    nowMs: () => number,
    below: (n: number) => number,
  ) {
    this.#table = table;
    this.#ttlSeconds = ttlSeconds;
    this.#reuseSeconds = Math.min(REUSE_SECONDS_MAX, Math.ceil(ttlSeconds * REUSE_SHARE));
    this.#nowMs = nowMs;
    this.#below = below;
  }

  /** Number of the lease for one more event; 0 where none could be made: it stays then. */
  take(): number {
    const nowMs = this.#nowMs();
    if (this.#lease === 0 || nowMs >= this.#untilMs || this.#objects >= LEASE_OBJECTS_MAX) {
      this.#lease = this.#grant(nowMs);
      this.#untilMs = nowMs + this.#reuseSeconds * 1000;
      this.#objects = 0;
    }
    this.#objects++;
    return this.#lease;
  }

  #grant(nowMs: number): number {
    const seconds = this.#ttlSeconds + this.#reuseSeconds;
    const high = this.#below(TWO_32 / 2 - 1) + 1;
    const lease = this.#table.grant(high, this.#below(TWO_32 - 1) + 1, seconds, nowMs);
    return Math.max(0, lease);
  }
}
