// shell: reads the files of a start ahead of the thread that restores them
/**
 * A start is as fast as its slowest thread. One thread reads files into arenas, past the page
 * cache, and checks them (`read-worker.ts`); this one links the records. What the reader finds
 * whole comes here as batches, in order; it ends at anything else, and whoever restores looks at
 * the rest of the files itself.
 */
import { Worker } from 'node:worker_threads';
import { BATCH_BYTES, ReadBatch } from './read-batch.ts';
import type { ShelfStart } from './record-shelf.ts';

/** Bytes of files below which threads cost more than they save. */
export const READ_AHEAD_BYTES_MIN: number = 32 * 1024 * 1024;
/** The reader counts as lost when it says nothing for so long; then files are read without it. */
const SILENCE_MS_MAX = 10_000;
/** Batches filled and not restored. */
export const BATCHES = 3;

// Words that both threads look at.
export const WORD_PRODUCED = 0;
export const WORD_CONSUMED = 1;
/** 1 when the reader has ended, whatever the reason. */
export const WORD_ENDED = 2;
export const READ_WORDS = 3;

export interface ReadFile {
  readonly path: string;
  /** A log, whose header names what it follows; else a snapshot. */
  readonly isLog: boolean;
}

export interface ReadStart {
  readonly files: readonly ReadFile[];
  readonly words: SharedArrayBuffer;
  readonly batches: readonly SharedArrayBuffer[];
  readonly shelf: ShelfStart;
}

export class ReadAhead {
  readonly #words = new Int32Array(new SharedArrayBuffer(READ_WORDS * 4));
  readonly #batches: readonly ReadBatch[];
  readonly #worker: Worker;
  #consumed = 0;
  #isHeld = false;
  /** The reader said nothing for too long, but may still write to its arenas. */
  isLost = false;

  constructor(files: readonly ReadFile[], shelf: ShelfStart) {
    const batches = Array.from({ length: BATCHES }, () => new SharedArrayBuffer(BATCH_BYTES));
    this.#batches = batches.map((memory) => new ReadBatch(memory));
    const workerData: ReadStart = { files, words: this.#words.buffer, batches, shelf };
    this.#worker = new Worker(new URL('./read-worker.ts', import.meta.url), {
      ...{ workerData, execArgv: [] },
    });
    // What it cannot do is done, and told, by the thread that waits for it.
    this.#worker.on('error', () => {});
    this.#worker.unref();
  }

  /** The next batch of a file, null when there is none; lent until the next call. */
  next(file: number): ReadBatch | null {
    this.#giveBack();
    if (this.isLost || !this.#wait()) return null;
    const batch = this.#batches[this.#consumed % BATCHES] as ReadBatch;
    if (batch.file !== file) return null;
    this.#isHeld = true;
    return batch;
  }

  /** False when the reader has ended, or is lost, and nothing is left of it. */
  #wait(): boolean {
    const words = this.#words;
    while (Atomics.load(words, WORD_PRODUCED) === this.#consumed) {
      if (Atomics.load(words, WORD_ENDED) === 1) {
        // The last batch comes before the end.
        return Atomics.load(words, WORD_PRODUCED) !== this.#consumed;
      }
      const state = Atomics.wait(words, WORD_PRODUCED, this.#consumed, SILENCE_MS_MAX);
      if (state !== 'timed-out') continue;
      this.isLost = true;
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
    void this.#worker.terminate();
  }
}
