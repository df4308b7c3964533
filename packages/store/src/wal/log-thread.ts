// shell: the log's thread, its clock and its timers
import { fdatasync, writeSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { DiskTimes } from '../disk-times.ts';
import { sealFrame } from './frame.ts';
import {
  LOG_SEGMENT_BYTES,
  WORD_CHAIN,
  WORD_DONE,
  WORD_FD,
  WORD_FLUSHED,
  WORD_FLUSHED_SEGMENT,
  WORD_SUBMITTED,
  WORD_WRITTEN,
  WORD_WRITTEN_SEGMENT,
  type WorkerStart,
} from './log-files.ts';

export type WorkerNews =
  | { readonly kind: 'segment'; readonly fd: number; readonly segment: number }
  | { readonly kind: 'snapshot'; readonly isNamed: boolean }
  | { readonly kind: 'failed'; readonly message: string };

/** Who does the jobs of a log. */
export interface LogThread {
  /** Jobs wait. */
  wake(): void;
  /**
   * Appends a frame at once, from the caller's thread; no job may wait. False when that is not
   * to be had, or not wise; throws what the disk throws.
   */
  appendHere(frame: Buffer): boolean;
  /** Calls back, in a turn of its own, once the count of jobs done is not `done` any more. */
  whenDone(done: number, callback: () => void): void;
  /** Flushes a file of the log beside the jobs. */
  flush(fd: number, callback: (error: Error | null) => void): void;
  /** Resolves when the last job was done and the thread has ended, or has failed and told so. */
  join(): Promise<void>;
  /** Ends it with whatever jobs it has. */
  end(): void;
}

/** What a log needs of the world; the simulation has another one. */
export interface LogWorld {
  start(start: WorkerStart, onNews: (news: WorkerNews) => void): LogThread;
  /** Monotonic. */
  nowMs(): number;
  /** Since 1970. */
  wallMs(): number;
  /** Calls again and again until the returned function is called. */
  every(ms: number, callback: () => void): () => void;
  pause(): Promise<void>;
}

export const REAL_LOG_WORLD: LogWorld = {
  start: (start, onNews) => new RealThread(start, onNews),
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  every: (ms, callback) => {
    const timer = setInterval(callback, ms);
    timer.unref();
    return () => clearInterval(timer);
  },
  pause: () => new Promise((resolve) => setTimeout(resolve, 1)),
};

/** After an append that took longer the thread's appends are left to it for a while. */
const HERE_MS_MAX = 10;
const HERE_REST_MS = 1000;

class RealThread implements LogThread {
  readonly #words: Int32Array;
  readonly #times: DiskTimes;
  #restUntilMs = -Infinity;
  readonly #worker: Worker;
  #hasEnded = false;

  constructor(start: WorkerStart, onNews: (news: WorkerNews) => void) {
    this.#words = new Int32Array(start.words);
    this.#times = new DiskTimes(start.times);
    this.#worker = new Worker(new URL('./log-worker.ts', import.meta.url), {
      workerData: start,
      // Flags of the main thread such as --eval must not reach the worker.
      execArgv: [],
    });
    this.#worker.on('message', onNews);
    this.#worker.on('error', (error: Error) =>
      onNews({ kind: 'failed', message: `the log's thread: ${error.message}` }),
    );
    this.#worker.once('exit', () => (this.#hasEnded = true));
    this.#worker.unref();
  }

  wake(): void {
    Atomics.notify(this.#words, WORD_SUBMITTED);
  }

  appendHere(frame: Buffer): boolean {
    const words = this.#words;
    const fd = Atomics.load(words, WORD_FD);
    const size = Atomics.load(words, WORD_WRITTEN);
    const startMs = performance.now();
    if (fd === 0 || size > LOG_SEGMENT_BYTES || startMs < this.#restUntilMs) return false;
    const isFlushedSome =
      Atomics.load(words, WORD_FLUSHED_SEGMENT) === Atomics.load(words, WORD_WRITTEN_SEGMENT);
    const flushed = isFlushedSome ? Atomics.load(words, WORD_FLUSHED) : 0;
    const chain = sealFrame(frame, Atomics.load(words, WORD_CHAIN) >>> 0, flushed);
    for (let done = 0; done < frame.length;) {
      done += writeSync(fd, frame, done, frame.length - done, size + done);
    }
    Atomics.store(words, WORD_CHAIN, chain | 0);
    Atomics.store(words, WORD_WRITTEN, size + frame.length);
    const tookMs = performance.now() - startMs;
    if (tookMs > HERE_MS_MAX) this.#restUntilMs = startMs + HERE_REST_MS;
    this.#times.addWritten(frame.length);
    this.#times.writes.record(tookMs / 1000);
    return true;
  }

  whenDone(done: number, callback: () => void): void {
    const result = Atomics.waitAsync(this.#words, WORD_DONE, done);
    if (result.async) void result.value.then(callback);
    else setImmediate(callback);
  }

  flush(fd: number, callback: (error: Error | null) => void): void {
    fdatasync(fd, callback);
  }

  end(): void {
    void this.#worker.terminate();
  }

  join(): Promise<void> {
    if (this.#hasEnded) return Promise.resolve();
    this.#worker.ref();
    return new Promise((resolve) => this.#worker.once('exit', () => resolve()));
  }
}
