// data plane: from an event's key to the watched ranges that hold it
/**
 * Watched ranges, each held once however many watchers it has. A single key and a prefix are
 * found by hash, so an event costs nothing for ranges that it does not touch: one look-up among
 * the keys, and one per length of watched prefix at which its key could be cut (nearly always
 * after a slash). Ranges that are neither are found by their bounds.
 */
import { KEY_BYTES_MAX, KeyTable } from '@megaplane/base/keytable';
import { Random } from '@megaplane/base/random';

const SLASH = 0x2f;
export const RANGE_KEY = 1;
export const RANGE_PREFIX = 2;
export const RANGE_OTHER = 3;

const EMPTY = Buffer.alloc(0);
const ZERO = Buffer.from([0]);
/** As a range_end: of all keys from the first one on. */
const FROM_KEY = ZERO;
/** Of more other ranges no gaps are made: it takes the square of their number. */
const GAPS_OF_MAX = 64;

interface Bounds {
  readonly start: Buffer;
  readonly end: Buffer;
}

/** All keys between two neighbouring bounds are in the same ranges: `ranges[i]` before bound i. */
interface Gaps {
  readonly bounds: readonly Buffer[];
  readonly ranges: readonly (readonly number[])[];
}

/** Keys of ranges, outside the heap so that an idle range is no object. */
class RangeKeys {
  readonly #table = new KeyTable({ random: new Random(0x5bd1e995) });
  /** Range number by id. */
  #ranges = new Uint32Array(64);

  get size(): number {
    return this.#table.size;
  }

