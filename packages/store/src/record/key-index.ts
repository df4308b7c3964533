// data plane: from key bytes to a dense id, by a hash table whose keys lie in the records
/**
 * Finds keys without owning their bytes: a slot holds the ref of the key's newest record, and the
 * record holds the key and its id. So a look-up touches the slot and the record, which the caller
 * needs anyway; the way back, from id to record, is a column (`head`).
 *
 * The hash is keyed, because names come from users (see `hashWords`), and the table grows one
 * segment at a time (see `HashSlots`).
 *
 * The key in question is loaded once (`load`) as words, zero-padded, so that hashing and comparing
 * go by words. Zero padding keeps the byte order; equal words then differ by length only.
 */
import { hashWords, loadWords } from '@megaplane/base/bytes';
import { HashSlots } from '@megaplane/base/hash-slots';
import { type Arenas, HEADER_BYTES, KEY_BYTES_MAX } from './arenas.ts';

const CHUNK_BITS = 15;
const CHUNK_MASK = (1 << CHUNK_BITS) - 1;
const GRANULE_BITS = 18;
const GRANULE_MASK = (1 << GRANULE_BITS) - 1;
const KEY_WORDS = 256;

export class KeyIndex {
  readonly #arenas: Arenas;
  readonly #seedLow: number;
  readonly #seedHigh: number;
  readonly #slots: HashSlots = new HashSlots();
  readonly #heads: Uint32Array[] = [];
  readonly #classes: Uint8Array[] = [];
  readonly #freeIds: number[] = [];
  #idEnd = 1;
  #size = 0;
  #signed: Int32Array = new Int32Array(KEY_WORDS);
  /** The loaded key as words, zero-padded. */
  words: Uint32Array = new Uint32Array(this.#signed.buffer);
  scratchSize = 0;
  #hash = 0;

  /** The secret of the hash: a whole number below 2^53. */
  constructor(arenas: Arenas, secret: number) {
    this.#arenas = arenas;
    this.#seedLow = secret | 0;
    this.#seedHigh = Math.floor(secret / 2 ** 32) ^ 0x5bd1e995;
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
    if (size + 4 > this.words.length * 4) this.#growWords(size + 4);
    this.scratchSize = size;
    loadWords(bytes, start, end, this.#signed);
    this.#hash = hashWords(this.#seedLow, this.#seedHigh, this.#signed, size);
  }

  /** Loads the key of a record. */
  loadRecord(ref: number): void {
    const at = this.#arenas.keyAt(ref);
    this.load(this.#arenas.buffer(ref), at, at + this.#arenas.keySize(ref));
  }

  #growWords(size: number): void {
    this.#signed = new Int32Array(Math.min(KEY_BYTES_MAX + 8, size * 2) >> 2);
    this.words = new Uint32Array(this.#signed.buffer);
  }

  /** Id of the loaded key, 0 when it is not here. */
  find(): number {
    const slots = this.#slots;
    let ref = slots.first(this.#hash);
    while (ref !== 0 && !this.#equals(ref)) ref = slots.next(this.#hash);
    return ref === 0 ? 0 : this.#arenas.keyId(ref);
  }

  #equals(ref: number): boolean {
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

  /** The hash of the loaded key. */
  get hash(): number {
    return this.#hash;
  }

  /** The secret, for a thread that hashes keys on its own. */
  get seeds(): { readonly low: number; readonly high: number } {
    return { low: this.#seedLow, high: this.#seedHigh };
  }

  /**
   * Makes `ref` the newest record of its key, whose hash is given. Returns the record that was the
   * newest one before; 0 when the key is new: then it got an id.
   */
  supersede(ref: number, hash: number, klass: number): number {
    const slots = this.#slots;
    this.#hash = hash;
    let head = slots.first(hash);
    while (head !== 0 && !this.#isSameKey(head, ref)) head = slots.next(hash);
    if (head === 0) {
      this.insert(ref, klass);
      return 0;
    }
    const id = this.#arenas.keyId(head);
    slots.replaceFound(hash, ref);
    this.#heads[id >>> CHUNK_BITS]![id & CHUNK_MASK] = ref;
    this.#arenas.setKeyId(ref, id);
    return head;
  }

  #isSameKey(a: number, b: number): boolean {
    const arenas = this.#arenas;
    const size = arenas.keySize(a);
    if (size !== arenas.keySize(b)) return false;
    const wordsA = arenas.words[a >>> GRANULE_BITS]!;
    const wordsB = arenas.words[b >>> GRANULE_BITS]!;
    const atA = arenas.keyAt(a) >> 2;
    const atB = arenas.keyAt(b) >> 2;
    for (let i = 0; i < (size + 3) >> 2; i++) if (wordsA[atA + i] !== wordsB[atB + i]) return false;
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

  /** Adds the loaded key, which is not here yet and lies in the record `ref`. */
  insert(ref: number, klass: number): number {
    const id = this.#freeIds.length > 0 ? this.#freeIds.pop()! : this.#newId();
    this.#slots.insert(this.#hash, ref);
    this.#size++;
    this.#heads[id >>> CHUNK_BITS]![id & CHUNK_MASK] = ref;
    this.#classes[id >>> CHUNK_BITS]![id & CHUNK_MASK] = klass;
    this.#arenas.setKeyId(ref, id);
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

  /** Forgets the loaded key, whose id is `id`. The id may be given to another key. */
  remove(id: number): void {
    this.#slots.remove(this.#hash, this.head(id));
    this.#size--;
    this.#heads[id >>> CHUNK_BITS]![id & CHUNK_MASK] = 0;
    this.#freeIds.push(id);
  }

  /** The newest record of a key. */
  head(id: number): number {
    return this.#heads[id >>> CHUNK_BITS]![id & CHUNK_MASK]!;
  }

  /** The loaded key, whose id is `id`, has a newer record, or its newest one was moved. */
  setHead(id: number, ref: number): void {
    const heads = this.#heads[id >>> CHUNK_BITS]!;
    this.#slots.replace(this.#hash, heads[id & CHUNK_MASK]!, ref);
    heads[id & CHUNK_MASK] = ref;
    this.#arenas.setKeyId(ref, id);
  }

  classOf(id: number): number {
    return this.#classes[id >>> CHUNK_BITS]![id & CHUNK_MASK]!;
  }
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
