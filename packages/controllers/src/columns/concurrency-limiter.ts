/**
 * Runs tasks with a bounded number under way; the rest waits in order. Tasks settle their own
 * failures; one that rejects all the same is reported and does not stop the others.
 */
import { assert } from '@megaplane/base/assert';

export class ConcurrencyLimiter {
  readonly #width: number;
  readonly #onError: (error: unknown) => void;
  readonly #waiting: (() => Promise<void>)[] = [];
  #head = 0;
  #running = 0;

  constructor(width: number, onError: (error: unknown) => void) {
    this.#width = width;
    this.#onError = onError;
  }

  /** Tasks that wait for a place. */
  get waiting(): number {
    return this.#waiting.length - this.#head;
  }

  run(task: () => Promise<void>): void {
    this.#waiting.push(task);
    this.#next();
  }

  #next(): void {
    while (this.#running < this.#width) {
      const task = this.#waiting[this.#head];
      if (task === undefined) break;
      this.#head++;
      this.#running++;
      void this.#one(task);
    }
    const isFull = this.#running >= this.#width;
    assert(isFull || this.waiting === 0, 'no task waits while a lane is free');
    if (this.#head > 1024 && this.#head * 2 > this.#waiting.length) {
      this.#waiting.splice(0, this.#head);
      this.#head = 0;
    }
  }

  async #one(task: () => Promise<void>): Promise<void> {
    try {
      await task();
    } catch (error) {
      this.#onError(error);
    }
    assert(this.#running > 0, 'what ends was running');
    this.#running--;
    this.#next();
  }
}
