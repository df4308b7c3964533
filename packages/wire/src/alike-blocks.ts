// data plane
/**
 * A header block that differs from one before it in the value of one field alone.
 *
 * A client that keeps a hundred thousand objects sends the same fields with another `:path` each
 * time, and each answer has an `audit-id` of its own. Where the octets before and behind that value
 * are those of the block before, and the dynamic table is unchanged, only the value is read.
 */
import { ownBytes } from '@megaplane/base/bytes';
import type { HpackDecoder } from './hpack-decoder.ts';

const BLOCK_BYTES_MAX = 1024;
/** After this many unlike ones in a row most are not kept: this peer does not repeat itself. */
const MISSES_MAX = 32;
const NONE: Buffer = Buffer.alloc(0);

export class AlikeBlocks<Meaning> {
  /** What the block that was found would mean with the value of the one that was kept. */
  meaning: Meaning | null = null;
  #before: Buffer = NONE;
  #behind: Buffer = NONE;
  #epoch = -1;
  /** Octets of the fields without the value, as RFC 9113 6.5.2 counts them. */
  #size = 0;
  #misses = 0;

  /** The value of the varying field, if the block `bytes[start..end)` is like the one kept. */
  find(decoder: HpackDecoder, bytes: Buffer, start: number, end: number): string | null {
    if (this.#epoch !== decoder.table.epoch) return null;
    const before = this.#before;
    const behind = this.#behind;
    const valueAt = start + before.length;
    const valueTo = end - behind.length;
    if (valueAt >= valueTo) return null;
    for (let i = 0; i < before.length; i++) if (bytes[start + i] !== before[i]) return null;
    for (let i = 0; i < behind.length; i++) if (bytes[valueTo + i] !== behind[i]) return null;
    const value = decoder.wholeValue(bytes, valueAt, valueTo, this.#size);
    if (value !== null) this.#misses = 0;
    return value;
  }

  /**
   * Keeps what `decoder` has just made of a block; false if its varying field is not there as a
   * literal, once.
   */
  keep(
    decoder: HpackDecoder,
    bytes: Buffer,
    start: number,
    end: number,
    value: string,
    meaning: Meaning,
  ): boolean {
    const { varyingAt, varyingTo } = decoder;
    if (decoder.changed || decoder.overflow || varyingAt <= 0) return false;
    if (!comesOnce(decoder.fields, decoder.varying)) return false;
    if (end - start > BLOCK_BYTES_MAX) return false;
    if (++this.#misses > MISSES_MAX && (this.#misses & 63) !== 0) return true;
    const own = ownBytes(bytes, start, end);
    this.#before = own.subarray(0, varyingAt - start);
    this.#behind = own.subarray(varyingTo - start);
    this.#epoch = decoder.table.epoch;
    this.#size = decoder.size - value.length;
    this.meaning = meaning;
    return true;
  }
}

/** A field may also come as an index, which is no literal: that one keeps its value. */
function comesOnce(fields: readonly string[], name: string): boolean {
  let count = 0;
  for (let i = 0; i < fields.length; i += 2) if (fields[i] === name) count++;
  return count === 1;
}
