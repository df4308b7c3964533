/** Large documents that are asked for again and again, compressed once and off the event loop. */
import { constants, gzip } from 'node:zlib';
import { PLAIN_BYTES_MAX, takesGzip } from './answer-body.ts';
import type { Call } from './call.ts';

interface Compressed {
  bytes: Buffer | null;
  readonly waiting: ((bytes: Buffer) => void)[];
}

const known = new WeakMap<Buffer, Compressed>();

/** True where the client takes the document compressed, and it is large enough to be. */
export function wantsCompressed(call: Call, document: Buffer): boolean {
  if (document.length <= PLAIN_BYTES_MAX) return false;
  return takesGzip(call);
}

/** Calls `done` with the document compressed: at once where that was done before. */
export function whenCompressed(document: Buffer, done: (bytes: Buffer) => void): void {
  const found = known.get(document);
  if (found !== undefined) {
    if (found.bytes === null) found.waiting.push(done);
    else done(found.bytes);
    return;
  }
  const compressed: Compressed = { bytes: null, waiting: [done] };
  known.set(document, compressed);
  gzip(document, { level: constants.Z_BEST_SPEED }, (error, bytes) => {
    if (error !== null) throw error;
    compressed.bytes = bytes;
    for (const one of compressed.waiting.splice(0)) one(bytes);
  });
}
