// data plane: finds a place in the arenas for records that were read from a file
/**
 * The reading thread's half of a start. Files are read into arenas, piece by piece: what of a piece
 * belongs to one class stays where it was read, and the rest is copied to an arena of its class.
 * Nobody else puts anything in these arenas until the reader has ended.
 *
 *   arenas   [ piece | piece | piece | ...  not used  ... | copies | copies ]
 *                                   ^ front               ^ back
 */
import { hashWords } from '@megaplane/base/bytes';
import {
  ARENA_BYTES,
  CLASSES_MAX,
  FLAG_GARBAGE,
  FLAG_LEASE,
  GRANULE_BITS,
  HEADER_BYTES,
  KEY_BYTES_MAX,
  type Reserved,
} from '../record/arenas.ts';
import { type ClassPrefix, classOfKey } from '../record/classes.ts';
import type { ReadBatch } from './read-batch.ts';

/** The smallest hole between records that can be told from a record. */
export const HOLE_BYTES_MIN: number = (HEADER_BYTES + 15) & ~15;

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
  readonly #bytes: Buffer[] = [];
  readonly #words: Uint32Array[] = [];
  #front = 0;
  #back: number;
  /** Arenas before `#front` of which nothing was kept. */
  readonly #free: number[] = [];
  /** Class to the arena that takes its copies, counted from 1, and the bytes used of it. */
  readonly #open: Uint32Array = new Uint32Array(CLASSES_MAX);
  readonly #used: Uint32Array = new Uint32Array(CLASSES_MAX);
  #key: Int32Array = new Int32Array(256);

  constructor(start: ShelfStart) {
    this.#start = start;
    for (const block of start.reserved.blocks) {
      for (let at = 0; at < block.byteLength; at += ARENA_BYTES) {
        this.#bytes.push(Buffer.from(block, at, ARENA_BYTES));
        this.#words.push(new Uint32Array(block, at, ARENA_BYTES >> 2));
      }
    }
    this.#back = this.#bytes.length;
  }

  /** An arena to read a piece of a file into, -1 when there is none. */
  takeArena(): number {
    const free = this.#free.pop();
    if (free !== undefined) return free;
    return this.#front < this.#back ? this.#front++ : -1;
  }

  /** Nothing of it was kept. */
  giveArena(arena: number): void {
    this.#free.push(arena);
  }

  bytes(arena: number): Buffer {
    return this.#bytes[arena]!;
  }

  words(arena: number): Uint32Array {
    return this.#words[arena]!;
  }

  /** Will copies of so many bytes find a place, whatever their classes are? */
  hasRoom(bytes: number): boolean {
    const needed = Math.ceil((bytes * 2) / ARENA_BYTES) + this.#start.prefixes.length + 1;
    return this.#back - this.#front >= needed;
  }

  /** Class of the record at bytes[at]. */
  classOf(bytes: Buffer, words: Uint32Array, at: number): number {
    const { prefixes } = this.#start;
    if (prefixes.length === 0) return 0;
    const keyAt = keyPlace(words, at);
    return classOfKey(prefixes, bytes, keyAt, keyAt + (words[(at >> 2) + 9]! & KEY_BYTES_MAX));
  }

  /** The record stays where it was read; what lies between `holeAt` and it is garbage. */
  keep(arena: number, holeAt: number, at: number, klass: number, batch: ReadBatch): void {
    const words = this.#words[arena]!;
    if (holeAt < at) writeHole(words, holeAt >> 2, at - holeAt);
    const ref = (((this.#start.reserved.first + arena) << GRANULE_BITS) | (at >>> 4)) >>> 0;
    this.#tell(words, at, ref, klass, batch);
  }

  /** Copies the record of `size` bytes at bytes[at] to an arena of its class. */
  copy(
    bytes: Buffer,
    words: Uint32Array,
    at: number,
    size: number,
    klass: number,
    batch: ReadBatch,
  ): void {
    this.#tell(words, at, this.#allocate(klass, size), klass, batch);
    bytes.copy(this.#bytes[this.#open[klass]! - 1]!, this.#used[klass]! - size, at, at + size);
  }

  /** Copies records from bytes[at, end) until the batch is full; returns where it stopped. */
  copyAll(bytes: Buffer, words: Uint32Array, at: number, end: number, batch: ReadBatch): number {
    let place = at;
    const count = batch.refs.length;
    while (place < end && batch.records < count) {
      const size = recordSize(words, place >> 2);
      this.copy(bytes, words, place, size, this.classOf(bytes, words, place), batch);
      place += size;
    }
    return place;
  }

  #tell(words: Uint32Array, at: number, ref: number, klass: number, batch: ReadBatch): void {
    const index = batch.records++;
    batch.refs[index] = ref;
    batch.classes[index] = klass;
    const keySize = words[(at >> 2) + 9]! & KEY_BYTES_MAX;
    batch.hashes[index] = this.#hash(words, keyPlace(words, at) >> 2, keySize);
  }

  #allocate(klass: number, size: number): number {
    let used = this.#used[klass]!;
    if (this.#open[klass] === 0 || used + size > ARENA_BYTES) {
      this.#open[klass] = this.#back--;
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

/** Whoever walks over the arena takes a hole for a dead record. */
function writeHole(words: Uint32Array, word: number, size: number): void {
  words[word + 7] = size - HEADER_BYTES;
  words[word + 9] = FLAG_GARBAGE << 24;
}

/** Where the key of the record at byte `at` begins. */
function keyPlace(words: Uint32Array, at: number): number {
  const flags = words[(at >> 2) + 9]! >>> 24;
  return at + ((flags & FLAG_LEASE) === 0 ? HEADER_BYTES : HEADER_BYTES + 8);
}

/** Bytes of the record that begins at a word. */
export function recordSize(words: Uint32Array, word: number): number {
  const last = words[word + 9]!;
  const head = ((last >>> 24) & FLAG_LEASE) === 0 ? HEADER_BYTES : HEADER_BYTES + 8;
  return (head + (((last & KEY_BYTES_MAX) + 3) & ~3) + words[word + 7]! + 15) & ~15;
}
