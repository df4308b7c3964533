/**
 * Encodings of objects that were made once and are asked for again: a list in protobuf costs ten
 * times what copying it costs. An object of a revision never changes, so what is kept is never
 * wrong; it is told apart by revision and key, since several changes may share a revision.
 *
 *   chunk:  [item length u32][key length u16][key][item] [item length u32]...
 *
 * Chunks that nobody reads any more make room for others; where all are in use nothing more is
 * taken, so that lists that are longer than the budget keep what they have.
 */
import { assert } from '@megaplane/base/assert';
import type { Row } from '../storage/storage.ts';

/** What is kept at most. */
export const KEPT_BYTES_MAX: number = 64 * 1024 * 1024;
/** Of several huge pages of Linux: touched page by page, a megabyte costs 2 ms. */
const CHUNK_BYTES: number = 8 * 1024 * 1024;
const HEAD_BYTES = 6;
/** A chunk must be read this often, in periods of so many ticks (seconds), to stay. */
const PERIOD_TICKS = 120;
/** Kinds in their representations that are told apart. */
const SPACES_MAX = 1024;

interface Chunk {
  readonly bytes: Buffer;
  length: number;
  /** Bytes that were read in this period, and in the one before. */
  read: number;
  readBefore: number;
}

/** The encodings of one kind in one representation. */
export interface KeptSpace {
  /** The encoding of the row's object, good for as long as it is held, or null. */
  find(row: Row): Buffer | null;
  /** Copies the encoding; what is kept, good for as long as it is held, or null. */
  keep(row: Row, encoding: Uint8Array): Buffer | null;
}

export class KeptEncodings {
  readonly #chunksMax: number;
  readonly #chunkBytes: number;
  readonly #chunks: Chunk[] = [];
  /** From revision and space to chunk and offset. */
  readonly #places = new Map<number, number>();
  #open = -1;
  #spaces = 0;
  #ticks = 0;

  constructor(bytesMax: number = KEPT_BYTES_MAX, chunkBytes: number = CHUNK_BYTES) {
    this.#chunkBytes = chunkBytes;
    this.#chunksMax = Math.floor(bytesMax / chunkBytes);
  }

  /** Memory that is held. */
  get bytes(): number {
    return this.#chunks.length * this.#chunkBytes;
  }

  /** A space of its own; null where there are too many. */
  space(): KeptSpace | null {
    if (this.#spaces === SPACES_MAX) return null;
    const number = this.#spaces++;
    return {
      find: (row) => this.#find(number, row),
      keep: (row, encoding) => this.#keep(number, row, encoding),
    };
  }

  #find(space: number, row: Row): Buffer | null {
    const place = this.#places.get(row.modRevision * SPACES_MAX + space);
    if (place === undefined) return null;
    const chunk = this.#chunks[Math.floor(place / this.#chunkBytes)];
    assert(chunk !== undefined, 'a place lies in a chunk');
    const at = place % this.#chunkBytes;
    const keyLength = chunk.bytes.readUInt16LE(at + 4);
    const keyAt = at + HEAD_BYTES;
    const itemAt = keyAt + keyLength;
    if (row.key.compare(chunk.bytes, keyAt, itemAt, row.keyStart, row.keyEnd) !== 0) return null;
    const end = itemAt + chunk.bytes.readUInt32LE(at);
    chunk.read += end - at;
    return chunk.bytes.subarray(itemAt, end);
  }

  #keep(space: number, row: Row, encoding: Uint8Array): Buffer | null {
    const keyLength = row.keyEnd - row.keyStart;
    const size = HEAD_BYTES + keyLength + encoding.length;
    const id = row.modRevision * SPACES_MAX + space;
    if (size > this.#chunkBytes / 4 || this.#places.has(id)) return null;
    const index = this.#roomFor(size);
    const chunk = this.#chunks[index];
    if (chunk === undefined) return null;
    const { bytes, length } = chunk;
    bytes.writeUInt32LE(encoding.length, length);
    bytes.writeUInt16LE(keyLength, length + 4);
    row.key.copy(bytes, length + HEAD_BYTES, row.keyStart, row.keyEnd);
    bytes.set(encoding, length + HEAD_BYTES + keyLength);
    chunk.length += size;
    chunk.read += size;
    this.#places.set(id, index * this.#chunkBytes + length);
    return bytes.subarray(length + HEAD_BYTES + keyLength, length + size);
  }

  /** A chunk with room, or -1. */
  #roomFor(size: number): number {
    const open = this.#chunks[this.#open];
    if (open !== undefined && open.length + size <= this.#chunkBytes) return this.#open;
    if (this.#chunks.length < this.#chunksMax) {
      this.#open = this.#chunks.push(this.#newChunk()) - 1;
      return this.#open;
    }
    const unread = this.#chunks.findIndex((chunk) => chunk.read + chunk.readBefore === 0);
    if (unread < 0) return -1;
    this.#forget(unread);
    // new memory: what was found in the old one may still be on its way to a client
    this.#chunks[unread] = this.#newChunk();
    this.#open = unread;
    return unread;
  }

  #newChunk(): Chunk {
    return {
      bytes: Buffer.allocUnsafeSlow(this.#chunkBytes),
      length: 0,
      read: 0,
      readBefore: 0,
    };
  }

  #forget(index: number): void {
    const start = index * this.#chunkBytes;
    const end = start + this.#chunkBytes;
    for (const [id, place] of this.#places) {
      if (place >= start && place < end) this.#places.delete(id);
    }
  }

  /** About once a second. A chunk of which little is read holds states that are over. */
  tick(): void {
    if (++this.#ticks < PERIOD_TICKS) return;
    this.#ticks = 0;
    for (const chunk of this.#chunks) {
      chunk.readBefore = 2 * chunk.read < chunk.length ? 0 : chunk.read;
      chunk.read = 0;
    }
    if (this.#chunks.some((chunk) => chunk.readBefore > 0)) return;
    this.#chunks.length = 0;
    this.#places.clear();
    this.#open = -1;
  }
}
