// data plane
/**
 * Header blocks that a connection has seen, by their octets.
 *
 * Peers repeat themselves: a gRPC client sends the same block with each call of a method, a server
 * the same with each answer. A block that left the dynamic table alone means the same as long as
 * the table does not change, and need not be decoded again.
 */
import type { HpackDecoder } from './hpack-decoder.ts';

const BLOCKS_MAX = 4;
const BLOCK_BYTES_MAX = 512;
/** After this many unknown blocks in a row, most are not kept: this peer does not repeat itself. */
const MISSES_MAX = 32;

interface Known<Meaning> {
  readonly bytes: Buffer;
  readonly epoch: number;
  readonly meaning: Meaning;
}

export class KnownBlocks<Meaning> {
  #blocks: Known<Meaning>[] | null = null;
  #next = 0;
  #misses = 0;

  /** What the block `bytes[start..end)` means, if it was kept and still means it; else null. */
  find(decoder: HpackDecoder, bytes: Buffer, start: number, end: number): Meaning | null {
    const blocks = this.#blocks;
    if (blocks === null) return null;
    const length = end - start;
    const epoch = decoder.table.epoch;
    for (let i = 0; i < blocks.length; i++) {
      const block = blocks[i]!;
      if (block.bytes.length !== length || block.epoch !== epoch) continue;
      let at = 0;
      while (at < length && block.bytes[at] === bytes[start + at]) at++;
      if (at < length) continue;
      this.#misses = 0;
      return block.meaning;
    }
    return null;
  }

  /** Keeps what `decoder` has just made of a block. */
  keep(decoder: HpackDecoder, bytes: Buffer, start: number, end: number, meaning: Meaning): void {
    if (decoder.changed || decoder.overflow || end - start > BLOCK_BYTES_MAX) return;
    if (++this.#misses > MISSES_MAX && (this.#misses & 63) !== 0) return;
    const copy = Buffer.from(bytes.subarray(start, end));
    this.#blocks ??= [];
    this.#blocks[this.#next++ % BLOCKS_MAX] = { bytes: copy, epoch: decoder.table.epoch, meaning };
  }
}
