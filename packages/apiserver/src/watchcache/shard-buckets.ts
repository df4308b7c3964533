/**
 * Watches by the range of hashes that each selects, so that an event is shown to those that hold
 * its hash and to few others, however many there are.
 *
 * The space of hashes is cut into equal buckets; a watch stands in each bucket that its ranges
 * touch. Watches of a large part of the space stand apart and are asked one by one: each of them
 * takes at least every sixteenth event, so what is asked in vain stays in proportion.
 */
import {
  selectsHash,
  type ShardRange,
  type ShardSelector,
} from '@megaplane/machinery/sharding/selector';

const BUCKET_BITS = 10;
const BUCKETS: number = 2 ** BUCKET_BITS;
const SHIFT: number = 32 - BUCKET_BITS;
/** A watch in more buckets than this is wide. */
const BUCKETS_EACH_MAX: number = BUCKETS / 16;

export class ShardBuckets<T> {
  readonly #wide = new Map<T, ShardSelector>();
  readonly #buckets: (Map<T, ShardSelector> | undefined)[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(member: T, selector: ShardSelector): void {
    const bounds = bucketsOf(selector);
    this.#size++;
    if (bounds === null) {
      this.#wide.set(member, selector);
      return;
    }
    for (const bucket of bounds) {
      let found = this.#buckets[bucket];
      if (found === undefined) this.#buckets[bucket] = found = new Map();
      found.set(member, selector);
    }
  }

  delete(member: T, selector: ShardSelector): void {
    const bounds = bucketsOf(selector);
    this.#size--;
    if (bounds === null) this.#wide.delete(member);
    else for (const bucket of bounds) this.#buckets[bucket]?.delete(member);
  }

  /** Adds to `found` who selects the hash. */
  find(high: number, low: number, found: Set<T>): void {
    for (const [member, selector] of this.#wide) {
      if (selectsHash(selector, high, low)) found.add(member);
    }
    const bucket = this.#buckets[high >>> SHIFT];
    if (bucket === undefined) return;
    for (const [member, selector] of bucket) {
      if (selectsHash(selector, high, low)) found.add(member);
    }
  }
}

/** The buckets that the ranges touch, or null where they are too many. */
function bucketsOf({ ranges }: ShardSelector): Set<number> | null {
  const touched = new Set<number>();
  for (const range of ranges) {
    const first = range.startHigh >>> SHIFT;
    const last = lastBucket(range);
    if (last - first >= BUCKETS_EACH_MAX) return null;
    for (let bucket = first; bucket <= last; bucket++) touched.add(bucket);
    if (touched.size > BUCKETS_EACH_MAX) return null;
  }
  return touched;
}

/** The bucket of the last hash before the end; an end of 2^64 has a high half of 2^32. */
function lastBucket({ endHigh, endLow }: ShardRange): number {
  return (endLow === 0 ? endHigh - 1 : endHigh) >>> SHIFT;
}
