// data plane: sorts many key ids by their keys
/**
 * Most keys share long prefixes, so comparing them pairwise reads the same bytes again and again,
 * and each look at a record is a cache miss, which is what sorting costs. Here a group of ids with
 * a known common prefix is sorted by the next eight bytes after the longest prefix that all of it
 * shares, which one look yields: by four, then by four more within runs that are equal so far. Runs
 * of equal bytes are groups again. What is sorted natively is 64-bit numbers, which costs a third
 * of sorting doubles:
 *
 *   high word   four bytes of the key, the first one on top, zeros where the key has ended
 *   low word    how many of them the key has (3 bits), place in the group (29 bits)
 */
import { assertWhole } from '@megaplane/base/assert';
import type { Arenas } from './arenas.ts';
import type { KeyIndex } from './key-index.ts';

/** Groups up to this size are sorted by comparison. */
const SMALL_GROUP = 24;
/** Keys that tell what a group may share. */
const SAMPLES = 16;
const PLACE_BITS = 29;
const PLACE_MASK: number = (1 << PLACE_BITS) - 1;
const STEP = 4;
// Little-endian, as the records are.
const LOW = 0;
const HIGH = 1;

/** Sorts ids[0, count) in place. */
export function sortIds(keys: KeyIndex, arenas: Arenas, ids: Uint32Array, count: number): void {
  if (isSorted(keys, ids, count)) return;
  assertWhole(count <= PLACE_MASK, 'more keys than can be sorted');
  new KeySort(keys, arenas, ids, count).run();
}

class KeySort {
  readonly #keys: KeyIndex;
  readonly #arenas: Arenas;
  readonly #ids: Uint32Array;
  readonly #packed: BigUint64Array;
  readonly #words: Uint32Array;
  /** By place: ids before the sort, what the second sort goes by, how many bytes that is. */
  readonly #before: Uint32Array;
  readonly #next: Uint32Array;
  readonly #nextSize: Uint8Array;
  /** Groups to do: from, to, bytes that all of the group share. */
  readonly #groups: number[];

  constructor(keys: KeyIndex, arenas: Arenas, ids: Uint32Array, count: number) {
    this.#keys = keys;
    this.#arenas = arenas;
    this.#ids = ids;
    this.#packed = new BigUint64Array(count);
    this.#words = new Uint32Array(this.#packed.buffer);
    this.#before = new Uint32Array(count);
    this.#next = new Uint32Array(count);
    this.#nextSize = new Uint8Array(count);
    this.#groups = [0, count, 0];
  }

