/**
 * Follows the requests that have an owner without keeping them: a list, a watch from there, and a
 * list again when the server has forgotten where the watch was. An informer would keep a key for
 * each, and the pods have keys already.
 */
import { Backoff } from '@megaplane/client/backoff';
import type { Client, StreamHandle, StreamSink } from '@megaplane/client/client';
import { withQuery } from '@megaplane/client/list-query';
import { Pages } from '@megaplane/client/pager';
import {
  EVENT_ADDED,
  EVENT_BOOKMARK,
  EVENT_DELETED,
  EVENT_MODIFIED,
  WatchFrames,
} from '@megaplane/client/watch-frames';
import { resourceVersionOf } from '@megaplane/machinery/scan';

const BACKOFF = { baseMs: 500, capMs: 30_000, jitter: 0.5, resetMs: 60_000 };
const WATCH_SECONDS = 400;
/** A server that does not end a watch in its time is asked anew. */
const WATCH_GRACE_MS = 30_000;
const PAGE_ITEMS = 500;

export interface FollowerOptions {
  readonly client: Client;
  readonly path: string;
  readonly labelSelector: string;
  onListBegan(): void;
  /** An object is there; bytes are valid during the call. */
  onSeen(bytes: Buffer, start: number, end: number): void;
  onGone(bytes: Buffer, start: number, end: number): void;
  onListEnded(): void;
  /** A text for people; it goes on by itself. */
  onTrouble(message: string): void;
}

type State =
  | { readonly kind: 'idle' | 'stopped' }
  | { readonly kind: 'listing'; readonly pages: Pages }
  | { readonly kind: 'watching'; readonly watch: Watch }
  | { readonly kind: 'waiting'; readonly cancel: () => void };

class Watch implements StreamSink {
  handle: StreamHandle | null = null;
  cancelGuard: (() => void) | null = null;
  status = 0;
  events = 0;
  readonly #owner: RequestFollower;

  constructor(owner: RequestFollower) {
    this.#owner = owner;
  }

  onHead(status: number): void {
    this.status = status;
  }

  onData(bytes: Uint8Array, start: number, end: number): void {
    if (this.status === 200) this.#owner.receive(this, bytes, start, end);
  }

  onEnd(error: string | null): void {
    this.cancelGuard?.();
    this.#owner.watchEnded(this, error);
  }

  close(): void {
    this.cancelGuard?.();
    this.handle?.cancel();
  }
}

export class RequestFollower {
  readonly #options: FollowerOptions;
  readonly #backoff: Backoff;
  readonly #frames = new WatchFrames();
  #state: State = { kind: 'idle' };
  #revision = 0;

  constructor(options: FollowerOptions) {
    this.#options = options;
    this.#backoff = new Backoff(BACKOFF, () => options.client.random());
  }

  start(): void {
    if (this.#state.kind === 'idle') this.#list();
  }

  stop(): void {
    const state = this.#state;
    this.#state = { kind: 'stopped' };
    if (state.kind === 'listing') state.pages.cancel();
    else if (state.kind === 'watching') state.watch.close();
    else if (state.kind === 'waiting') state.cancel();
  }

  /** A chunk of the present watch. */
  receive(watch: Watch, bytes: Uint8Array, start: number, end: number): void {
    const frames = this.#frames;
    frames.push(bytes, start, end);
    while (this.#isPresent(watch) && frames.next()) {
      watch.events++;
      const revision = resourceVersionOf(frames.bytes, frames.objectStart, frames.objectEnd);
      switch (frames.type) {
        case EVENT_ADDED:
        case EVENT_MODIFIED:
          this.#options.onSeen(frames.bytes, frames.objectStart, frames.objectEnd);
          break;
        case EVENT_DELETED:
          this.#options.onGone(frames.bytes, frames.objectStart, frames.objectEnd);
          break;
        case EVENT_BOOKMARK:
          break;
        default:
          // 410 mostly: only a list tells what has happened since
          watch.close();
          return this.#list();
      }
      this.#revision = Math.max(this.#revision, revision);
    }
    if (frames.isTooLong && this.#isPresent(watch)) {
      watch.close();
      this.#wait(`watch of ${this.#options.path}: an event is too large`, true);
    }
  }

  watchEnded(watch: Watch, error: string | null): void {
    if (!this.#isPresent(watch)) return;
    if (watch.status === 200 && watch.events > 0) return this.#watch();
    const { path } = this.#options;
    if (watch.status === 200) return this.#wait(`watch of ${path} ended at once`, false);
    const why = error ?? `HTTP ${watch.status}`;
    this.#wait(`cannot watch ${path}: ${why}`, watch.status === 410);
  }

  #isPresent(watch: Watch): boolean {
    return this.#state.kind === 'watching' && this.#state.watch === watch;
  }

  #list(): void {
    const { client, path, labelSelector } = this.#options;
    this.#options.onListBegan();
    const pages: Pages = new Pages(
      {
        ...{ client, path, labelSelector, limit: PAGE_ITEMS, mustBeConsistent: true },
        onItem: (bytes, start, end) => this.#options.onSeen(bytes as Buffer, start, end),
      },
      (result) => {
        if (this.#state.kind !== 'listing' || this.#state.pages !== pages) return;
        if (!result.ok) {
          const why = result.status.message ?? 'no reason given';
          return this.#wait(`cannot list ${path}: ${why}`, true);
        }
        this.#revision = Number(result.resourceVersion);
        this.#options.onListEnded();
        if (this.#state.kind === 'listing') this.#watch();
      },
    );
    this.#state = { kind: 'listing', pages };
    pages.start();
  }

  #watch(): void {
    const { client, path, labelSelector } = this.#options;
    const watch = new Watch(this);
    this.#frames.reset();
    this.#state = { kind: 'watching', watch };
    const query = withQuery(path, {
      ...{ watch: 'true', allowWatchBookmarks: 'true', timeoutSeconds: String(WATCH_SECONDS) },
      ...{ labelSelector, resourceVersion: String(this.#revision) },
    });
    watch.cancelGuard = client.timers.after(WATCH_SECONDS * 1000 + WATCH_GRACE_MS, () => {
      watch.close();
      this.watchEnded(watch, 'the server did not end the watch in time');
    });
    watch.handle = client.stream(query, watch);
  }

  #wait(message: string, isToList: boolean): void {
    const { timers } = this.#options.client;
    this.#options.onTrouble(message);
    const cancel = timers.after(this.#backoff.next(timers.nowMs()), () => {
      if (isToList) this.#list();
      else this.#watch();
    });
    this.#state = { kind: 'waiting', cancel };
  }
}
