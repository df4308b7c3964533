// data plane: from key bytes to a dense id, by a hash table whose keys lie in the records
/**
 * Finds keys without owning their bytes: an id leads to the newest record (`head`), and the
 * record holds the key. A look-up touches the slot, the head column and the record, which the
 * caller needs anyway.
 *
 * The table grows without a pause by extendible hashing: the upper bits of the hash choose a
 * segment through a directory; a full segment splits in two, and only the directory (4 bytes per
 * SEGMENT_SLOTS / 2 keys) is ever doubled.
 *
 * The key in question is loaded once (`load`) into a word-aligned scratch, zero-padded, so that
 * hashing and comparing go by words. Zero padding keeps the byte order; equal words then differ
 * by length only.
 */
import { type Arenas, HEADER_BYTES, KEY_BYTES_MAX } from './arenas.ts';

const SEGMENT_SLOTS = 2048;
const SEGMENT_MASK = SEGMENT_SLOTS - 1;
const SEGMENT_FILL_MAX = 1536;
const CHUNK_BITS = 15;
const CHUNK_MASK = (1 << CHUNK_BITS) - 1;
const GRANULE_BITS = 18;
const GRANULE_MASK = (1 << GRANULE_BITS) - 1;
const SCRATCH_BYTES = 1024;
const DEPTH_MAX = 24;

interface Segment {
  /** Pairs of (hash, id); id 0 = empty. */
  readonly slots: Uint32Array;
  size: number;
  /** How many upper bits of the hash all keys in here share. */
  depth: number;
}

export class KeyIndex {
  readonly #arenas: Arenas;
  readonly #seed: number;
  #directory: Segment[];
  #depth = 0;
  readonly #heads: Uint32Array[] = [];
  readonly #classes: Uint8Array[] = [];
  readonly #freeIds: number[] = [];
  #idEnd = 1;
  #size = 0;
  scratch: Uint8Array = new Uint8Array(SCRATCH_BYTES);
  /** The scratch as words, zero-padded after the key. */
  words: Uint32Array = new Uint32Array(this.scratch.buffer);
  scratchSize = 0;
  #hash = 0;

  constructor(arenas: Arenas, seed: number) {
    this.#arenas = arenas;
    this.#seed = seed >>> 0;
    this.#directory = [newSegment(0)];
  }

  /** Keys in the index, tombstoned ones that history still needs included. */
  get size(): number {
    return this.#size;
  }

  /** One more than the largest id ever given. */
  get idEnd(): number {
    return this.#idEnd;
  }

  /** Makes bytes[start, end) the key that find, insert, remove and compare work with. */
  load(bytes: Uint8Array, start: number, end: number): void {
    const size = end - start;
    if (size + 4 > this.scratch.length) this.#growScratch(size + 4);
    const scratch = this.scratch;
    for (let i = 0; i < size; i++) scratch[i] = bytes[start + i]!;
    const padded = (size + 3) & ~3;
    for (let i = size; i < padded; i++) scratch[i] = 0;
    this.scratchSize = size;
    const words = this.words;
    let hash = this.#seed ^ size;
    for (let i = 0; i < padded >> 2; i++) {
      hash = Math.imul(hash ^ words[i]!, 0x9e3779b1);
      hash ^= hash >>> 15;
    }
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    this.#hash = (hash ^ (hash >>> 13)) >>> 0;
  }

  /** Loads the key of a record. */
  loadRecord(ref: number): void {
    const at = this.#arenas.keyAt(ref);
    this.load(this.#arenas.buffer(ref), at, at + this.#arenas.keySize(ref));
  }

  #growScratch(size: number): void {
    this.scratch = new Uint8Array(Math.min(KEY_BYTES_MAX + 4, size * 2));
    this.words = new Uint32Array(this.scratch.buffer, 0, this.scratch.length >> 2);
  }