  run(): void {
    const groups = this.#groups;
    while (groups.length > 0) {
      const shared = groups.pop()!;
      const to = groups.pop()!;
      const from = groups.pop()!;
      if (to - from <= SMALL_GROUP) sortSmall(this.#keys, this.#ids, from, to);
      else this.#group(from, to, shared);
    }
  }

  #group(from: number, to: number, shared: number): void {
    const ids = this.#ids;
    const words = this.#words;
    const stride = Math.ceil((to - from) / SAMPLES);
    let known = sharedPrefix(this.#keys, this.#arenas, ids, from, to, stride, shared);
    if (!this.#load(from, to, shared, known)) {
      known = sharedPrefix(this.#keys, this.#arenas, ids, from, to, 1, shared);
      this.#load(from, to, known, known);
    }
    this.#packed.subarray(from, to).sort();
    this.#before.set(ids.subarray(from, to), from);
    this.#eachRun(from, to, (runFrom, runTo) => {
      for (let i = runFrom; i < runTo; i++) {
        const place = words[i * 2 + LOW]! & PLACE_MASK;
        words[i * 2 + HIGH] = this.#next[from + place]!;
        words[i * 2 + LOW] = (this.#nextSize[from + place]! << PLACE_BITS) | place;
      }
      this.#packed.subarray(runFrom, runTo).sort();
      this.#eachRun(runFrom, runTo, (first, end) => {
        this.#groups.push(first, end, known + 2 * STEP);
      });
    });
    for (let i = from; i < to; i++) {
      ids[i] = this.#before[from + (words[i * 2 + LOW]! & PLACE_MASK)]!;
    }
  }

  /** Calls for each run of two and more that are equal so far and go on. */
  #eachRun(from: number, to: number, found: (from: number, to: number) => void): void {
    const words = this.#words;
    for (let runFrom = from; runFrom < to;) {
      const high = words[runFrom * 2 + HIGH]!;
      const size = words[runFrom * 2 + LOW]! >>> PLACE_BITS;
      let end = runFrom + 1;
      while (
        end < to &&
        words[end * 2 + HIGH] === high &&
        words[end * 2 + LOW]! >>> PLACE_BITS === size
      ) {
        end++;
      }
      if (end - runFrom > 1 && size === STEP) found(runFrom, end);
      runFrom = end;
    }
  }

  /**
   * Reads what the ids of a group are sorted by, after `known` bytes. False when not all of them
   * share so many; of these, `shared` are known to be.
   */
  #load(from: number, to: number, shared: number, known: number): boolean {
    const keys = this.#keys;
    const arenas = this.#arenas;
    const words = this.#words;
    const first = keys.head(this.#ids[from]!);
    const firstBytes = arenas.buffer(first);
    const firstAt = arenas.keyAt(first);
    for (let i = from; i < to; i++) {
      const ref = keys.head(this.#ids[i]!);
      const bytes = arenas.buffer(ref);
      const keyAt = arenas.keyAt(ref);
      const left = arenas.keySize(ref) - known;
      if (left < 0) return false;
      for (let at = shared; at < known; at++) {
        if (bytes[keyAt + at] !== firstBytes[firstAt + at]) return false;
      }
      const at = keyAt + known;
      const size = left < STEP ? left : STEP;
      words[i * 2 + HIGH] = bigEndian(bytes, at, size);
      words[i * 2 + LOW] = (size << PLACE_BITS) | (i - from);
      const more = left - size < STEP ? left - size : STEP;
      this.#next[i] = bigEndian(bytes, at + STEP, more);
      this.#nextSize[i] = more;
    }
    return true;
  }
}

function bigEndian(bytes: Uint8Array, at: number, size: number): number {
  let word = 0;
  for (let i = 0; i < size; i++) word |= bytes[at + i]! << (24 - 8 * i);
  return word;
}

function isSorted(keys: KeyIndex, ids: Uint32Array, count: number): boolean {
  for (let i = 1; i < count; i++) if (keys.compareIds(ids[i - 1]!, ids[i]!) > 0) return false;
  return true;
}

function sortSmall(keys: KeyIndex, ids: Uint32Array, from: number, to: number): void {
  for (let i = from + 1; i < to; i++) {
    const id = ids[i]!;
    let place = i;
    while (place > from && keys.compareIds(ids[place - 1]!, id) > 0) {
      ids[place] = ids[place - 1]!;
      place--;
    }
    ids[place] = id;
  }
}

/** Bytes that every `stride`th key of a group shares; `known` of them are known to be. */
function sharedPrefix(
  keys: KeyIndex,
  arenas: Arenas,
  ids: Uint32Array,
  from: number,
  to: number,
  stride: number,
  known: number,
): number {
  const first = keys.head(ids[from]!);
  const firstBytes = arenas.buffer(first);
  const firstAt = arenas.keyAt(first);
  let shared = arenas.keySize(first);
  for (let i = from + stride; i < to && shared > known; i += stride) {
    const ref = keys.head(ids[i]!);
    const bytes = arenas.buffer(ref);
    const at = arenas.keyAt(ref);
    const size = Math.min(shared, arenas.keySize(ref));
    let same = known;
    while (same < size && bytes[at + same] === firstBytes[firstAt + same]) same++;
    shared = same;
  }
  return shared;
}
