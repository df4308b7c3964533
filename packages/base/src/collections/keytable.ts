// data plane: a hash table of byte keys
import { assert } from '../assert.ts';
import { compareBytes, copyBytes, hashWords, loadWords } from '../bytes/bytes.ts';
import { Uint32Column } from './column.ts';
import type { Random } from '../random/random.ts';
import { HashSlots } from './hash-slots.ts';
import { KeyArena } from './key-arena.ts';
import { Slab } from './slab.ts';

/**
 * Gives each key (a range of bytes) a number, its id, and keeps the bytes.
 *
 * Ids are dense: they run from 0 to `idEnd`, and a removed key's id serves the next new key. Users
 * hang columns beside the table, indexed by id, and ordered indexes (`OrderedIndex`) above it.
 *
 *   slots      hash -> (32-bit hash, ref of the key's block), in segments that split one at a time
 *   block      [id: u32][length: u32][key bytes, zeros up to a whole word], in an arena or a slab
 *   refOf      id -> ref of the key's block, 0 for an id that is not in use
 *
 * A table begins with some hundred bytes: its blocks lie in an arena that is built anew, twice as
 * large, when it is full, up to 64 KiB. Then they move to a slab, once. From there on no operation
 * touches more than one segment (16 KiB), but that the first region of the slab doubles while it is
 * below 4 MiB: none is slow because the table is large.
 */
export interface KeyTableOptions {
  /** Where the secret of the hash comes from. */
  readonly random: Random;
  /** Memory for key bytes; at the limit `insert` answers -1. */
  readonly keyBytesMax?: number;
}

const HEADER_BYTES = 8;
const REGION_BYTES: number = 2 ** 22;
const REGION_SHIFT: number = Math.log2(REGION_BYTES) - 3;
const REGION_MASK: number = 2 ** REGION_SHIFT - 1;
const FIRST_REGION_BYTES: number = 2 ** 17;
const ARENA_BYTES_MIN = 128;
const ARENA_BYTES_MAX: number = 2 ** 16;
const KEY_WORDS_MIN = 16;

/** Largest key, in bytes. */
export const KEY_BYTES_MAX: number = 2 ** 21;

export class KeyTable {
  readonly #keyBytesMax: number;
  /** Where the blocks are while they are few. */
  #arena: KeyArena | null = new KeyArena(ARENA_BYTES_MIN);
  #slab: Slab | null = null;
  // The memory of arena or slab, held directly: the way to a block's bytes is the hottest of all.
  #words: readonly Int32Array[] = [];
  #buffers: readonly Buffer[] = [];
  #slots: HashSlots = new HashSlots();
  readonly #refOf = new Uint32Column();
  readonly #freeIds = new Uint32Column();
  readonly #seedLow: number;
  readonly #seedHigh: number;
  // The key at hand as words, left by the hash: keys are compared and stored by words.
  #key: Int32Array = new Int32Array(KEY_WORDS_MIN);
  #freeCount = 0;
  #idEnd = 0;
  #size = 0;
  /** Whether the last `insert` made a new id. */
  isNew = false;

  constructor(options: KeyTableOptions) {
    this.#seedLow = options.random.int32();
    this.#seedHigh = options.random.int32();
    this.#keyBytesMax = Math.max(REGION_BYTES, options.keyBytesMax ?? Infinity);
    this.#begin(ARENA_BYTES_MIN);
  }

  /** Keys in the table. */
  get size(): number {
    return this.#size;
  }

  /** All ids in use are below this. */
  get idEnd(): number {
    return this.#idEnd;
  }

  /** The id of a key, or -1. */
  find(bytes: Uint8Array, start: number, end: number): number {
    const ref = this.#search(this.#hash(bytes, start, end), end - start);
    return ref === 0 ? -1 : this.#idAt(ref);
  }

