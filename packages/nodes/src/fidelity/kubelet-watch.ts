/**
 * One watch of a kubelet as client-go's reflectors keep it: a streamed list, then changes, ended by
 * the server after five to ten minutes and taken up again; after failures with growing pauses.
 *
 * What is told is counted and dropped: the simulator acts on its own informers.
 */
import { Backoff } from '@megaplane/client/backoff';
import type { Client, StreamHandle, StreamSink } from '@megaplane/client/client';

const TIMEOUT_SECONDS_MIN = 300;
const BACKOFF = { baseMs: 800, capMs: 30_000, jitter: 1, resetMs: 120_000 };
/** A watch that ends so early was refused in all but name. */
const SHORT_MS = 1000;
const GONE = 410;

export interface WatchCounts {
  watchesOpen: number;
  watchesStarted: number;
  watchBytes: number;
}

export class KubeletWatch implements StreamSink {
  readonly #client: Client;
  readonly #path: string;
  readonly #counts: WatchCounts;
  readonly #backoff: Backoff;
  #handle: StreamHandle | null = null;
  #cancel: () => void = () => {};
  #startMs = 0;
  #status = 0;
  #isStopped = false;

  /** `path` is the collection with its selectors. */
  constructor(client: Client, path: string, counts: WatchCounts) {
    this.#client = client;
    this.#path = path;
    this.#counts = counts;
    this.#backoff = new Backoff(BACKOFF, () => client.random());
  }

  start(): void {
    if (this.#isStopped) return;
    const seconds = Math.floor(TIMEOUT_SECONDS_MIN * (1 + this.#client.random()));
    const joint = this.#path.includes('?') ? '&' : '?';
    const query =
      `watch=true&allowWatchBookmarks=true&sendInitialEvents=true` +
      `&resourceVersionMatch=NotOlderThan&timeoutSeconds=${seconds}`;
    this.#startMs = this.#client.timers.nowMs();
    this.#status = 0;
    this.#counts.watchesStarted++;
    this.#counts.watchesOpen++;
    this.#handle = this.#client.stream(`${this.#path}${joint}${query}`, this);
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
    if (this.#handle !== null) this.#counts.watchesOpen--;
    this.#handle?.cancel();
    this.#handle = null;
  }

  onHead(status: number): void {
    this.#status = status;
  }

  onData(_bytes: Uint8Array, start: number, end: number): void {
    this.#counts.watchBytes += end - start;
  }

  onEnd(error: string | null): void {
    this.#counts.watchesOpen--;
    this.#handle = null;
    if (this.#isStopped) return;
    const { timers } = this.#client;
    const nowMs = timers.nowMs();
    const isFine = error === null && (this.#status === 200 || this.#status === GONE);
    if (isFine && nowMs - this.#startMs >= SHORT_MS) this.#backoff.reset();
    const pauseMs = this.#backoff.next(nowMs);
    this.#cancel = timers.after(pauseMs, () => this.start());
  }
}
