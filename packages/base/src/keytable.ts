// data plane: a hash table of byte keys
import { assert } from './assert.ts';
import { compareBytes, copyBytes, hashWords, loadWords } from './bytes.ts';
import { Uint32Column } from './column.ts';
import type { Random } from './random.ts';
import { HashSlots } from './hash-slots.ts';
import { Slab } from './slab.ts';

/**
 * Gives each key (a range of bytes) a number, its id, and keeps the bytes.
 *
 * Ids are dense: they run from 0 to `idEnd`, and a removed key's id serves the next new key. Users
 * hang columns beside the table, indexed by id, and ordered indexes (`OrderedIndex`) above it.
 *
 *   slots      hash -> (32-bit hash, ref of the key's block), in segments that split one at a time
 *   block      [id: u32][length: u32][key bytes, zeros up to a whole word], in a slab
 *   refOf      id -> ref of the key's block, 0 for an id that is not in use
 *
 * No operation touches more than one segment (16 KiB), so none is slow because the table is large.
 */
export interface KeyTableOptions {
  /** Where the secret of the hash comes from. */
  readonly random: Random;
  /** Memory for key bytes; at the limit `insert` answers -1. */
  readonly keyBytesMax?: number;
}

const HEADER_BYTES = 8;
const REGION_BYTES: number = 2 ** 22;

/** Largest key, in bytes. */
export const KEY_BYTES_MAX: number = 2 ** 21;

export class KeyTable {
  readonly #slab: Slab;
  readonly #slots: HashSlots = new HashSlots();
  readonly #refOf = new Uint32Column();
  readonly #freeIds = new Uint32Column();
  readonly #seedLow: number;
  readonly #seedHigh: number;
  // The key at hand as words, left by the hash: keys are compared and stored by words.
  #key: Int32Array = new Int32Array(64);
  #freeCount = 0;
  #idEnd = 0;
  #size = 0;
  /** Whether the last `insert` made a new id. */
  isNew = false;

  constructor(options: KeyTableOptions) {
    this.#seedLow = options.random.int32();
    this.#seedHigh = options.random.int32();
    this.#slab = new Slab({
      regionBytes: REGION_BYTES,
      bytesMax: Math.max(REGION_BYTES, options.keyBytesMax ?? Infinity),
    });
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
    const slab = this.#slab;
    const ref = slab.allocate(HEADER_BYTES + wordsOf(end - start) * 4);
    if (ref === 0) return -1;
    const id = this.#freeCount > 0 ? this.#freeIds.get(--this.#freeCount) : this.#idEnd++;
    const words = slab.wordsAt(ref);
    const word = slab.wordAt(ref);
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
    this.#slab.free(ref);
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
    const ref = this.#refOf.get(id);
    return this.#slab.wordsAt(ref)[this.#slab.wordAt(ref) + 1]!;
  }

  /** The memory in which a key lies, valid until the table changes; starts at `keyStart(id)`. */
  keyBytes(id: number): Buffer {
    return this.#slab.bytesAt(this.#refOf.get(id));
  }

  /** Where in `keyBytes(id)` the key starts; it ends `keyLength(id)` bytes later. */
  keyStart(id: number): number {
    return this.#slab.startAt(this.#refOf.get(id)) + HEADER_BYTES;
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
    const slab = this.#slab;
    const keyStart = slab.startAt(ref) + HEADER_BYTES;
    const keyEnd = keyStart + slab.wordsAt(ref)[slab.wordAt(ref) + 1]!;
    return compareBytes(slab.bytesAt(ref), keyStart + skip, keyEnd, bytes, start + skip, end);
  }

  /** One slice of giving memory back after many removals: bytes moved, 0 when nothing is left. */
  compactStep(bytesMax: number): number {
    return this.#slab.compactStep(bytesMax, this.#moved);
  }

  /** Memory of the keys, the holes between them, and the table. */
  get memoryBytes(): number {
    return this.#slab.reservedBytes + this.#slab.bookkeepingBytes + this.indexBytes;
  }

  /** Memory of the table without the keys' blocks. */
  get indexBytes(): number {
    return this.#slots.memoryBytes + this.#refOf.memoryBytes + this.#freeIds.memoryBytes;
  }

  readonly #moved = (from: number, to: number): void => {
    const slab = this.#slab;
    this.#slots.replace(this.#hashOf(to), from, to);
    this.#refOf.set(slab.wordsAt(to)[slab.wordAt(to)]!, to);
  };

  #hash(bytes: Uint8Array, start: number, end: number): number {
    // Keys are short; the room for the longest one seen is kept.
    if (end - start >= this.#key.length * 4) this.#key = new Int32Array((end - start) / 2 + 1);
    loadWords(bytes, start, end, this.#key);
    return hashWords(this.#seedLow, this.#seedHigh, this.#key, end - start);
  }

  /** The block of the key that was hashed last. */
  #search(hash: number, length: number): number {
    const slots = this.#slots;
    const slab = this.#slab;
    const key = this.#key;
    let ref = slots.first(hash);
    while (ref !== 0) {
      const words = slab.wordsAt(ref);
      const word = slab.wordAt(ref) + 1;
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
    return this.#slab.wordsAt(ref)[this.#slab.wordAt(ref)]!;
  }

  #hashOf(ref: number): number {
    const slab = this.#slab;
    const start = slab.startAt(ref) + HEADER_BYTES;
    const end = start + slab.wordsAt(ref)[slab.wordAt(ref) + 1]!;
    return this.#hash(slab.bytesAt(ref), start, end);
  }
}

function wordsOf(length: number): number {
  return (length + 3) >>> 2;
}
