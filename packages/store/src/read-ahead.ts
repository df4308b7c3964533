// shell: reads the files of a start ahead of the thread that restores them
/**
 * A start is as fast as its slowest thread. One thread reads and checks (`read-worker.ts`), past
 * the page cache; another one touches the memory that the records will lie in, because the first
 * touch of a page costs more than filling it; this one links the records. What the reader finds
 * whole comes here as chunks of frames, in order; at anything else it goes on to the next file, and
 * whoever restores looks at the rest of that file itself.
 */
import { Worker } from 'node:worker_threads';
import { FRAME_BYTES_MAX } from './frame.ts';
import { SLOT_BYTES } from './log-files.ts';

/** Bytes of files below which threads cost more than they save. */
export const READ_AHEAD_BYTES_MIN: number = 32 * 1024 * 1024;
/** One chunk; holds the largest frame, wherever it begins. */
export const CHUNK_BYTES: number = FRAME_BYTES_MAX * 4;
/** The reader counts as lost when it says nothing for so long; then files are read without it. */
const SILENCE_MS_MAX = 10_000;
/** Chunks read and not restored. */
export const CHUNKS = 3;

// Words that both threads look at.
export const WORD_PRODUCED = 0;
export const WORD_CONSUMED = 1;
/** 1 when the reader has ended, whatever the reason. */
export const WORD_ENDED = 2;
export const READ_WORDS = 3;

// Doubles that describe a chunk.
export const META_FILE = 0;
export const META_FILE_AT = 1;
export const META_START = 2;
export const META_END = 3;
export const META_NUMBERS = 4;

export interface ReadStart {
  readonly paths: readonly string[];
  readonly words: SharedArrayBuffer;
  readonly meta: SharedArrayBuffer;
  readonly chunks: readonly SharedArrayBuffer[];
}

export interface TouchStart {
  readonly blocks: readonly SharedArrayBuffer[];
  readonly bytes: number;
}

/** Whole frames: bytes[start, end), which begin at `fileAt` in the file. */
export interface Chunk {
  readonly bytes: Buffer;
  readonly fileAt: number;
  readonly start: number;
  readonly end: number;
}

export class ReadAhead {
  readonly #words = new Int32Array(new SharedArrayBuffer(READ_WORDS * 4));
  readonly #meta = new Float64Array(new SharedArrayBuffer(CHUNKS * META_NUMBERS * 8));
  readonly #chunks: readonly Buffer[];
  readonly #workers: readonly Worker[];
  #consumed = 0;
  #isHeld = false;
  #isLost = false;

  /** `blocks` is fresh memory, of which `bytes` will be written from the front. */
  constructor(paths: readonly string[], blocks: readonly SharedArrayBuffer[], bytes: number) {
    // Only growable memory begins at a page, which direct reads ask for.
    const size = CHUNK_BYTES + SLOT_BYTES - FRAME_BYTES_MAX;
    const memory = Array.from(
      { length: CHUNKS },
      () => new SharedArrayBuffer(size, { maxByteLength: size }),
    );
    this.#chunks = memory.map((chunk) => Buffer.from(chunk, 0, size));
    const { buffer: words } = this.#words;
    const { buffer: meta } = this.#meta;
    const read: ReadStart = { paths, words, meta, chunks: memory };
    const touch: TouchStart = { blocks, bytes };
    this.#workers = [
      start(new URL('./read-worker.ts', import.meta.url), read),
      start(new URL('./touch-worker.ts', import.meta.url), touch),
    ];
  }

  /** The next chunk of a file, null when there is none; lent until the next call. */
  next(file: number): Chunk | null {
    this.#giveBack();
    if (this.#isLost || !this.#wait()) return null;
    const slot = this.#consumed % CHUNKS;
    const at = slot * META_NUMBERS;
    if (this.#meta[at + META_FILE] !== file) return null;
    this.#isHeld = true;
    return {
      bytes: this.#chunks[slot] as Buffer,
      fileAt: this.#meta[at + META_FILE_AT] as number,
      start: this.#meta[at + META_START] as number,
      end: this.#meta[at + META_END] as number,
    };
  }

  /** False when the reader has ended, or is lost, and nothing is left of it. */
  #wait(): boolean {
    const words = this.#words;
    while (Atomics.load(words, WORD_PRODUCED) === this.#consumed) {
      if (Atomics.load(words, WORD_ENDED) === 1) {
        // The last chunk comes before the end.
        return Atomics.load(words, WORD_PRODUCED) !== this.#consumed;
      }
      const state = Atomics.wait(words, WORD_PRODUCED, this.#consumed, SILENCE_MS_MAX);
      if (state !== 'timed-out') continue;
      this.#isLost = true;
      return false;
    }
    return true;
  }

  #giveBack(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#consumed++;
    Atomics.store(this.#words, WORD_CONSUMED, this.#consumed);
    Atomics.notify(this.#words, WORD_CONSUMED);
  }

  close(): void {
    for (const worker of this.#workers) void worker.terminate();
  }
}

function start(file: URL, workerData: ReadStart | TouchStart): Worker {
  const worker = new Worker(file, { workerData, execArgv: [] });
  // What it cannot do is done, and told, by the thread that waits for it.
  worker.on('error', () => {});
  worker.unref();
  return worker;
}
