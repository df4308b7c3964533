// data plane
/**
 * A header block that differs from the one before it in its path alone.
 *
 * A client that keeps a hundred thousand objects sends the same fields with another path each time:
 * indexed fields, and the path as a literal that is not kept in the dynamic table. Where the octets
 * before and behind that literal are those of the block before, and the table is unchanged, only
 * the path is read.
 */
import type { HpackDecoder } from './hpack-decoder.ts';
import type { RequestHead } from './http2-head.ts';

const BLOCK_BYTES_MAX = 512;
/** After this many unlike ones in a row most are not kept: this peer does not repeat itself. */
const MISSES_MAX = 32;
const SLASH = 47;
const NONE: Buffer = Buffer.alloc(0);

export class PathBlocks {
  #before: Buffer = NONE;
  #behind: Buffer = NONE;
  #epoch = -1;
  /** Octets of the fields without the path, as RFC 9113 6.5.2 counts them. */
  #size = 0;
  #head: RequestHead | null = null;
  #misses = 0;

  /** The head of the block `bytes[start..end)`, if it is like the one before; else null. */
  find(decoder: HpackDecoder, bytes: Buffer, start: number, end: number): RequestHead | null {
    const head = this.#head;
    if (head === null || this.#epoch !== decoder.table.epoch) return null;
    const before = this.#before;
    const behind = this.#behind;
    const pathAt = start + before.length;
    const pathTo = end - behind.length;
    if (pathAt >= pathTo) return null;
    for (let i = 0; i < before.length; i++) if (bytes[start + i] !== before[i]) return null;
    for (let i = 0; i < behind.length; i++) if (bytes[pathTo + i] !== behind[i]) return null;
    const path = decoder.wholeValue(bytes, pathAt, pathTo, this.#size);
    if (path === null || path.charCodeAt(0) !== SLASH) return null;
    this.#misses = 0;
    const { method, authority, fields, bodyBytes, expectsContinue, grpc } = head;
    return { method, path, authority, fields, bodyBytes, expectsContinue, grpc, route: null };
  }

  /** Keeps what `decoder` has just made of a block; false if the path is not its only literal. */
  keep(
    decoder: HpackDecoder,
    bytes: Buffer,
    start: number,
    end: number,
    head: RequestHead,
  ): boolean {
    if (decoder.changed || decoder.overflow || decoder.literals !== 1 || head.grpc) return false;
    if (decoder.literalName !== ':path' || end - start > BLOCK_BYTES_MAX) return false;
    if (++this.#misses > MISSES_MAX && (this.#misses & 63) !== 0) return true;
    this.#before = Buffer.from(bytes.subarray(start, decoder.literalAt));
    this.#behind = Buffer.from(bytes.subarray(decoder.literalTo, end));
    this.#epoch = decoder.table.epoch;
    this.#size = decoder.size - head.path.length;
    this.#head = head;
    return true;
  }
}
