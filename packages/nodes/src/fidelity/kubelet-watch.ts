/**
 * One watch of a kubelet as client-go's reflectors keep it: a streamed list, then changes, ended by
 * the server after five to ten minutes and taken up again at the last version seen; after failures
 * with growing pauses. Only when the server has forgotten that version the list is streamed anew.
 *
 * What is told is counted and dropped: the simulator acts on its own informers.
 */
import { Backoff } from '@megaplane/client/backoff';
import type { Client, StreamHandle, StreamSink } from '@megaplane/client/client';

/** The shortest watch of client-go's reflectors; each lasts up to twice as long. */
const SECONDS_MIN = 300;
const BACKOFF = { baseMs: 800, capMs: 30_000, jitter: 1, resetMs: 120_000 };
/** A watch that ends so early was refused in all but name. */
const SHORT_MS = 1000;
const GONE = 410;
const ERROR_EVENT = Buffer.from('{"type":"ERROR"');
const LIST_END = Buffer.from('"k8s.io/initial-events-end"');
const VERSION = Buffer.from('"resourceVersion":"');

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
  readonly #secondsMin: number;
  #handle: StreamHandle | null = null;
  #cancel: () => void = () => {};
  #startMs = 0;
  #status = 0;
  /** Up to which changes were told; 0: begin with the list. */
  #revision = 0;
  #isListing = true;
  #isStopped = false;

  /** `path` is the collection with its selectors; the server ends a watch after `secondsMin` on. */
  constructor(client: Client, path: string, counts: WatchCounts, secondsMin: number = SECONDS_MIN) {
    this.#secondsMin = secondsMin;
    this.#client = client;
    this.#path = path;
    this.#counts = counts;
    this.#backoff = new Backoff(BACKOFF, () => client.random());
  }

  start(): void {
    if (this.#isStopped) return;
    const seconds = Math.floor(this.#secondsMin * (1 + this.#client.random()));
    const joint = this.#path.includes('?') ? '&' : '?';
    const from =
      this.#revision === 0
        ? 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan'
        : `resourceVersion=${this.#revision}`;
    const query = `watch=true&allowWatchBookmarks=true&${from}&timeoutSeconds=${seconds}`;
    this.#startMs = this.#client.timers.nowMs();
    this.#status = 0;
    this.#isListing = this.#revision === 0;
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
    if (status === GONE) this.#revision = 0;
  }

  onData(bytes: Uint8Array, start: number, end: number): void {
    this.#counts.watchBytes += end - start;
    if (this.#status !== 200) return;
    const chunk = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
    // within texts of JSON there is no such mark: their quotes are escaped
    if (chunk.includes(ERROR_EVENT)) this.#revision = 0;
    else if (!this.#isListing || chunk.includes(LIST_END)) {
      this.#isListing = false;
      this.#revision = Math.max(this.#revision, lastVersionIn(chunk));
    }
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

/** The version that is told last in a part of a watch; 0 where none is. */
function lastVersionIn(chunk: Buffer): number {
  const at = chunk.lastIndexOf(VERSION);
  if (at < 0) return 0;
  let version = 0;
  for (let index = at + VERSION.length; index < chunk.length; index++) {
    const digit = (chunk[index] ?? 0) - 48;
    if (digit < 0 || digit > 9) return version;
    version = version * 10 + digit;
  }
  // cut by the end of the chunk: the number may go on
  return 0;
}
