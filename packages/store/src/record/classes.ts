// data plane: which class a key belongs to, and what each class keeps
/**
 * A class is a prefix with its own durability and history budget: its records have arenas of
 * their own, its events a log of their own, and its history a boundary of its own. Class 0 takes
 * the keys under no listed prefix.
 */
import { type Arenas, CLASSES_MAX } from './arenas.ts';
import type { Durability, PrefixPolicy, StorageOptions } from '../contract.ts';
import { EventLog } from './event-log.ts';
import { HistoryHolds, isMemoryShort } from './history-holds.ts';
import type { KeyIndex } from './key-index.ts';
import { Liveness } from './liveness.ts';

/** Share of what is alive that history may take, within the bounds of a policy with both. */
const HISTORY_SHARE = 0.5;

export interface KeyClass {
  readonly number: number;
  readonly prefix: Buffer;
  readonly durability: Durability;
  /** Bytes of history that are kept: by the policy, and by what is alive where that counts. */
  readonly historyBytesMax: number;
  /** Who keeps history beyond that. */
  readonly holds: HistoryHolds;
  /** What was not replaced for so long may be packed. */
  readonly packAfterMs: number;
  readonly events: EventLog;
  readonly liveness: Liveness;
  /** Reads below fail; the larger of the global compaction and this class's own cut. */
  boundary: number;
  /** Events before this position need no more sweeping. */
  sweepPosition: number;
  /** What events before this position replaced is out of reach already. */
  clearedPosition: number;
  /** Events before this position were shown to watchers. */
  publishedPosition: number;
  /** Bytes of superseded records and tombstones that are still kept, as if none was packed. */
  historyBytes: number;
  /** Pairs of (arena, offset): where bytes begin that the log has not taken yet. */
  readonly unlogged: number[];
}

type Aged = Pick<KeyClass, 'number' | 'historyBytes'>;

/** What says to which class a key belongs. */
export interface ClassPrefix {
  readonly number: number;
  readonly prefix: Uint8Array;
}

/** Class number of a key; `prefixes` stand by falling length. */
export function classOfKey(
  prefixes: readonly ClassPrefix[],
  bytes: Uint8Array,
  at: number,
  to: number,
): number {
  for (let i = 0; i < prefixes.length; i++) {
    if (startsWith(bytes, at, to, prefixes[i]!.prefix)) return prefixes[i]!.number;
  }
  return 0;
}

export class KeyClasses {
  readonly all: readonly KeyClass[];
  readonly #arenas: Arenas;
  /** By falling length of prefix, so that the first match is the longest. */
  readonly #byLength: readonly KeyClass[];

  constructor(options: StorageOptions, arenas: Arenas, keys: KeyIndex) {
    const isLogged = options.dataDir !== null;
    const { memoryBytesMax = Infinity } = options;
    const isShort = (): boolean => isMemoryShort(arenas.allocatedBytes, memoryBytesMax);
    const aliveBytes = (klass: Aged): number => this.#aliveBytes(klass);
    this.#arenas = arenas;
    const make = (number: number, prefix: string, policy: Partial<PrefixPolicy>): KeyClass => ({
      number,
      prefix: Buffer.from(prefix),
      durability: isLogged ? (policy.durability ?? options.durability) : 'none',
      get historyBytesMax() {
        const { historyBytesMax: most = Infinity, historyBytesMin: least = most } = policy;
        return Math.min(most, Math.max(least, aliveBytes(this) * HISTORY_SHARE));
      },
      holds: new HistoryHolds(isShort),
      packAfterMs: policy.packAfterMs ?? options.packAfterMs ?? Infinity,
      events: new EventLog(arenas),
      liveness: new Liveness(keys, (a, b) => keys.compareIds(a, b)),
      boundary: 0,
      sweepPosition: 0,
      clearedPosition: 0,
      publishedPosition: 0,
      historyBytes: 0,
      unlogged: [],
    });
    const { historyBytesMax = Infinity } = options;
    const all: KeyClass[] = [make(0, '', { historyBytesMax })];
    for (const policy of options.prefixes) all.push(make(all.length, policy.prefix, policy));
    if (all.length > CLASSES_MAX) {
      throw new Error(`${all.length - 1} prefixes have policies, at most ${CLASSES_MAX - 1} may`);
    }
    this.all = all;
    this.#byLength = all.slice(1).sort((a, b) => b.prefix.length - a.prefix.length);
  }

