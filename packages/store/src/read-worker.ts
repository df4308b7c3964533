// shell: the thread that reads and checks files ahead; see read-ahead.ts
/**
 * Reads go on while what was read is checked and laid in arenas: pieces of files are asked for in
 * order, a few ahead. A frame that begins in one piece and ends in the next is put together in the
 * room that each piece has in front.
 */
import { type FileHandle, constants, open } from 'node:fs/promises';
import { workerData } from 'node:worker_threads';
import { DIRECT_BYTES, FILE_HEADER_BYTES } from './frame.ts';
import { SLOT_BYTES } from './log-files.ts';
import { BATCHES, type ReadStart, WORD_CONSUMED, WORD_ENDED, WORD_PRODUCED } from './read-ahead.ts';
import { ReadBatch } from './read-batch.ts';
import { FrameShelf } from './frame-shelf.ts';

/** Bytes asked for at a time, and how many such pieces are in memory. */
const PIECE_BYTES: number = 4 * 1024 * 1024;
const PIECES = 10;

interface Piece {
  readonly file: number;
  /** Where it stands in the file, and the size of the file. */
  readonly at: number;
  readonly size: number;
  readonly bytes: Buffer;
  /** Bytes that were read. */
  readonly count: Promise<number>;
}

const start = workerData as ReadStart;
const words = new Int32Array(start.words);
const batches: readonly ReadBatch[] = start.batches.map((memory) => new ReadBatch(memory));
let produced = 0;

/** Waits until a batch has been emptied. */
function takeBatch(): ReadBatch {
  for (;;) {
    const consumed = Atomics.load(words, WORD_CONSUMED);
    if (produced - consumed < BATCHES) {
      const batch = batches[produced % BATCHES] as ReadBatch;
      batch.clear();
      return batch;
    }
    Atomics.wait(words, WORD_CONSUMED, consumed);
  }
}

function giveBatch(): ReadBatch {
  produced++;
  Atomics.store(words, WORD_PRODUCED, produced);
  Atomics.notify(words, WORD_PRODUCED);
  return takeBatch();
}

async function openFile(path: string): Promise<FileHandle> {
  const direct = (constants as { O_DIRECT?: number }).O_DIRECT ?? 0;
  try {
    return await open(path, constants.O_RDONLY | direct);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EINVAL') throw error;
    return open(path, constants.O_RDONLY);
  }
}

/** Room for a frame's beginning, then the piece; only growable memory begins at a page. */
function pieceMemory(): Buffer {
  const size = SLOT_BYTES + PIECE_BYTES;
  return Buffer.from(new SharedArrayBuffer(size, { maxByteLength: size }), 0, size);
}

async function* piecesOf(memory: readonly Buffer[]): AsyncGenerator<Piece> {
  let index = 0;
  for (const [file, { path }] of start.files.entries()) {
    const handle = await openFile(path);
    const { size } = await handle.stat();
    const reads: Piece[] = [];
    try {
      for (let at = 0; at < size || reads.length > 0;) {
        while (at < size && reads.length < PIECES - 1) {
          const bytes = memory[index++ % PIECES] as Buffer;
          const read = handle.read(bytes, SLOT_BYTES, PIECE_BYTES, at);
          const count = read.then(({ bytesRead }) => bytesRead);
          // Told by whoever waits for it; until then nobody may.
          count.catch(() => {});
          reads.push({ file, at, size, bytes, count });
          at += PIECE_BYTES;
        }
        const piece = reads.shift();
        if (piece !== undefined) yield piece;
      }
    } finally {
      await Promise.allSettled(reads.map(({ count }) => count));
      await handle.close();
    }
  }
}

/** Everything up to the first thing that is not as it should be. */
async function readAll(): Promise<void> {
  const memory = Array.from({ length: PIECES }, () => pieceMemory());
  const shelf = new FrameShelf(start, takeBatch(), giveBatch);
  let file = -1;
  let rest: Buffer = Buffer.alloc(0);
  for await (const { file: number, at, size, bytes, count } of piecesOf(memory)) {
    if (number !== file) {
      if (rest.length > 0) return;
      file = number;
    }
    const from = SLOT_BYTES - rest.length;
    rest.copy(bytes, from);
    const found = await count;
    if (found < Math.min(PIECE_BYTES, size - at)) return;
    const end = SLOT_BYTES + found;
    const base = at - SLOT_BYTES;
    if (at === 0 && !shelf.begin(file, bytes, SLOT_BYTES, start.files[file]?.isLog === true))
      return;
    const to = shelf.take(bytes, at === 0 ? SLOT_BYTES + FILE_HEADER_BYTES : from, end, base);
    if (to < 0) return;
    rest = bytes.subarray(to, end);
    if (rest.length > SLOT_BYTES - DIRECT_BYTES + FILE_HEADER_BYTES) return;
  }
}

try {
  await readAll();
} finally {
  Atomics.store(words, WORD_ENDED, 1);
  Atomics.notify(words, WORD_PRODUCED);
}
