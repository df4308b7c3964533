/**
 * All watches of one kind's objects.
 *
 * The hub reads the log of changes once and hands each event to the watches that it may concern
 * (`watch/scope.ts`): those of all namespaces and those of its own. An event costs what those cost,
 * not what all watches cost.
 */
import type { KeyRange } from './served.ts';
import { emptyEvent, type Storage, type StorageWatch } from './storage.ts';
import { DueTimes } from './watch/due-times.ts';
import { FrameCache } from './watch/frame-cache.ts';
import { Scope } from './watch/scope.ts';
import { Watcher, type WatchHome, type WatchRequest } from './watcher.ts';

/** A client is told its revision this often. */
export const BOOKMARK_MS = 60_000;
/** And this long before its watch ends. */
const LAST_BOOKMARK_MS = 2000;
/** Watches whose time has come that are seen to in one turn. */
const DUE_PER_TURN_MAX = 1000;

const SLASH = 0x2f;
const event = emptyEvent();

export class WatchHub implements WatchHome {
  readonly storage: Storage;
  readonly frames: FrameCache = new FrameCache();
  readonly defer: (work: () => void) => void;
  readonly #range: KeyRange;
  readonly #prefixLength: number;
  readonly #watchers = new Set<Watcher>();
  readonly #all = new Scope();
  readonly #byNamespace = new Map<string, Scope>();
  readonly #due = new DueTimes<Watcher>();
  #feed: StorageWatch | null = null;
  #isSettling = false;
  #isTicking = false;
  aheadBytes = 0;
  /** Events handed out, for the metrics. */
  dispatched = 0;
  /** Open watches with a shard selector. */
  shards = 0;
  #filteredBefore = 0;

  constructor(
    storage: Storage,
    range: KeyRange,
    prefixLength: number,
    defer: (work: () => void) => void,
  ) {
    this.storage = storage;
    this.#range = range;
    this.#prefixLength = prefixLength;
    this.defer = defer;
  }

  get size(): number {
    return this.#watchers.size;
  }

  /** States of objects that shard selectors kept from watches. */
  get filtered(): number {
    let sum = this.#filteredBefore + this.#all.filtered;
    for (const scope of this.#byNamespace.values()) sum += scope.filtered;
    return sum;
  }

  /** Starts a watch whose head was sent. */
  add(request: WatchRequest, nowMs: number): void {
    this.#openFeed();
    const watcher = new Watcher(request, this);
    this.#watchers.add(watcher);
    if (request.filter.shard !== null) this.shards++;
    this.#schedule(watcher, nowMs);
    watcher.pump();
  }

  #schedule(watcher: Watcher, nowMs: number): void {
    const { deadlineMs, bookmarks } = watcher.request;
    const lastMs = deadlineMs - LAST_BOOKMARK_MS;
    const nextMs = bookmarks && nowMs < lastMs ? Math.min(nowMs + BOOKMARK_MS, lastMs) : deadlineMs;
    this.#due.set(watcher, nextMs);
  }

  #openFeed(): void {
    if (this.#feed !== null) return;
    const { start, end } = this.#range;
    const now = this.storage.publishedRevision;
    this.#feed = this.storage.watch(start, end, now, () => this.settle());
  }

  settle(): void {
    const feed = this.#feed;
    if (feed === null || this.#isSettling) return;
    this.#isSettling = true;
    let outcome = feed.next(event);
    while (outcome === 'event') {
      this.#dispatch();
      // whoever was shown the event may have been the last watch, and have closed the feed
      if (this.#feed !== feed) break;
      outcome = feed.next(event);
    }
    this.#isSettling = false;
    if (outcome === 'gone') this.#loseAll(feed);
  }

  #dispatch(): void {
    this.dispatched++;
    this.frames.nextTurn();
    const { key, keyStart, keyEnd } = event.value;
    const pathStart = keyStart + this.#prefixLength;
    const slash = key.indexOf(SLASH, pathStart);
    const isSpaced = slash >= 0 && slash < keyEnd;
    const nameStart = isSpaced ? slash + 1 : pathStart;
    const scope =
      isSpaced && this.#byNamespace.size > 0
        ? this.#byNamespace.get(key.toString('latin1', pathStart, slash))
        : undefined;
    const isNamed = this.#all.hasNames || scope?.hasNames === true;
    const name = isNamed ? key.toString('latin1', nameStart, keyEnd) : '';
    if (this.#all.size > 0) this.#all.offer(event, name, this.frames);
    scope?.offer(event, name, this.frames);
  }

  join(watcher: Watcher): void {
    const { namespace } = watcher.request;
    if (namespace === '') {
      this.#all.add(watcher);
      return;
    }
    let scope = this.#byNamespace.get(namespace);
    if (scope === undefined) this.#byNamespace.set(namespace, (scope = new Scope()));
    scope.add(watcher);
  }

  leave(watcher: Watcher): void {
    const { namespace } = watcher.request;
    if (namespace === '') {
      this.#all.delete(watcher);
      return;
    }
    const scope = this.#byNamespace.get(namespace);
    if (scope === undefined) return;
    scope.delete(watcher);
    if (scope.size > 0) return;
    this.#filteredBefore += scope.filtered;
    this.#byNamespace.delete(namespace);
  }

  forget(watcher: Watcher): void {
    if (!this.#watchers.delete(watcher)) return;
    this.#due.delete(watcher);
    if (watcher.request.filter.shard !== null) this.shards--;
    if (this.#watchers.size > 0) return;
    this.#feed?.close();
    this.#feed = null;
  }

  /** The hub's place in the log is gone: each watch goes on by itself, from where the hub was. */
  #loseAll(feed: StorageWatch): void {
    const { position } = feed;
    feed.close();
    this.#feed = null;
    if (this.#watchers.size > 0) this.#openFeed();
    for (const watcher of Array.from(this.#watchers)) {
      if (!watcher.isLive) continue;
      watcher.fallBehind(position);
      watcher.pump();
    }
  }

  /** About once a second: bookmarks that are due, and watches whose time is over. */
  tick(nowMs: number): void {
    this.settle();
    if (!this.#isTicking) this.#tickDue(nowMs);
  }

  #tickDue(nowMs: number): void {
    this.#isTicking = false;
    this.frames.nextTurn();
    const revision = this.#feed?.position ?? 0;
    const due = this.#due.take(nowMs, DUE_PER_TURN_MAX);
    for (const watcher of due) {
      const { deadlineMs } = watcher.request;
      if (watcher.isClosed) continue;
      if (nowMs >= deadlineMs) {
        watcher.end();
        continue;
      }
      watcher.bookmark(revision);
      this.#schedule(watcher, nowMs);
    }
    if (due.length < DUE_PER_TURN_MAX) return;
    this.#isTicking = true;
    this.defer(() => {
      this.settle();
      this.#tickDue(nowMs);
    });
  }

  /** Ends every watch cleanly; clients open new ones elsewhere. */
  endAll(): void {
    for (const watcher of Array.from(this.#watchers)) watcher.end();
  }
}
