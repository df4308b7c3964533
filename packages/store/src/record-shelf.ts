// data plane: lays records that were read from a file in arenas
/**
 * The reading thread's half of a start: each record is copied to its place for good, in an arena
 * of its class, and its key is hashed on the way. Nobody else puts anything in these arenas until
 * the reader has ended.
 */
import { hashWords } from '@megaplane/base/bytes';
import {
  ARENA_BYTES,
  CLASSES_MAX,
  FLAG_LEASE,
  GRANULE_BITS,
  HEADER_BYTES,
  KEY_BYTES_MAX,
  type Reserved,
} from './arenas.ts';
import { type ClassPrefix, classOfKey } from './classes.ts';
import type { ReadBatch } from './read-batch.ts';

export interface ShelfStart {
  readonly reserved: Reserved;
  /** By falling length of prefix. */
  readonly prefixes: readonly ClassPrefix[];
  /** The secret of the hash, see KeyIndex. */
  readonly seedLow: number;
  readonly seedHigh: number;
}

export class RecordShelf {
  readonly #start: ShelfStart;
  readonly #arenas: Buffer[] = [];
  /** Arenas that have been opened. */
  #opened = 0;
  /** Class to its open arena, counted from 1, and the bytes used of it. */
  readonly #open: Uint32Array = new Uint32Array(CLASSES_MAX);
  readonly #used: Uint32Array = new Uint32Array(CLASSES_MAX);
  #key: Int32Array = new Int32Array(256);

  constructor(start: ShelfStart) {
    this.#start = start;
    for (const block of start.reserved.blocks) {
      for (let at = 0; at < block.byteLength; at += ARENA_BYTES) {
        this.#arenas.push(Buffer.from(block, at, ARENA_BYTES));
      }
    }
  }

  /** Will records of so many bytes find a place, whatever their classes are? */
  hasRoom(bytes: number): boolean {
    const needed = Math.ceil((bytes * 2) / ARENA_BYTES) + this.#start.prefixes.length + 1;
    return this.#arenas.length - this.#opened >= needed;
  }

  /** Takes records from bytes[at, end) until the batch is full; returns where it stopped. */
  take(bytes: Buffer, words: Uint32Array, at: number, end: number, batch: ReadBatch): number {
    let place = at;
    const count = batch.refs.length;
    while (place < end && batch.records < count) {
      place += this.#record(bytes, words, place, batch);
    }
    return place;
  }

  #record(bytes: Buffer, words: Uint32Array, at: number, batch: ReadBatch): number {
    const word = at >> 2;
    const last = words[word + 9]!;
    const keySize = last & KEY_BYTES_MAX;
    const headSize = ((last >>> 24) & FLAG_LEASE) === 0 ? HEADER_BYTES : HEADER_BYTES + 8;
    const keyAt = at + headSize;
    const size = recordSize(words, word);
    const klass = classOfKey(this.#start.prefixes, bytes, keyAt, keyAt + keySize);
    const ref = this.#allocate(klass, size);
    const index = batch.records++;
    batch.refs[index] = ref;
    batch.hashes[index] = this.#hash(words, keyAt >> 2, keySize);
    batch.classes[index] = klass;
    const arena = this.#open[klass]! - 1;
    bytes.copy(this.#arenas[arena]!, this.#used[klass]! - size, at, at + size);
    return size;
  }

  #allocate(klass: number, size: number): number {
    let used = this.#used[klass]!;
    if (this.#open[klass] === 0 || used + size > ARENA_BYTES) {
      this.#open[klass] = ++this.#opened;
      used = 0;
    }
    this.#used[klass] = used + size;
    const arena = this.#start.reserved.first + this.#open[klass]! - 1;
    return ((arena << GRANULE_BITS) | (used >>> 4)) >>> 0;
  }

  /** Keys stand in their records as words, zero-padded, as `loadWords` would read them. */
  #hash(words: Uint32Array, at: number, size: number): number {
    if (size + 4 > this.#key.length * 4) this.#key = new Int32Array((size >> 1) + 2);
    const key = this.#key;
    const whole = size >> 2;
    for (let i = 0; i < whole; i++) key[i] = words[at + i]!;
    key[whole] = (size & 3) === 0 ? 0 : words[at + whole]!;
    return hashWords(this.#start.seedLow, this.#start.seedHigh, key, size);
  }
}

/** Bytes of the record that begins at a word. */
export function recordSize(words: Uint32Array, word: number): number {
  const last = words[word + 9]!;
  const head = ((last >>> 24) & FLAG_LEASE) === 0 ? HEADER_BYTES : HEADER_BYTES + 8;
  return (head + (((last & KEY_BYTES_MAX) + 3) & ~3) + words[word + 7]! + 15) & ~15;
}
