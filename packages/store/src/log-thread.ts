// shell: the log's thread, its clock and its timers
import { fdatasync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { WORD_DONE, WORD_SUBMITTED, type WorkerStart } from './log-files.ts';

export type WorkerNews =
  | { readonly kind: 'segment'; readonly fd: number; readonly segment: number }
  | { readonly kind: 'snapshot'; readonly segment: number }
  | { readonly kind: 'failed'; readonly message: string };

/** Who does the jobs of a log. */
export interface LogThread {
  /** Jobs wait. */
  wake(): void;
  /** Calls back, in a turn of its own, once the count of jobs done is not `done` any more. */
  whenDone(done: number, callback: () => void): void;
  /** Flushes a file of the log beside the jobs. */
  flush(fd: number, callback: (error: Error | null) => void): void;
  /** Resolves when the last job was done and the thread has ended. */
  join(): Promise<void>;
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

class RealThread implements LogThread {
  readonly #words: Int32Array;
  readonly #worker: Worker;

  constructor(start: WorkerStart, onNews: (news: WorkerNews) => void) {
    this.#words = new Int32Array(start.words);
    this.#worker = new Worker(new URL('./log-worker.ts', import.meta.url), {
      workerData: start,
      // Flags of the main thread such as --eval must not reach the worker.
      execArgv: [],
    });
    this.#worker.on('message', onNews);
    this.#worker.on('error', (error: Error) =>
      onNews({ kind: 'failed', message: `the log's thread: ${error.message}` }),
    );
    this.#worker.unref();
  }

  wake(): void {
    Atomics.notify(this.#words, WORD_SUBMITTED);
  }

  whenDone(done: number, callback: () => void): void {
    const result = Atomics.waitAsync(this.#words, WORD_DONE, done);
    if (result.async) void result.value.then(callback);
    else setImmediate(callback);
  }

  flush(fd: number, callback: (error: Error | null) => void): void {
    fdatasync(fd, callback);
  }

  join(): Promise<void> {
    this.#worker.ref();
    return new Promise((resolve) => this.#worker.once('exit', () => resolve()));
  }
}
