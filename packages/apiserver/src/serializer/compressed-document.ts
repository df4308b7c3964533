/** Large documents that are asked for again and again, compressed once and off the event loop. */
import { guarded } from '@megaplane/base/deferred';
import { constants, createGzip } from 'node:zlib';
import { PLAIN_BYTES_MAX } from '../request/gzip-member.ts';

/** Null: it could not be compressed, and goes as it is. */
type Done = (packed: Buffer | null) => void;

interface Compressed {
  packed: Buffer | null;
  readonly waiting: Done[];
}

/** What is compressed goes with its document. */
const known = new WeakMap<object, Compressed>();

/** Whether a document of these chunks is large enough to be compressed. */
export function isWorthIt(chunks: readonly Buffer[]): boolean {
  let bytes = 0;
  for (const chunk of chunks) bytes += chunk.length;
  return bytes > PLAIN_BYTES_MAX;
}

/**
 * Calls `done` with the document compressed, as one gzip member: at once where that was done
 * before. What is compressed is kept as long as somebody keeps `document`.
 */
export function whenCompressed(document: object, chunks: readonly Buffer[], done: Done): void {
  const found = known.get(document);
  if (found !== undefined) {
    if (found.packed === null) found.waiting.push(done);
    else done(found.packed);
    return;
  }
  const compressed: Compressed = { packed: null, waiting: [done] };
  known.set(document, compressed);
  const pieces: Buffer[] = [];
  const packer = createGzip({ level: constants.Z_BEST_SPEED });
  const finish = (packed: Buffer | null): void => {
    compressed.packed = packed;
    if (packed === null) known.delete(document);
    for (const one of compressed.waiting.splice(0)) one(packed);
  };
  packer.on(
    'data',
    guarded((piece: Buffer) => pieces.push(piece)),
  );
  packer.on(
    'end',
    guarded(() => finish(Buffer.concat(pieces))),
  );
  packer.on(
    'error',
    guarded(() => finish(null)),
  );
  for (const chunk of chunks) packer.write(chunk);
  packer.end();
}
