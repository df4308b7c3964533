import { assert } from '@megaplane/base/assert';
import type { Timers } from '@megaplane/client/client';
import type { QueueMetrics } from './queue-metrics.ts';
import { WorkQueue, type RetryDelays } from './work-queue.ts';

/** How a piece of work ended: `again` comes back after a time of its own choice. */
export type WorkResult = 'done' | 'retry' | { readonly againMs: number };

/**
 * Works on a queue of keys with a bounded number of workers. `work` must not reject; if it does
 * nevertheless, the error goes to `onError` and the key is tried again. `retry` is for parts that
 * upstream lets wait otherwise than its default.
 */
export class Workers<K> {
  readonly queue: WorkQueue<K>;
  /** Hears of each key whose round is over, after it was put back where it has to come again. */
  ended: (key: K) => void = () => {};
  readonly #timers: Timers;
  readonly #width: number;
  readonly #work: (key: K) => Promise<WorkResult>;
  readonly #onError: (error: unknown) => void;
  readonly #metrics: QueueMetrics;
  #running = 0;
  #isStopped = false;
  #isPaused = true;
  #wakeMs = Infinity;
  /**
   * The time of the last turn that a timer began. Appointments are kept in such turns only: a key
   * that comes back after less than its round takes would else be due again before the turn ends,
   * and no event would ever be read.
   */
  #turnMs = -Infinity;
  #cancelWake: () => void = () => {};

  constructor(
    timers: Timers,
    width: number,
    work: (key: K) => Promise<WorkResult>,
    onError: (error: unknown) => void,
    metrics: QueueMetrics,
    retry?: RetryDelays,
  ) {
    this.#timers = timers;
    this.#metrics = metrics;
    this.queue = new WorkQueue<K>((key) => metrics.added(key, timers.nowMs()), retry);
    metrics.depth = () => this.queue.ready;
    this.#width = width;
    this.#work = work;
    this.#onError = onError;
  }

  /** Nothing is worked on before; keys can be added. */
  start(): void {
    this.#isPaused = false;
    this.#pump();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelWake();
  }

  add(key: K): void {
    this.queue.add(key);
    this.#pump();
  }

  addAfter(key: K, delayMs: number): void {
    this.queue.addAt(key, this.#timers.nowMs() + delayMs);
    this.#pump();
  }

  #pump(): void {
    while (!this.#isStopped && !this.#isPaused && this.#running < this.#width) {
      const key = this.queue.take(this.#turnMs);
      if (key === undefined) break;
      this.#running++;
      assert(this.#running <= this.#width, 'no more workers than there may be');
      void this.#one(key);
    }
    this.#arm();
  }

  async #one(key: K): Promise<void> {
    let result: WorkResult = 'retry';
    this.#metrics.began(key, this.#timers.nowMs());
    try {
      result = await this.#work(key);
    } catch (error) {
      this.#onError(error);
    }
    assert(this.#running > 0, 'what ends was running');
    this.#running--;
    this.#metrics.ended(key, result === 'retry', this.#timers.nowMs());
    if (result === 'retry') this.queue.retry(key, this.#timers.nowMs());
    else {
      this.queue.done(key);
      if (result !== 'done') this.queue.addAt(key, this.#timers.nowMs() + result.againMs);
    }
    this.ended(key);
    this.#pump();
  }

  #arm(): void {
    const atMs = this.#isStopped || this.#isPaused ? Infinity : this.queue.nextMs;
    if (atMs >= this.#wakeMs || atMs === Infinity) return;
    this.#cancelWake();
    this.#wakeMs = atMs;
    this.#cancelWake = this.#timers.after(Math.max(0, atMs - this.#timers.nowMs()), () => {
      this.#wakeMs = Infinity;
      this.#turnMs = this.#timers.nowMs();
      this.#pump();
    });
  }
}
