// data plane: the latest records within a budget of bytes
import { assert } from '../assert.ts';
import { copyBytes } from '../bytes/bytes.ts';

/**
 * A ring takes records of any length, numbers them, and forgets the oldest when its budget is
 * used up. Any record that is still there is read by its number, without a copy.
 *
 *   chunk    records one after the other, 8-byte aligned, none across two chunks
 *   index    by sequence, in pages of 4096: chunk * chunkBytes + offset, and the length
 *
 * Chunks and pages are added one at a time and reused, so the ring grows to its budget as it is
 * filled and no append copies what is there.
 */
export interface ByteRingOptions {
  /** What records may take together, each with 16 bytes of bookkeeping. */
  readonly bytesMax: number;
  /** Grain of memory, and the limit of one record; at most `bytesMax`, which is the default. */
  readonly chunkBytes?: number;
  /** Number of the first record. */
  readonly firstSequence?: number;
}

const CHUNK_BYTES_DEFAULT: number = 2 ** 20;
const RECORD_OVERHEAD_BYTES = 16;
const PAGE_RECORDS = 4096;

export class ByteRing {
  readonly #bytesMax: number;
  readonly #chunkBytes: number;
  // Chunk k of the ring's whole life is `#chunks[k - #firstChunk]`; pages likewise.
  readonly #chunks: Buffer[] = [];
  #firstChunk = 0;
  readonly #places: Float64Array[] = [];
  readonly #lengths: Uint32Array[] = [];
  #firstPage = 0;
  #spareChunk: Buffer | undefined;
  #end = 0;
  #usedBytes = 0;
  #firstSequence: number;
  #nextSequence: number;

  constructor(options: ByteRingOptions) {
    this.#bytesMax = options.bytesMax;
    const chunkBytes = options.chunkBytes ?? CHUNK_BYTES_DEFAULT;
    this.#chunkBytes = Math.max(64, Math.min(chunkBytes, options.bytesMax) & ~7);
    this.#firstSequence = options.firstSequence ?? 0;
    this.#nextSequence = this.#firstSequence;
    this.#firstPage = Math.floor(this.#firstSequence / PAGE_RECORDS);
  }

  /** Number of the oldest record; equals `nextSequence` in an empty ring. */
  get firstSequence(): number {
    return this.#firstSequence;
  }

  /** Number that the next record will get. */
  get nextSequence(): number {
    return this.#nextSequence;
  }

  /** What the records take, with their bookkeeping. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Memory taken from the system. */
  get memoryBytes(): number {
    const chunks = this.#chunks.length + (this.#spareChunk === undefined ? 0 : 1);
    return chunks * this.#chunkBytes + this.#places.length * PAGE_RECORDS * 12;
  }

  /** Longest record, in bytes. */
  get recordBytesMax(): number {
    return Math.min(this.#chunkBytes, this.#bytesMax - RECORD_OVERHEAD_BYTES);
  }

  /**
   * Appends a copy of a range and returns its number, dropping the oldest records as the budget
   * demands. -1 for a record longer than `recordBytesMax`; the ring is then as it was.
   */
  append(bytes: Uint8Array, start: number, end: number): number {
    const sequence = this.reserve(end - start);
    if (sequence < 0) return -1;
    copyBytes(bytes, start, end, this.bytesAt(sequence), this.startAt(sequence));
    return sequence;
  }

  /** Appends a record whose bytes the caller writes into `bytesAt` from `startAt` on. */
  reserve(length: number): number {
    if (length > this.recordBytesMax) return -1;
    const costBytes = ((length + 7) & ~7) + RECORD_OVERHEAD_BYTES;
    while (this.#usedBytes + costBytes > this.#bytesMax && this.dropOldest());
    const offset = this.#end % this.#chunkBytes;
    if (offset + length > this.#chunkBytes) this.#end += this.#chunkBytes - offset;
    const chunk = Math.floor(this.#end / this.#chunkBytes);
    if (chunk - this.#firstChunk >= this.#chunks.length) this.#addChunk();
    const sequence = this.#nextSequence++;
    const page = Math.floor(sequence / PAGE_RECORDS) - this.#firstPage;
    if (page >= this.#places.length) {
      this.#places.push(new Float64Array(PAGE_RECORDS));
      this.#lengths.push(new Uint32Array(PAGE_RECORDS));
    }
    this.#places[page]![sequence % PAGE_RECORDS] = this.#end;
    this.#lengths[page]![sequence % PAGE_RECORDS] = length;
    this.#end += (length + 7) & ~7;
    this.#usedBytes += costBytes;
    return sequence;
  }

  /** Whether a record is still there. */
  has(sequence: number): boolean {
    return sequence >= this.#firstSequence && sequence < this.#nextSequence;
  }

  /** The memory that holds a record, valid until the record is dropped. */
  bytesAt(sequence: number): Buffer {
    const chunk = Math.floor(this.#placeOf(sequence) / this.#chunkBytes);
    return this.#chunks[chunk - this.#firstChunk]!;
  }

  /** Where in `bytesAt(sequence)` the record starts. */
  startAt(sequence: number): number {
    return this.#placeOf(sequence) % this.#chunkBytes;
  }

  /** Length of a record in bytes. */
  lengthAt(sequence: number): number {
    assert(this.has(sequence), 'a record that the ring does not hold');
    const page = Math.floor(sequence / PAGE_RECORDS) - this.#firstPage;
    return this.#lengths[page]![sequence % PAGE_RECORDS]!;
  }

  /** Forgets the oldest record; false in an empty ring. */
  dropOldest(): boolean {
    if (this.#firstSequence === this.#nextSequence) return false;
    const length = this.lengthAt(this.#firstSequence);
    this.#usedBytes -= ((length + 7) & ~7) + RECORD_OVERHEAD_BYTES;
    this.#firstSequence++;
    const isEmpty = this.#firstSequence === this.#nextSequence;
    const place = isEmpty ? this.#end : this.#placeOf(this.#firstSequence);
    const chunk = Math.floor(place / this.#chunkBytes);
    while (this.#firstChunk < chunk && this.#chunks.length > 0) {
      this.#spareChunk = this.#chunks.shift();
      this.#firstChunk++;
    }
    const page = Math.floor(this.#firstSequence / PAGE_RECORDS);
    while (this.#firstPage < page) {
      this.#places.shift();
      this.#lengths.shift();
      this.#firstPage++;
    }
    return true;
  }

  /** Forgets all records before a number. */
  dropBefore(sequence: number): void {
    while (this.#firstSequence < sequence && this.dropOldest());
  }

  #placeOf(sequence: number): number {
    assert(this.has(sequence), 'a record that the ring does not hold');
    const page = Math.floor(sequence / PAGE_RECORDS) - this.#firstPage;
    return this.#places[page]![sequence % PAGE_RECORDS]!;
  }

  #addChunk(): void {
    this.#chunks.push(this.#spareChunk ?? Buffer.alloc(this.#chunkBytes));
    this.#spareChunk = undefined;
  }
}