  /**
   * Keeps what can be read of a range at `revision`, until the call of what it returns; see
   * `HistoryHolds`.
   */
  hold(
    bytes: Uint8Array,
    at: number,
    to: number,
    endAt: number,
    endTo: number,
    revision: number,
  ): () => void {
    const releases = this.all
      .filter((klass) => this.overlaps(klass, bytes, at, to, endAt, endTo))
      .map((klass) => klass.holds.take(revision, klass.historyBytes + this.#aliveBytes(klass)));
    return () => {
      for (const release of releases) release();
    };
  }

  /** The oldest revision that somebody holds; Infinity where nobody does. */
  get heldRevision(): number {
    return Math.min(...this.all.map(({ holds }) => holds.revision));
  }

  #aliveBytes({ number, historyBytes }: Aged): number {
    const { classBytes, classSaved } = this.#arenas;
    return classBytes[number]! + classSaved[number]! - historyBytes;
  }

  /** Class number of a key. */
  ofKey(bytes: Uint8Array, at: number, to: number): number {
    return classOfKey(this.#byLength, bytes, at, to);
  }

  /** The prefixes by falling length, for another thread. */
  get prefixes(): readonly ClassPrefix[] {
    return this.#byLength.map(({ number, prefix }) => ({ number, prefix }));
  }

  /**
   * May keys of [at, to) .. [endAt, endTo) be in a class? Exact for prefixes; class 0 is left out
   * only when the whole range lies in one listed prefix.
   */
  overlaps(
    klass: KeyClass,
    bytes: Uint8Array,
    at: number,
    to: number,
    endAt: number,
    endTo: number,
  ): boolean {
    if (endAt === endTo) return this.ofKey(bytes, at, to) === klass.number;
    const isOpenEnd = endTo - endAt === 1 && bytes[endAt] === 0;
    if (klass.number === 0) return !this.#isInsideOne(bytes, at, to, endAt, endTo, isOpenEnd);
    const prefix = klass.prefix;
    // The prefix's keys lie at or above it: the range must end above the prefix ...
    if (!isOpenEnd && compare(bytes, endAt, endTo, prefix, prefix.length) <= 0) return false;
    // ... and begin below its last key: at or below the prefix, or inside it.
    return compare(bytes, at, to, prefix, prefix.length) <= 0 || startsWith(bytes, at, to, prefix);
  }

  #isInsideOne(
    bytes: Uint8Array,
    at: number,
    to: number,
    endAt: number,
    endTo: number,
    isOpenEnd: boolean,
  ): boolean {
    if (isOpenEnd) return false;
    for (const klass of this.#byLength) {
      if (!startsWith(bytes, at, to, klass.prefix)) continue;
      const next = Buffer.from(klass.prefix);
      const last = next.length - 1;
      if (next[last]! === 0xff) continue;
      next[last]! += 1;
      if (compare(bytes, endAt, endTo, next, next.length) <= 0) return true;
    }
    return false;
  }
}

function startsWith(bytes: Uint8Array, at: number, to: number, prefix: Uint8Array): boolean {
  if (to - at < prefix.length) return false;
  for (let i = 0; i < prefix.length; i++) if (bytes[at + i] !== prefix[i]) return false;
  return true;
}

function compare(a: Uint8Array, at: number, to: number, b: Uint8Array, size: number): number {
  const count = Math.min(to - at, size);
  for (let i = 0; i < count; i++) {
    const difference = a[at + i]! - b[i]!;
    if (difference !== 0) return difference;
  }
  return to - at - size;
}
