// data plane: leases as rows of numbers, in chunks that copies share
/**
 * Rows are found by lease number:
 *
 *   [id high: u32][id low: u32][ttl seconds: f64][deadline ms: f64][used: u32][none: u32]
 *
 * Whoever reads all of them over several turns takes a copy, which
 * shares the chunks: a chunk that is shared is copied before a lease of it begins or ends. So a
 * copy costs a pointer for each chunk, and no growth costs more than a chunk.
 */
import { assertWhole } from '@megaplane/base/assert';

const CHUNK_BITS = 15;
const CHUNK_ROWS: number = 1 << CHUNK_BITS;
const CHUNK_MASK: number = CHUNK_ROWS - 1;
const ROW_BYTES = 32;
// Of a row, by 4 bytes and by 8; what a renewal needs lies side by side.
const HIGH = 0;
const LOW = 1;
const TTL = 1;
const DEADLINE = 2;
const USED = 6;

class Chunk {
  readonly words: Uint32Array;
  readonly doubles: Float64Array;
  isShared = false;

  constructor(bytes: ArrayBuffer = new ArrayBuffer(CHUNK_ROWS * ROW_BYTES)) {
    this.words = new Uint32Array(bytes);
    this.doubles = new Float64Array(bytes);
  }

  copy(): Chunk {
    return new Chunk(this.words.slice().buffer);
  }
}

export class LeaseRows {
  readonly #chunks: Chunk[];
  /** Leases. */
  count: number;
  /** One past the highest number; 0 is no lease. */
  end: number;

  constructor(chunks: Chunk[] = [], count = 0, end = 1) {
    this.#chunks = chunks;
    this.count = count;
    this.end = end;
  }

  /** The leases of this moment. Their deadlines may be later ones: renewals go on. */
  copy(): LeaseRows {
    for (const chunk of this.#chunks) chunk.isShared = true;
    return new LeaseRows([...this.#chunks], this.count, this.end);
  }

  isUsed(lease: number): boolean {
    return lease > 0 && lease < this.end && this.#chunkOf(lease).words[wordOf(lease) + USED] === 1;
  }

  high(lease: number): number {
    return this.#chunkOf(lease).words[wordOf(lease) + HIGH]!;
  }

  low(lease: number): number {
    return this.#chunkOf(lease).words[wordOf(lease) + LOW]!;
  }

  ttlSeconds(lease: number): number {
    return this.#chunkOf(lease).doubles[doubleOf(lease) + TTL]!;
  }

  deadlineMs(lease: number): number {
    return this.#chunkOf(lease).doubles[doubleOf(lease) + DEADLINE]!;
  }

  /** A number that is not used: a lease has it now. */
  add(lease: number, high: number, low: number): void {
    assertWhole(lease > 0 && !this.isUsed(lease), 'a number is that of one lease');
    while (this.#chunks.length <= lease >>> CHUNK_BITS) this.#chunks.push(new Chunk());
    const { words } = this.#own(lease);
    const at = wordOf(lease);
    words[at + USED] = 1;
    words[at + HIGH] = high;
    words[at + LOW] = low;
    this.count++;
    if (lease >= this.end) this.end = lease + 1;
  }

  setTtlSeconds(lease: number, ttlSeconds: number): void {
    this.#own(lease).doubles[doubleOf(lease) + TTL] = ttlSeconds;
  }

  /** Copies may see it. */
  setDeadlineMs(lease: number, deadlineMs: number): void {
    this.#chunkOf(lease).doubles[doubleOf(lease) + DEADLINE] = deadlineMs;
  }

  remove(lease: number): void {
    assertWhole(this.isUsed(lease), 'a lease ends once');
    this.#own(lease).words[wordOf(lease) + USED] = 0;
    this.count--;
  }

  #chunkOf(lease: number): Chunk {
    return this.#chunks[lease >>> CHUNK_BITS]!;
  }

  #own(lease: number): Chunk {
    const chunk = this.#chunkOf(lease);
    return chunk.isShared ? (this.#chunks[lease >>> CHUNK_BITS] = chunk.copy()) : chunk;
  }
}

function wordOf(lease: number): number {
  return ((lease & CHUNK_MASK) * ROW_BYTES) >> 2;
}

function doubleOf(lease: number): number {
  return ((lease & CHUNK_MASK) * ROW_BYTES) >> 3;
}