  /**
   * The id of a key, new or not: `isNew` tells which. -1 when there is no memory for the key or
   * it is longer than `KEY_BYTES_MAX`; the table is then as it was.
   */
  insert(bytes: Uint8Array, start: number, end: number): number {
    const hash = this.#hash(bytes, start, end);
    const found = this.#search(hash, end - start);
    this.isNew = false;
    if (found !== 0) return this.#idAt(found);
    if (end - start > KEY_BYTES_MAX) return -1;
    const ref = this.#allocate(end - start);
    if (ref === 0) return -1;
    const id = this.#freeCount > 0 ? this.#freeIds.get(--this.#freeCount) : this.#idEnd++;
    const words = this.#words[ref >>> REGION_SHIFT]!;
    const word = (ref & REGION_MASK) << 1;
    words[word] = id;
    words[word + 1] = end - start;
    for (let i = wordsOf(end - start) - 1; i >= 0; i--) words[word + 2 + i] = this.#key[i]!;
    this.#slots.insert(hash, ref);
    this.#refOf.set(id, ref);
    this.#size++;
    this.isNew = true;
    return id;
  }

  /** Forgets a key. The id must be in use; whoever else holds it must let go of it first. */
  remove(id: number): void {
    const ref = this.#refOf.get(id);
    assert(ref !== 0, 'remove of an id that is not in use');
    this.#slots.remove(this.#hashOf(ref), ref);
    if (this.#slab !== null) this.#slab.free(ref);
    else this.#arena!.free(ref);
    this.#refOf.set(id, 0);
    this.#freeIds.set(this.#freeCount++, id);
    this.#size--;
  }

  /** Whether an id is in use. */
  has(id: number): boolean {
    return this.#refOf.get(id) !== 0;
  }

  /** Length of a key in bytes. */
  keyLength(id: number): number {
    return this.#lengthAt(this.#refOf.get(id));
  }

  /** The memory in which a key lies, valid until the table changes; starts at `keyStart(id)`. */
  keyBytes(id: number): Buffer {
    return this.#buffers[this.#refOf.get(id) >>> REGION_SHIFT]!;
  }

  /** Where in `keyBytes(id)` the key starts; it ends `keyLength(id)` bytes later. */
  keyStart(id: number): number {
    return ((this.#refOf.get(id) & REGION_MASK) << 3) + HEADER_BYTES;
  }

  /** Copies a key to `target` at `offset` and returns the offset after it. */
  copyKey(id: number, target: Uint8Array, offset: number): number {
    const start = this.keyStart(id);
    const end = start + this.keyLength(id);
    copyBytes(this.keyBytes(id), start, end, target, offset);
    return offset + end - start;
  }

  /** A key as text, read as UTF-8. For messages and tests. */
  keyText(id: number): string {
    const start = this.keyStart(id);
    return this.keyBytes(id).toString('utf8', start, start + this.keyLength(id));
  }

  /** Order of the key of `id` and a range, as `compareBytes`; both agree before byte `skip`. */
  compareKey(id: number, bytes: Uint8Array, start: number, end: number, skip = 0): number {
    const ref = this.#refOf.get(id);
    const keyStart = ((ref & REGION_MASK) << 3) + HEADER_BYTES;
    const keyEnd = keyStart + this.#lengthAt(ref);
    const own = this.#buffers[ref >>> REGION_SHIFT]!;
    return compareBytes(own, keyStart + skip, keyEnd, bytes, start + skip, end);
  }

  /** One slice of giving memory back after many removals: bytes moved, 0 when nothing is left. */
  compactStep(bytesMax: number): number {
    if (this.#slab !== null) return this.#slab.compactStep(bytesMax, this.#moved);
    const arena = this.#arena!;
    const sizeBytes = arenaBytesFor(arena.liveBytes, 0);
    if (sizeBytes >= arena.bytes.length) return 0;
    this.#rebuild(sizeBytes);
    return HEADER_BYTES + arena.liveBytes;
  }

  /** Memory of the keys, the holes between them, and the table. */
  get memoryBytes(): number {
    const slab = this.#slab;
    if (slab === null) return this.#arena!.bytes.length + this.indexBytes;
    return slab.reservedBytes + slab.bookkeepingBytes + this.indexBytes;
  }

  /** Memory of the table without the keys' blocks. */
  get indexBytes(): number {
    return this.#slots.memoryBytes + this.#refOf.memoryBytes + this.#freeIds.memoryBytes;
  }

  readonly #moved = (from: number, to: number): void => {
    this.#slots.replace(this.#hashOf(to), from, to);
    this.#refOf.set(this.#idAt(to), to);
  };

  #allocate(keyLength: number): number {
    const sizeBytes = HEADER_BYTES + wordsOf(keyLength) * 4;
    if (this.#slab !== null) return this.#slab.allocate(sizeBytes);
    const ref = this.#arena!.allocate(keyLength);
    if (ref !== 0) return ref;
    this.#rebuild(arenaBytesFor(this.#arena!.liveBytes, sizeBytes));
    return this.#allocate(keyLength);
  }

  /** Moves all keys to an arena of this size, or to a slab if it is too large for one. */
  #rebuild(sizeBytes: number): void {
    // The hash leaves the key that is being inserted in `#key`.
    const key = this.#key;
    this.#key = new Int32Array(key.length);
    const old = this.#arena!;
    const oldWords = old.words;
    this.#begin(sizeBytes);
    this.#slots = new HashSlots();
    for (let from = old.nextLive(1); from !== 0; from = old.nextLive(old.after(from))) {
      const length = oldWords[from * 2 + 1]!;
      const start = from * 8 + HEADER_BYTES;
      const hash = this.#hash(old.bytes, start, start + length);
      const ref = this.#allocate(length);
      assert(ref !== 0, 'no room for the keys of a small table');
      const words = this.#words[ref >>> REGION_SHIFT]!;
      const word = (ref & REGION_MASK) << 1;
      for (let i = wordsOf(length) + 1; i >= 0; i--) words[word + i] = oldWords[from * 2 + i]!;
      this.#slots.insert(hash, ref);
      this.#refOf.set(words[word]!, ref);
    }
    this.#key = key;
  }

  #begin(sizeBytes: number): void {
    if (sizeBytes <= ARENA_BYTES_MAX) {
      const arena = new KeyArena(sizeBytes);
      this.#arena = arena;
      this.#words = [arena.words];
      this.#buffers = [arena.bytes];
      return;
    }
    this.#arena = null;
    this.#slab = new Slab({
      regionBytes: REGION_BYTES,
      firstRegionBytes: FIRST_REGION_BYTES,
      bytesMax: this.#keyBytesMax,
    });
    this.#words = this.#slab.regionWords;
    this.#buffers = this.#slab.regionBuffers;
  }

  #hash(bytes: Uint8Array, start: number, end: number): number {
    // Keys are short; the room for the longest one seen is kept.
    if (end - start >= this.#key.length * 4) this.#key = new Int32Array((end - start) / 2 + 1);
    loadWords(bytes, start, end, this.#key);
    return hashWords(this.#seedLow, this.#seedHigh, this.#key, end - start);
  }

  /** The block of the key that was hashed last. */
  #search(hash: number, length: number): number {
    const slots = this.#slots;
    const regions = this.#words;
    const key = this.#key;
    let ref = slots.first(hash);
    while (ref !== 0) {
      const words = regions[ref >>> REGION_SHIFT]!;
      const word = ((ref & REGION_MASK) << 1) + 1;
      if (words[word] === length) {
        let i = wordsOf(length);
        while (i > 0 && words[word + i] === key[i - 1]) i--;
        if (i === 0) return ref;
      }
      ref = slots.next(hash);
    }
    return 0;
  }

  #idAt(ref: number): number {
    return this.#words[ref >>> REGION_SHIFT]![(ref & REGION_MASK) << 1]!;
  }

  #lengthAt(ref: number): number {
    return this.#words[ref >>> REGION_SHIFT]![((ref & REGION_MASK) << 1) + 1]!;
  }

  #hashOf(ref: number): number {
    const start = ((ref & REGION_MASK) << 3) + HEADER_BYTES;
    return this.#hash(this.#buffers[ref >>> REGION_SHIFT]!, start, start + this.#lengthAt(ref));
  }
}

/** Of an arena for what is in use and one more block, half free at the least. */
function arenaBytesFor(liveBytes: number, moreBytes: number): number {
  let sizeBytes = ARENA_BYTES_MIN;
  while (sizeBytes < (HEADER_BYTES + liveBytes + moreBytes) * 1.5) sizeBytes *= 2;
  return sizeBytes;
}

function wordsOf(length: number): number {
  return (length + 3) >>> 2;
}
