/**
 * One watch of a kubelet as client-go's reflectors keep it: a streamed list, then changes, ended by
 * the server after five to ten minutes and taken up again at the last version seen; after failures
 * with growing pauses. Only when the server has forgotten that version the list is streamed anew.
 * A server that streams no lists (an older one, or one whose etcd is too old for it) is asked for a
 * list, and then for what came after it, as reflectors do.
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
/** Answers that say "this way of asking is not understood". */
const NOT_UNDERSTOOD: ReadonlySet<number> = new Set([400, 405, 406, 415, 422, 501]);
const ERROR_EVENT = Buffer.from('{"type":"ERROR"');
const LIST_END = Buffer.from('"k8s.io/initial-events-end"');
const VERSION = Buffer.from('"resourceVersion":"');

export interface WatchCounts {
  watchesOpen: number;
  watchesStarted: number;
  watchBytes: number;
}

/** What a request is for: a streamed list and changes, a list alone, or changes alone. */
type Ask = 'stream' | 'list' | 'changes';

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
  #asks: Ask = 'stream';
  /** Up to which changes were told; 0: none are known. */
  #revision = 0;
  /** The stream under way was refused: a list comes next. */
  #isRefused = false;
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
    this.#startMs = this.#client.timers.nowMs();
    this.#status = 0;
    this.#counts.watchesOpen++;
    if (this.#asks !== 'list') this.#counts.watchesStarted++;
    const joint = this.#path.includes('?') ? '&' : '?';
    this.#handle = this.#client.stream(`${this.#path}${joint}${this.#query()}`, this);
  }

  #query(): string {
    if (this.#asks === 'list') return 'resourceVersion=0';
    const seconds = Math.floor(this.#secondsMin * (1 + this.#client.random()));
    const from =
      this.#asks === 'stream'
        ? 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan'
        : `resourceVersion=${this.#revision}`;
    return `watch=true&allowWatchBookmarks=true&${from}&timeoutSeconds=${seconds}`;
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
    if (status === GONE) this.#forget('stream');
    else if (this.#asks === 'stream' && NOT_UNDERSTOOD.has(status)) this.#forget('list');
  }

  onData(bytes: Uint8Array, start: number, end: number): void {
    this.#counts.watchBytes += end - start;
    if (this.#status !== 200) return;
    const chunk = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
    if (this.#asks === 'list') {
      // the list's own version stands before its items
      if (this.#revision === 0) this.#revision = versionAt(chunk, chunk.indexOf(VERSION));
      return;
    }
    // within texts of JSON there is no such mark: their quotes are escaped
    if (chunk.includes(ERROR_EVENT)) this.#forget(this.#asks === 'stream' ? 'list' : 'stream');
    else if (this.#asks === 'changes' || chunk.includes(LIST_END)) {
      this.#asks = 'changes';
      this.#revision = Math.max(this.#revision, versionAt(chunk, chunk.lastIndexOf(VERSION)));
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
    const pauseMs = this.#goesOn(error) ? 0 : this.#backoff.next(nowMs);
    this.#cancel = timers.after(pauseMs, () => this.start());
  }

  #forget(next: Ask): void {
    this.#revision = 0;
    this.#asks = next;
    this.#isRefused = next === 'list';
  }

  /** A list follows a refused stream at once, and changes follow a list. */
  #goesOn(error: string | null): boolean {
    if (this.#asks !== 'list') return false;
    if (this.#isRefused) {
      this.#isRefused = false;
      return true;
    }
    const isWhole = error === null && this.#status === 200 && this.#revision > 0;
    this.#asks = isWhole ? 'changes' : 'stream';
    if (!isWhole) this.#revision = 0;
    return isWhole;
  }
}

/** The version that is told at a mark in a part of an answer; 0 where none is. */
function versionAt(chunk: Buffer, at: number): number {
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
