// data plane: times and sizes of calls, with the names and bounds of etcd's metrics
import { BoundedHistogram } from '@megaplane/base/histogram';

/** Operations that change something, as etcd labels what it applies. */
export const APPLIED = [
  'Put',
  'DeleteRange',
  'Txn',
  'LeaseGrant',
  'LeaseRevoke',
  'Compaction',
] as const;
export const APPLIED_PUT = 0;
export const APPLIED_DELETE = 1;
export const APPLIED_TXN = 2;
export const APPLIED_GRANT = 3;
export const APPLIED_REVOKE = 4;
export const APPLIED_COMPACTION = 5;

/** One call in so many is timed, a power of two: the clock would be a fiftieth of a put. */
const TIMED_EVERY = 8;
/** Of a call that is not timed. */
const UNTIMED = -1;

/** Seconds of one kind of call; one that is timed counts also for those before it that are not. */
export class CallTimes {
  readonly #done: BoundedHistogram = new BoundedHistogram(doubled(0.0001, 20));
  readonly failed: BoundedHistogram = new BoundedHistogram(doubled(0.0001, 20));
  readonly #nowMs: () => number;
  #calls = 0;
  #untimed = 0;
  #lastSeconds = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** What `end` is to be given. */
  begin(): number {
    return (this.#calls++ & (TIMED_EVERY - 1)) === 0 ? this.#nowMs() : UNTIMED;
  }

  /** Failures are those that depend on what the store holds; they take no time. */
  end(startMs: number, isDone: boolean): void {
    if (!isDone) this.failed.record(startMs === UNTIMED ? 0 : (this.#nowMs() - startMs) / 1000);
    else if (startMs === UNTIMED) this.#untimed++;
    else {
      this.#lastSeconds = (this.#nowMs() - startMs) / 1000;
      this.#done.record(this.#lastSeconds, 1 + this.#untimed);
      this.#untimed = 0;
    }
  }

  /** All of them, those since the last timed one as fast as that. */
  get done(): BoundedHistogram {
    this.#done.record(this.#lastSeconds, this.#untimed);
    this.#untimed = 0;
    return this.#done;
  }
}

export class CallMeasures {
  /** Seconds to live of the leases granted. */
  readonly leaseTtls: BoundedHistogram = new BoundedHistogram(doubled(1, 24));
  /** Seconds that hashes took: of everything, and of a revision. */
  readonly hashes: BoundedHistogram = new BoundedHistogram(doubled(0.01, 15));
  readonly revisionHashes: BoundedHistogram = new BoundedHistogram(doubled(0.01, 15));
  readonly defragments: BoundedHistogram = new BoundedHistogram(doubled(0.1, 13));
  /** Defragmentations under way. */
  defragmenting = 0;
  /** By operation of `APPLIED`. */
  readonly applied: readonly CallTimes[];
  readonly ranges: CallTimes;

  constructor(nowMs: () => number) {
    this.applied = APPLIED.map(() => new CallTimes(nowMs));
    this.ranges = new CallTimes(nowMs);
  }
}

/** Bounds from a first one on, each twice the one before. */
export function doubled(first: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, n) => Number((first * 2 ** n).toFixed(4)));
}