  #segment(): Segment {
    return this.#directory[this.#depth === 0 ? 0 : this.#hash >>> (32 - this.#depth)]!;
  }

  /** Id of the loaded key, 0 when it is not here. */
  find(): number {
    const slots = this.#segment().slots;
    const hash = this.#hash;
    for (let slot = hash & SEGMENT_MASK; ; slot = (slot + 1) & SEGMENT_MASK) {
      const id = slots[slot * 2 + 1]!;
      if (id === 0) return 0;
      if (slots[slot * 2]! === hash && this.#equals(id)) return id;
    }
  }

  #equals(id: number): boolean {
    const ref = this.head(id);
    const words = this.#arenas.words[ref >>> GRANULE_BITS]!;
    let at = (ref & GRANULE_MASK) << 2;
    const last = words[at + 9]!;
    const size = last & KEY_BYTES_MAX;
    if (size !== this.scratchSize) return false;
    at += (last & 0x2000000) === 0 ? HEADER_BYTES >> 2 : (HEADER_BYTES >> 2) + 2;
    const mine = this.words;
    for (let i = 0; i < (size + 3) >> 2; i++) if (words[at + i] !== mine[i]) return false;
    return true;
  }

  /** Negative, 0 or positive as the loaded key is below, at or above the key of `id`. */
  compare(id: number): number {
    const ref = this.head(id);
    const words = this.#arenas.words[ref >>> GRANULE_BITS]!;
    let at = (ref & GRANULE_MASK) << 2;
    const last = words[at + 9]!;
    const size = last & KEY_BYTES_MAX;
    at += (last & 0x2000000) === 0 ? HEADER_BYTES >> 2 : (HEADER_BYTES >> 2) + 2;
    const mine = this.words;
    const shorter = size < this.scratchSize ? size : this.scratchSize;
    const count = (shorter + 3) >> 2;
    for (let i = 0; i < count; i++) {
      const a = mine[i]!;
      const b = words[at + i]!;
      if (a !== b) return compareWords(a, b);
    }
    return this.scratchSize - size;
  }

  /** Byte order of the keys of two ids. */
  compareIds(a: number, b: number): number {
    const arenas = this.#arenas;
    const refA = this.head(a);
    const refB = this.head(b);
    const wordsA = arenas.words[refA >>> GRANULE_BITS]!;
    const wordsB = arenas.words[refB >>> GRANULE_BITS]!;
    const sizeA = arenas.keySize(refA);
    const sizeB = arenas.keySize(refB);
    const atA = arenas.keyAt(refA) >> 2;
    const atB = arenas.keyAt(refB) >> 2;
    const count = ((sizeA < sizeB ? sizeA : sizeB) + 3) >> 2;
    for (let i = 0; i < count; i++) {
      const x = wordsA[atA + i]!;
      const y = wordsB[atB + i]!;
      if (x !== y) return compareWords(x, y);
    }
    return sizeA - sizeB;
  }

  /** Adds the loaded key, which is not here yet; `head` must hold the key when asked again. */
  insert(ref: number, klass: number): number {
    let segment = this.#segment();
    while (segment.size >= SEGMENT_FILL_MAX) {
      this.#split(segment);
      segment = this.#segment();
    }
    const id = this.#freeIds.length > 0 ? this.#freeIds.pop()! : this.#newId();
    place(segment, this.#hash, id);
    this.#size++;
    this.setHead(id, ref);
    this.#classes[id >>> CHUNK_BITS]![id & CHUNK_MASK] = klass;
    return id;
  }

  #newId(): number {
    const id = this.#idEnd++;
    if (id >>> CHUNK_BITS >= this.#heads.length) {
      this.#heads.push(new Uint32Array(1 << CHUNK_BITS));
      this.#classes.push(new Uint8Array(1 << CHUNK_BITS));
    }
    return id;
  }

  #split(segment: Segment): void {
    if (segment.depth === this.#depth) {
      if (this.#depth === DEPTH_MAX) throw new Error('the hash table cannot grow any more');
      const doubled: Segment[] = [];
      for (const one of this.#directory) doubled.push(one, one);
      this.#directory = doubled;
      this.#depth++;
    }
    const depth = segment.depth + 1;
    const low = newSegment(depth);
    const high = newSegment(depth);
    for (let slot = 0; slot < SEGMENT_SLOTS; slot++) {
      const id = segment.slots[slot * 2 + 1]!;
      if (id === 0) continue;
      const hash = segment.slots[slot * 2]!;
      place(((hash >>> (32 - depth)) & 1) === 0 ? low : high, hash, id);
    }
    const step = 1 << (this.#depth - segment.depth);
    const prefix = segment.depth === 0 ? 0 : this.#hash >>> (32 - segment.depth);
    const first = prefix << (this.#depth - segment.depth);
    for (let i = 0; i < step; i++) this.#directory[first + i] = i < step >> 1 ? low : high;
  }

  /** Forgets the loaded key, whose id is `id`. The id may be given to another key. */
  remove(id: number): void {
    const segment = this.#segment();
    const slots = segment.slots;
    let slot = this.#hash & SEGMENT_MASK;
    while (slots[slot * 2 + 1] !== id) slot = (slot + 1) & SEGMENT_MASK;
    let hole = slot;
    for (;;) {
      slot = (slot + 1) & SEGMENT_MASK;
      const moved = slots[slot * 2 + 1]!;
      if (moved === 0) break;
      const home = slots[slot * 2]! & SEGMENT_MASK;
      // A key may move back only if its home does not lie between the hole and itself.
      if (((slot - home) & SEGMENT_MASK) < ((slot - hole) & SEGMENT_MASK)) continue;
      slots[hole * 2] = slots[slot * 2]!;
      slots[hole * 2 + 1] = moved;
      hole = slot;
    }
    slots[hole * 2] = 0;
    slots[hole * 2 + 1] = 0;
    segment.size--;
    this.#size--;
    this.setHead(id, 0);
    this.#freeIds.push(id);
  }

  /** The newest record of a key. */
  head(id: number): number {
    return this.#heads[id >>> CHUNK_BITS]![id & CHUNK_MASK]!;
  }

  setHead(id: number, ref: number): void {
    this.#heads[id >>> CHUNK_BITS]![id & CHUNK_MASK] = ref;
  }

  classOf(id: number): number {
    return this.#classes[id >>> CHUNK_BITS]![id & CHUNK_MASK]!;
  }
}

function newSegment(depth: number): Segment {
  return { slots: new Uint32Array(SEGMENT_SLOTS * 2), size: 0, depth };
}

function place(segment: Segment, hash: number, id: number): void {
  const slots = segment.slots;
  let slot = hash & SEGMENT_MASK;
  while (slots[slot * 2 + 1] !== 0) slot = (slot + 1) & SEGMENT_MASK;
  slots[slot * 2] = hash;
  slots[slot * 2 + 1] = id;
  segment.size++;
}

/** Byte order of two different words that were loaded little-endian. */
export function compareWords(a: number, b: number): number {
  const difference = a ^ b;
  const shift =
    (difference & 0xff) !== 0
      ? 0
      : (difference & 0xff00) !== 0
        ? 8
        : (difference & 0xff0000) !== 0
          ? 16
          : 24;
  return ((a >>> shift) & 0xff) - ((b >>> shift) & 0xff);
}
