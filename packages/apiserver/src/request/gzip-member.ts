/**
 * gzip, as answers have it: one member (RFC 1952), whatever it is made of. A file may have many,
 * but most clients stop after the first or refuse what follows it.
 *
 * The pieces of a streamed body are deflated each by itself, up to a byte boundary and without the
 * mark of a last block, so that one after the other they are one deflate stream (RFC 1951): nothing
 * is held between them but a checksum and a count.
 */
import { constants, crc32, deflateRawSync, gzipSync } from 'node:zlib';
import type { Exchange } from '@megaplane/wire/exchange';

/** Answers up to here are sent as they are, as upstream decides. */
export const PLAIN_BYTES_MAX: number = 128 * 1024;

/** Fields of an answer that is compressed. */
export const PACKED_FIELDS: readonly string[] = [
  'content-encoding',
  'gzip',
  'vary',
  'Accept-Encoding',
];

/** Upstream's level: the one that costs least. */
const level = constants.Z_BEST_SPEED;

/** No name, no time, no flags; made anywhere. */
const HEAD: Buffer = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255]);
/** An empty block that is the last one. */
const LAST_BLOCK: Buffer = Buffer.from([3, 0]);
const TAIL_BYTES = 8;

/**
 * Whether an object is sent compressed to who asks so: upstream looks for the bare word, and takes
 * no weights.
 */
export function asksForGzip(exchange: Exchange): boolean {
  const codings = exchange.header('accept-encoding');
  return codings !== undefined && codings.split(',').some((coding) => coding.trim() === 'gzip');
}

/** The whole of a body. */
export function gzipped(bytes: Uint8Array | string): Buffer {
  return gzipSync(bytes, { level });
}

/** A body that comes in pieces: the head, each piece, the tail. */
export class GzipMember {
  #sum = 0;
  #bytes = 0;

  /** What stands before the first piece. */
  head(): Buffer {
    return HEAD;
  }

  /** The next piece, compressed. */
  piece(bytes: Uint8Array): Buffer {
    this.#sum = crc32(bytes, this.#sum);
    this.#bytes += bytes.length;
    return deflateRawSync(bytes, { level, finishFlush: constants.Z_SYNC_FLUSH });
  }

  /** What stands behind the last piece. */
  tail(): Buffer {
    const tail = Buffer.alloc(TAIL_BYTES);
    tail.writeUInt32LE(this.#sum, 0);
    tail.writeUInt32LE(this.#bytes % 2 ** 32, 4);
    return Buffer.concat([LAST_BLOCK, tail]);
  }
}
