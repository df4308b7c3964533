// data plane
/**
 * Header blocks that differ from one before them in the value of one field alone.
 *
 * A client that keeps a hundred thousand objects sends the same fields with another `:path` each
 * time, and each answer has an `audit-id` of its own. Where the octets before and behind that value
 * are those of a block before, and the dynamic table is unchanged, only the value is read.
 */
import { ownBytes } from '@megaplane/base/bytes';
import type { HpackDecoder } from './hpack-decoder.ts';

const BLOCK_BYTES_MAX = 1024;
/** After this many unlike ones in a row most are not kept: this peer does not repeat itself. */
const MISSES_MAX = 32;

/** Peers take turns with so many: names and bodies of two lengths, reads between writes. */
const BLOCKS_MAX = 4;

interface Kept<Meaning> {
  readonly before: Buffer;
  readonly behind: Buffer;
  readonly epoch: number;
  /** Octets of the fields without the value, as RFC 9113 6.5.2 counts them. */
  readonly size: number;
  readonly meaning: Meaning;
}

export class AlikeBlocks<Meaning> {
  /** What the block that was found would mean with the value of the one that was kept. */
  meaning: Meaning | null = null;
  readonly #kept: Kept<Meaning>[] = [];
  /** Of the one that was of use last: most often it is of use again. */
  #last = 0;
  #next = 0;
  #misses = 0;

  /** The value of the varying field, if the block `bytes[start..end)` is like one that is kept. */
  find(decoder: HpackDecoder, bytes: Buffer, start: number, end: number): string | null {
    const kept = this.#like(decoder, bytes, start, end);
    if (kept === null) return null;
    const valueAt = start + kept.before.length;
    return decoder.wholeValue(bytes, valueAt, end - kept.behind.length, kept.size);
  }

  /** Whether the block is like one that is kept, whatever its varying field says. */
  has(decoder: HpackDecoder, bytes: Buffer, start: number, end: number): boolean {
    const kept = this.#like(decoder, bytes, start, end);
    if (kept === null) return false;
    const valueAt = start + kept.before.length;
    return decoder.hasWholeValue(bytes, valueAt, end - kept.behind.length, kept.size);
  }

  /** The one that is kept and has the same octets around its value; `meaning` is its own then. */
  #like(decoder: HpackDecoder, bytes: Buffer, start: number, end: number): Kept<Meaning> | null {
    const count = this.#kept.length;
    for (let i = 0, at = this.#last; i < count; i++, at = at + 1 === count ? 0 : at + 1) {
      const kept = this.#kept[at]!;
      if (kept.epoch !== decoder.table.epoch) continue;
      const valueAt = start + kept.before.length;
      const valueTo = end - kept.behind.length;
      if (valueAt >= valueTo) continue;
      if (!stands(kept.before, bytes, start) || !stands(kept.behind, bytes, valueTo)) continue;
      this.meaning = kept.meaning;
      this.#last = at;
      this.#misses = 0;
      return kept;
    }
    return null;
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
    this.#last = this.#next++ % BLOCKS_MAX;
    this.#kept[this.#last] = {
      before: own.subarray(0, varyingAt - start),
      behind: own.subarray(varyingTo - start),
      epoch: decoder.table.epoch,
      size: decoder.size - value.length,
      meaning,
    };
    return true;
  }
}

function stands(part: Buffer, bytes: Buffer, at: number): boolean {
  for (let i = 0; i < part.length; i++) if (bytes[at + i] !== part[i]) return false;
  return true;
}

/** A field may also come as an index, which is no literal: that one keeps its value. */
function comesOnce(fields: readonly string[], name: string): boolean {
  let count = 0;
  for (let i = 0; i < fields.length; i += 2) if (fields[i] === name) count++;
  return count === 1;
}
