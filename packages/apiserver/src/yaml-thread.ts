// shell: a thread, and a timer for what it takes too long for
/**
 * A thread that reads long documents of YAML: the library takes a second for a megabyte, in one go.
 * It is started for the first one, reads them in the order that they come in, and ends when it has
 * been idle for a while.
 */
import { afterMs, guarded } from '@megaplane/base/deferred';
import { Worker } from 'node:worker_threads';
import type { YamlReading } from './yaml-body.ts';

/** Starting it takes some 100 ms, keeping it 20 MB. */
const IDLE_MS = 30_000;
/** Of one document; upstream's requests have a minute. */
const READING_MS_MAX = 30_000;

interface Waiting {
  readonly body: Uint8Array;
  readonly done: (reading: YamlReading | null) => void;
}

export class YamlThread {
  readonly #readingMsMax: number;
  readonly #waiting: Waiting[] = [];
  #worker: Worker | null = null;
  #current: Waiting | null = null;
  #timer: NodeJS.Timeout | undefined;

  constructor(readingMsMax: number = READING_MS_MAX) {
    this.#readingMsMax = readingMsMax;
  }

  /** Tells in a later turn what the bytes say, or null where that takes too long. */
  read(body: Uint8Array, done: (reading: YamlReading | null) => void): void {
    this.#waiting.push({ body, done });
    if (this.#current === null) this.#readNext();
  }

  /** Ends the thread; what it has not read is told to take too long. */
  close(): void {
    for (const { done } of this.#waiting.splice(0)) done(null);
    if (this.#current === null) this.#end();
    else this.#giveUp();
  }

  #readNext(): void {
    clearTimeout(this.#timer);
    this.#current = this.#waiting.shift() ?? null;
    if (this.#current === null) {
      this.#timer = afterMs(IDLE_MS, () => this.#end()).unref();
      return;
    }
    this.#timer = afterMs(this.#readingMsMax, () => this.#giveUp());
    this.#worker ??= this.#start();
    this.#worker.postMessage(this.#current.body);
  }

  #start(): Worker {
    const worker = new Worker(new URL('./yaml-worker.ts', import.meta.url));
    worker.unref();
    worker.on(
      'message',
      guarded((reading: YamlReading) => this.#conclude(worker, reading)),
    );
    // out of memory, for one: the next document gets another thread
    worker.on(
      'error',
      guarded(() => {
        if (worker === this.#worker) this.#giveUp();
      }),
    );
    return worker;
  }

  #giveUp(): void {
    const worker = this.#worker;
    this.#end();
    this.#conclude(worker, null);
  }

  #conclude(worker: Worker | null, reading: YamlReading | null): void {
    if (reading !== null && worker !== this.#worker) return;
    const current = this.#current;
    this.#readNext();
    current?.done(reading);
  }

  #end(): void {
    clearTimeout(this.#timer);
    const worker = this.#worker;
    this.#worker = null;
    void worker?.terminate();
  }
}
