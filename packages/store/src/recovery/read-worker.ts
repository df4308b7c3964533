// shell: the thread that reads and checks files ahead; see read-ahead.ts
/**
 * Reads go on while what was read is checked: pieces of files are asked for in order, a few ahead.
 * Each is read into an arena, where most of it stays: memory that is touched for the first time
 * costs more than reading into it, and so does copying.
 */
import { type FileHandle, constants, open } from 'node:fs/promises';
import { workerData } from 'node:worker_threads';
import { ARENA_BYTES } from '../record/arenas.ts';
import { DIRECT_BYTES } from '../wal/frame.ts';
import { BATCHES, type ReadStart, WORD_CONSUMED, WORD_ENDED, WORD_PRODUCED } from './read-ahead.ts';
import { ReadBatch } from './read-batch.ts';
import { FrameShelf } from './frame-shelf.ts';
import type { RecordShelf } from './record-shelf.ts';

/** Pieces that are asked for ahead. */
const PIECES = 8;

interface Piece {
  readonly file: number;
  /** Where it stands in the file, and the size of the file. */
  readonly at: number;
  readonly size: number;
  /** The arena that it is read into. */
  readonly arena: number;
  /** Bytes that were read. */
  readonly count: Promise<number>;
}

const start = workerData as ReadStart;
const words = new Int32Array(start.words);
const batches: readonly ReadBatch[] = start.batches.map((memory) => new ReadBatch(memory));
let produced = 0;
let place: number | null = null;

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

/** The C library begins large memory 16 bytes behind the beginning of a page; others at it. */
const PLACES: readonly number[] = [DIRECT_BYTES - 16, 0];
/** Bytes of a piece: whole pages, wherever in its arena it begins. */
const PIECE_BYTES: number = ARENA_BYTES - DIRECT_BYTES;

/** Where in arenas direct reads may begin. Throws where they may not. */
async function placeOf(handle: FileHandle, bytes: Buffer): Promise<number> {
  for (const place of PLACES) {
    try {
      await handle.read(bytes, place, DIRECT_BYTES, 0);
      return place;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EINVAL') throw error;
    }
  }
  throw new Error('arenas begin at odd addresses');
}

async function* piecesOf(shelf: RecordShelf): AsyncGenerator<Piece> {
  for (const [file, { path }] of start.files.entries()) {
    const handle = await openFile(path);
    const { size } = await handle.stat();
    const reads: Piece[] = [];
    try {
      for (let at = 0; at < size || reads.length > 0;) {
        while (at < size && reads.length < PIECES) {
          const arena = shelf.takeArena();
          if (arena < 0) throw new Error('the reserved arenas are full');
          place ??= await placeOf(handle, shelf.bytes(arena));
          const read = handle.read(shelf.bytes(arena), place, PIECE_BYTES, at);
          const count = read.then(({ bytesRead }) => bytesRead);
          // Told by whoever waits for it; until then nobody may.
          count.catch(() => {});
          reads.push({ file, at, size, arena, count });
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
  const frames = new FrameShelf(start, takeBatch(), giveBatch);
  for await (const { file, at, size, arena, count } of piecesOf(frames.shelf)) {
    if (at === 0 && !frames.begin(file)) return;
    const found = await count;
    if (found < Math.min(PIECE_BYTES, size - at)) return;
    const from = place ?? 0;
    if (!frames.take(arena, from, from + found, start.files[file]?.isLog === true)) return;
  }
}

/** The end is told, whatever it is; an error is the thread's. */
async function run(): Promise<void> {
  try {
    await readAll();
  } finally {
    Atomics.store(words, WORD_ENDED, 1);
    Atomics.notify(words, WORD_PRODUCED);
  }
}

void run();