  find(bytes: Uint8Array, at: number, to: number): number {
    if (this.#table.size === 0) return 0;
    const id = this.#table.find(bytes, at, to);
    return id < 0 ? 0 : this.#ranges[id]!;
  }

  add(bytes: Uint8Array, at: number, to: number, range: number): number {
    const id = this.#table.insert(bytes, at, to);
    if (id >= this.#ranges.length) this.#ranges = grown(this.#ranges, id);
    this.#ranges[id] = range;
    return id;
  }

  key(id: number): Buffer {
    const at = this.#table.keyStart(id);
    return this.#table.keyBytes(id).subarray(at, at + this.#table.keyLength(id));
  }

  remove(id: number): void {
    this.#table.remove(id);
  }
}

export class WatchRanges {
  readonly #keys = new RangeKeys();
  readonly #prefixes = new RangeKeys();
  /** How many watched prefixes have this length, and how many of them do not end in a slash. */
  readonly #lengths: number[] = [];
  readonly #oddLengths: number[] = [];
  #prefixCount = 0;
  readonly #others: Map<number, Bounds> = new Map();
  /** Of the other ranges; null: to be made anew. */
  #gaps: Gaps | null = null;
  #kinds = new Uint8Array(64);
  #keyIds = new Uint32Array(64);
  readonly #free: number[] = [];
  #end = 1;

  /** Ranges now watched. */
  get size(): number {
    return this.#keys.size + this.#prefixCount + this.#others.size;
  }

  kind(range: number): number {
    return this.#kinds[range]!;
  }

  /** The number of a range, new or shared. */
  open(bytes: Uint8Array, at: number, to: number, endAt: number, endTo: number): number {
    const isKey = endAt === endTo;
    const isPrefix = !isKey && isPrefixRange(bytes, at, to, endAt, endTo);
    if ((!isKey && !isPrefix) || to - at > KEY_BYTES_MAX) {
      return this.#openOther(bytes, at, to, endAt, endTo);
    }
    const table = isKey ? this.#keys : this.#prefixes;
    const known = table.find(bytes, at, to);
    if (known !== 0) return known;
    const range = this.#newRange(isKey ? RANGE_KEY : RANGE_PREFIX);
    this.#keyIds[range] = table.add(bytes, at, to, range);
    if (isPrefix) this.#count(bytes, at, to, 1);
    return range;
  }

  #newRange(kind: number): number {
    const range = this.#free.length > 0 ? this.#free.pop()! : this.#end++;
    if (range >= this.#kinds.length) {
      const kinds = new Uint8Array(this.#kinds.length * 2);
      kinds.set(this.#kinds);
      this.#kinds = kinds;
      this.#keyIds = grown(this.#keyIds, range);
    }
    this.#kinds[range] = kind;
    return range;
  }

  #openOther(bytes: Uint8Array, at: number, to: number, endAt: number, endTo: number): number {
    const start = Buffer.from(bytes.subarray(at, to));
    const end = Buffer.from(bytes.subarray(endAt, endTo));
    for (const [range, other] of this.#others) {
      if (other.start.equals(start) && other.end.equals(end)) return range;
    }
    const range = this.#newRange(RANGE_OTHER);
    this.#others.set(range, { start, end });
    this.#gaps = null;
    return range;
  }

  #count(bytes: Uint8Array, at: number, to: number, by: number): void {
    const size = to - at;
    while (this.#lengths.length <= size) {
      this.#lengths.push(0);
      this.#oddLengths.push(0);
    }
    this.#lengths[size]! += by;
    if (bytes[to - 1] !== SLASH) this.#oddLengths[size]! += by;
    this.#prefixCount += by;
  }

  close(range: number): void {
    const kind = this.#kinds[range]!;
    if (kind === RANGE_KEY) this.#keys.remove(this.#keyIds[range]!);
    else if (kind === RANGE_OTHER) {
      this.#others.delete(range);
      this.#gaps = null;
    } else {
      const prefix = this.#prefixes.key(this.#keyIds[range]!);
      this.#count(prefix, 0, prefix.length, -1);
      this.#prefixes.remove(this.#keyIds[range]!);
    }
    this.#kinds[range] = 0;
    this.#free.push(range);
  }

  /** Writes the ranges that hold the key into `out`; returns how many. */
  match(bytes: Uint8Array, at: number, to: number, out: number[]): number {
    let count = 0;
    const exact = this.#keys.find(bytes, at, to);
    if (exact !== 0) out[count++] = exact;
    if (this.#prefixCount > 0) {
      const longest = Math.min(to - at, this.#lengths.length - 1);
      for (let size = 0; size <= longest; size++) {
        if (this.#lengths[size] === 0) continue;
        if (bytes[at + size - 1] !== SLASH && this.#oddLengths[size] === 0) continue;
        const range = this.#prefixes.find(bytes, at, at + size);
        if (range !== 0) out[count++] = range;
      }
    }
    return this.#others.size > 0 ? this.#matchOthers(bytes, at, to, out, count) : count;
  }

  /** Writes the other ranges that hold the key behind `count` entries; how many there are then. */
  #matchOthers(bytes: Uint8Array, at: number, to: number, out: number[], count: number): number {
    if (this.#others.size > GAPS_OF_MAX) {
      for (const [range, { start, end }] of this.#others) {
        if (isInside(bytes, at, to, start, end)) out[count++] = range;
      }
      return count;
    }
    this.#gaps ??= gapsOf(this.#others);
    const { bounds, ranges } = this.#gaps;
    let low = 0;
    let high = bounds.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (order(bytes, at, to, bounds[middle]!) >= 0) low = middle + 1;
      else high = middle;
    }
    for (const range of ranges[low]!) out[count++] = range;
    return count;
  }

  /** First key and range_end (in etcd's sense) of a range, good until it is closed. */
  bounds(range: number): { readonly start: Buffer; readonly end: Buffer } {
    const kind = this.#kinds[range]!;
    if (kind === RANGE_KEY) return { start: this.#keys.key(this.#keyIds[range]!), end: EMPTY };
    if (kind === RANGE_OTHER) return this.#others.get(range)!;
    const start = this.#prefixes.key(this.#keyIds[range]!);
    return { start, end: prefixEnd(start) };
  }
}

/** range_end of all keys with a prefix, in etcd's sense. */
export function prefixEnd(prefix: Buffer): Buffer {
  for (let last = prefix.length - 1; last >= 0; last--) {
    if (prefix[last] === 0xff) continue;
    const end = Buffer.from(prefix.subarray(0, last + 1));
    end[last]! += 1;
    return end;
  }
  return FROM_KEY;
}

function isPrefixRange(
  bytes: Uint8Array,
  at: number,
  to: number,
  endAt: number,
  endTo: number,
): boolean {
  const size = to - at;
  if (size === 0 || endTo - endAt !== size || bytes[to - 1] === 0xff) return false;
  for (let i = 0; i < size - 1; i++) if (bytes[at + i] !== bytes[endAt + i]) return false;
  return bytes[endTo - 1] === bytes[to - 1]! + 1;
}

/** Does the range [start, end), in etcd's sense, hold a key? */
export function isInside(
  bytes: Uint8Array,
  at: number,
  to: number,
  start: Buffer,
  end: Buffer,
): boolean {
  if (end.length === 0) return order(bytes, at, to, start) === 0;
  if (order(bytes, at, to, start) < 0) return false;
  return (end.length === 1 && end[0] === 0) || order(bytes, at, to, end) < 0;
}

function order(bytes: Uint8Array, at: number, to: number, other: Buffer): number {
  const count = Math.min(to - at, other.length);
  for (let i = 0; i < count; i++) {
    const difference = bytes[at + i]! - other[i]!;
    if (difference !== 0) return difference;
  }
  return to - at - other.length;
}

function gapsOf(others: ReadonlyMap<number, Bounds>): Gaps {
  const all = [...others.values()].flatMap(({ start, end }) => {
    if (end.equals(FROM_KEY)) return [start];
    // a range of one key ends right behind it
    return [start, end.length === 0 ? Buffer.concat([start, ZERO]) : end];
  });
  const bounds = all.toSorted((one, other) => one.compare(other));
  const ranges = bounds.map((bound) =>
    [...others]
      .filter(([, { start, end }]) => isInside(bound, 0, bound.length, start, end))
      .map(([range]) => range),
  );
  return { bounds, ranges: [[], ...ranges] };
}

/** A copy at least twice as long that holds index `needed`. */
export function grown(column: Uint32Array, needed: number): Uint32Array<ArrayBuffer> {
  const next = new Uint32Array(Math.max(column.length * 2, needed + 1));
  next.set(column);
  return next;
}
