// shell: the thread that reads and checks files ahead; see read-ahead.ts
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { workerData } from 'node:worker_threads';
import {
  DIRECT_BYTES,
  FILE_HEADER_BYTES,
  FRAME_HEADER_BYTES,
  FRAME_OK,
  checkFrame,
  paddingAt,
} from './frame.ts';
import {
  CHUNKS,
  META_END,
  META_FILE,
  META_FILE_AT,
  META_NUMBERS,
  META_START,
  type ReadStart,
  WORD_CONSUMED,
  WORD_ENDED,
  WORD_PRODUCED,
} from './read-ahead.ts';

const start = workerData as ReadStart;
const words = new Int32Array(start.words);
const meta = new Float64Array(start.meta);
const chunks: readonly Buffer[] = start.chunks.map((memory) =>
  Buffer.from(memory, 0, memory.byteLength),
);
let produced = 0;

function openFile(path: string): number {
  const direct = (constants as { O_DIRECT?: number }).O_DIRECT ?? 0;
  try {
    return openSync(path, constants.O_RDONLY | direct);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EINVAL') throw error;
    return openSync(path, constants.O_RDONLY);
  }
}

/** Waits until a chunk's memory is free. */
function takeChunk(): Buffer {
  for (;;) {
    const consumed = Atomics.load(words, WORD_CONSUMED);
    if (produced - consumed < CHUNKS) return chunks[produced % CHUNKS] as Buffer;
    Atomics.wait(words, WORD_CONSUMED, consumed);
  }
}

/** Where the whole frames that begin at `from` end; `base` is where `bytes` lies in the file. */
function wholeTo(bytes: Buffer, from: number, end: number, base: number): number {
  let at = from;
  while (at < end) {
    const padding = paddingAt(bytes, at, end, base + at);
    at += padding;
    if (padding > 0) continue;
    if (checkFrame(bytes, at, end, -1) !== FRAME_OK) break;
    at += FRAME_HEADER_BYTES + bytes.readUInt32LE(at + 16);
  }
  return at;
}

function readFile(file: number, fd: number): void {
  const { size } = fstatSync(fd);
  for (let at = FILE_HEADER_BYTES; at < size;) {
    const bytes = takeChunk();
    const base = Math.floor(at / DIRECT_BYTES) * DIRECT_BYTES;
    const count = Math.min(readSync(fd, bytes, 0, bytes.length, base), size - base);
    const end = wholeTo(bytes, at - base, count, base);
    if (end === at - base) return;
    const place = (produced % CHUNKS) * META_NUMBERS;
    meta[place + META_FILE] = file;
    meta[place + META_FILE_AT] = at;
    meta[place + META_START] = at - base;
    meta[place + META_END] = end;
    produced++;
    Atomics.store(words, WORD_PRODUCED, produced);
    Atomics.notify(words, WORD_PRODUCED);
    at = base + end;
  }
}

try {
  for (const [file, path] of start.paths.entries()) {
    const fd = openFile(path);
    try {
      readFile(file, fd);
    } finally {
      closeSync(fd);
    }
  }
} finally {
  Atomics.store(words, WORD_ENDED, 1);
  Atomics.notify(words, WORD_PRODUCED);
}
