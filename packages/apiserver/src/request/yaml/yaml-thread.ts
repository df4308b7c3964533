// shell: a thread, and a timer for what it takes too long for
/**
 * A thread that reads long documents of YAML: the library takes a second for a megabyte, in one go.
 * It is started for the first one, and ends when it has been idle for a while. Those who wait have
 * their turns one after the other, one document each, so that nobody waits for all that another has
 * sent; documents of clients that have left are not read.
 */
import { afterMs, guarded } from '@megaplane/base/deferred';
import { Worker } from 'node:worker_threads';
import { nextTurn } from '@megaplane/base/deferred';
import { BodyBudget } from '@megaplane/wire/body-budget';
import type { BodyShare } from '@megaplane/wire/exchange';
import type { YamlReading } from '../yaml-reading.ts';

/** Starting it takes some 100 ms, keeping it 20 MB. */
const IDLE_MS = 30_000;
/** Of one document, the longest of which takes 3 s; upstream's requests have a minute. */
const READING_MS_MAX = 10_000;
/** Of documents that wait, in shares as bodies that come; more are told to come again. */
export const WAITING_BYTES_MAX: number = 64 * 1024 * 1024;

/** Who sends a document. */
export interface YamlSender {
  /** The same for all documents of one. */
  readonly name: string;
  /** Nobody waits for the answer any more. */
  isGone(): boolean;
}

/** What became of a document; null: it took too long, `crowded`: too much waits. */
export type YamlOutcome = YamlReading | null | 'crowded';

interface Waiting {
  readonly body: Uint8Array;
  readonly sender: YamlSender;
  readonly share: BodyShare;
  readonly done: (outcome: YamlOutcome) => void;
}

export class YamlThread {
  readonly #readingMsMax: number;
  /** By sender; the first has the next turn, and is the last then. */
  readonly #waiting = new Map<string, Waiting[]>();
  readonly #budget = new BodyBudget(WAITING_BYTES_MAX);
  #worker: Worker | null = null;
  #current: Waiting | null = null;
  #timer: NodeJS.Timeout | undefined;

  constructor(readingMsMax: number = READING_MS_MAX) {
    this.#readingMsMax = readingMsMax;
  }

  /** Tells in a later turn what the bytes say; those whose sender has left are not read. */
  read(body: Uint8Array, sender: YamlSender, done: (outcome: YamlOutcome) => void): void {
    const share = { name: sender.name, isStranger: false };
    if (!this.#budget.take(share, body.length)) {
      nextTurn(() => done('crowded'));
      return;
    }
    const waiting = { body, sender, share, done };
    const own = this.#waiting.get(sender.name);
    if (own === undefined) this.#waiting.set(sender.name, [waiting]);
    else own.push(waiting);
    if (this.#current === null) this.#readNext();
  }

  /** Ends the thread; what it has not read is told to take too long. */
  close(): void {
    for (let next = this.#take(); next !== null; next = this.#take()) next.done(null);
    if (this.#current === null) this.#end();
    else this.#giveUp();
  }

  /** The next that somebody waits for. */
  #take(): Waiting | null {
    for (const [name, own] of this.#waiting) {
      this.#waiting.delete(name);
      for (let next = own.shift(); next !== undefined; next = own.shift()) {
        this.#budget.give(next.share, next.body.length);
        if (next.sender.isGone()) {
          const { done } = next;
          // what the request has taken is given back
          nextTurn(() => done(null));
          continue;
        }
        if (own.length > 0) this.#waiting.set(name, own);
        return next;
      }
    }
    return null;
  }

  #readNext(): void {
    clearTimeout(this.#timer);
    this.#current = this.#take();
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
