/**
 * All watches of one kind's objects.
 *
 * The hub reads the log of changes once and hands each event to the watches that it may concern
 * (`watch/scope.ts`): those of all namespaces and those of its own. An event costs what those cost,
 * not what all watches cost.
 */
import { Random } from '@megaplane/base/random';
import type { Filter } from '../request/filter.ts';
import { INDEX_ITEMS_MIN, NODE_FIELD, ObjectIndex } from './object-index.ts';
import type { RowStream } from '../serializer/list-stream.ts';
import type { KeyRange } from '../storage/served.ts';
import { emptyEvent, type Storage, type StorageWatch } from '../storage/storage.ts';
import { DueTimes } from './due-times.ts';
import { FrameCache } from './frame-cache.ts';
import { Scope } from './scope.ts';
import { Watcher, type WatchHome, type WatchRequest } from './watcher.ts';
import type { RowSource } from '../storage/row-source.ts';
import { WatchCounts } from '../metrics/watch-counts.ts';

/** A client is told its revision this often. */
export const BOOKMARK_MS = 60_000;
/** And this long before its watch ends. */
const LAST_BOOKMARK_MS = 2000;
/** Turns in which watches of a kind that is gone may still be shown its last changes. */
const END_TURNS_MAX = 1000;
/** Watches whose time has come that are seen to in one turn. */
const DUE_PER_TURN_MAX = 1000;

const SLASH = 0x2f;
const event = emptyEvent();

/** A list, or the beginning of a watch, that waits for an index. */
interface IndexWaiter {
  readonly field: string;
  readonly revision: number;
  readonly done: () => void;
}

export class WatchHub implements WatchHome {
  readonly storage: Storage;
  readonly frames: FrameCache = new FrameCache();
  readonly defer: (work: () => void) => void;
  readonly #range: KeyRange;
  readonly #prefixLength: number;
  readonly #seed: () => number;
  #index: ObjectIndex | null = null;
  #indexWaiters: IndexWaiter[] = [];
  readonly #watchers = new Set<Watcher>();
  readonly #all = new Scope();
  readonly #byNamespace = new Map<string, Scope>();
  readonly #due = new DueTimes<Watcher>();
  #feed: StorageWatch | null = null;
  #isSettling = false;
  #isTicking = false;
  aheadBytes = 0;
  stuck = 0;
  /** Events handed out, for the metrics. */
  dispatched = 0;
  /** What watches were sent, by the version that they ask for. */
  readonly counts: Map<string, WatchCounts> = new Map();
  /** Open watches with a shard selector. */
  shards = 0;
  #filteredBefore = 0;

  constructor(
    storage: Storage,
    range: KeyRange,
    prefixLength: number,
    defer: (work: () => void) => void,
    seed: () => number,
  ) {
    this.#seed = seed;
    this.storage = storage;
    this.#range = range;
    this.#prefixLength = prefixLength;
    this.defer = defer;
  }

  get size(): number {
    return this.#watchers.size;
  }

  /** Watches that may be shown a change of this object. */
  countFor(namespace: string, name: string): number {
    const own = namespace === '' ? undefined : this.#byNamespace.get(namespace);
    return this.#all.countFor(name) + (own?.countFor(name) ?? 0);
  }

  /** States of objects that shard selectors kept from watches. */
  get filtered(): number {
    let sum = this.#filteredBefore + this.#all.filtered;
    for (const scope of this.#byNamespace.values()) sum += scope.filtered;
    return sum;
  }

  countsOf(version: string): WatchCounts {
    let counts = this.counts.get(version);
    if (counts === undefined) this.counts.set(version, (counts = new WatchCounts()));
    return counts;
  }

  /** Starts a watch whose head was sent; see `Watcher`. */
  add(request: WatchRequest, initial: RowStream | null, nowMs: number): void {
    this.#openFeed();
    const watcher = new Watcher(request, initial, this);
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
    const { storage } = this;
    const open = (revision: number): StorageWatch | null =>
      storage.watch(start, end, revision, () => this.settle());
    // what this turn has written is still to come, unless history begins after it
    this.#feed = open(storage.watchedRevision) ?? open(storage.publishedRevision);
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
    if (this.#indexWaiters.length > 0) this.#checkIndexWaiters(0);
  }

  #dispatch(): void {
    this.#index?.apply(event);
    if (this.#watchers.size === 0) return;
    this.dispatched++;
    this.frames.nextTurn();
    const { key, keyStart, keyEnd } = event.value;
    const pathStart = keyStart + this.#prefixLength;
    const slash = key.indexOf(SLASH, pathStart);
    const isSpaced = slash >= 0 && slash < keyEnd;
    const nameStart = isSpaced ? slash + 1 : pathStart;
    const scope =
      isSpaced && this.#byNamespace.size > 0
        ? this.#byNamespace.get(key.toString('utf8', pathStart, slash))
        : undefined;
    const isNamed = this.#all.hasNames || scope?.hasNames === true;
    const name = isNamed ? key.toString('utf8', nameStart, keyEnd) : '';
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
    this.#closeIdleFeed();
  }

  #closeIdleFeed(): void {
    if (this.#watchers.size > 0 || this.#index !== null) return;
    this.#feed?.close();
    this.#feed = null;
  }

  /**
   * Calls `done` with what a list at `revision` (published already) has to look at: rows that an
   * index has picked, or all of storage. At once where no index is to be waited for.
   */
  whenIndexed(
    filter: Filter,
    range: KeyRange,
    revision: number,
    nowMs: number,
    done: (source: RowSource) => void,
  ): void {
    const field = this.#fieldOf(filter, nowMs);
    const index = this.#index;
    if (field === '' || index === null) {
      done(this.storage);
      return;
    }
    const finish = (): void => done(index.source(field, filter, range, revision) ?? this.storage);
    this.settle();
    if (!index.has(field)) {
      index.begin(field, nowMs);
      this.defer(() => this.#walk(index, field, index.start));
    } else if (this.#isIndexed(field, revision, nowMs)) {
      finish();
      return;
    }
    if (this.#isSmall) {
      done(this.storage);
      return;
    }
    this.#indexWaiters.push({ field, revision, done: finish });
  }

  /** Few objects are looked at one by one, without waiting for an index. */
  get #isSmall(): boolean {
    return this.storage.count(this.#range.start, this.#range.end) < INDEX_ITEMS_MIN;
  }

  /**
   * The index field that serves the filter; '' where all objects are better looked at. That of
   * nodes is begun while there are few objects, so that nobody waits for it when there are many.
   */
  #fieldOf(filter: Filter, nowMs: number): string {
    const isByNode = filter.nodeName !== null && filter.nodeName !== '';
    if (filter.isEverything || (!isByNode && this.#isSmall)) return '';
    this.#openFeed();
    const length = this.#prefixLength;
    this.#index ??= new ObjectIndex(this.storage, this.#range, length, new Random(this.#seed()));
    return this.#index.fieldOf(filter, nowMs);
  }

  #isIndexed(field: string, revision: number, nowMs: number): boolean {
    const position = this.#feed?.position ?? -1;
    return position >= revision && this.#index?.isReady(field, position, nowMs) === true;
  }

  #walk(index: ObjectIndex, field: string, next: Buffer): void {
    if (this.#index !== index) return;
    const onward = index.walk(field, next);
    if (onward !== null) this.defer(() => this.#walk(index, field, onward));
    else this.#awaitEvents(index);
  }

  /** What the walk saw may not be published yet: looks each turn until nobody waits. */
  #awaitEvents(index: ObjectIndex): void {
    if (this.#index !== index) return;
    this.settle();
    if (this.#indexWaiters.length > 0) this.defer(() => this.#awaitEvents(index));
  }

  #checkIndexWaiters(nowMs: number): void {
    const waiting = this.#indexWaiters;
    this.#indexWaiters = [];
    for (const waiter of waiting) {
      const isOver = this.#index?.has(waiter.field) !== true;
      if (isOver || this.#isIndexed(waiter.field, waiter.revision, nowMs)) waiter.done();
      else this.#indexWaiters.push(waiter);
    }
  }

  /** Waiters look at everything; the next list that wants an index makes a new one. */
  #dropIndex(): void {
    const waiting = this.#indexWaiters;
    this.#index = null;
    this.#indexWaiters = [];
    for (const { done } of waiting) done();
  }

  /** The hub's place in the log is gone: each watch goes on by itself, from where the hub was. */
  #loseAll(feed: StorageWatch): void {
    const { position } = feed;
    feed.close();
    this.#feed = null;
    this.#dropIndex();
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
    this.frames.tick();
    if (this.#all.hasNodes) this.#index?.keep(NODE_FIELD, nowMs);
    if (this.#index?.dropIdle(nowMs) === true && this.#indexWaiters.length === 0) {
      this.#dropIndex();
      this.#closeIdleFeed();
    }
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

  /**
   * Ends every watch that was shown what happened up to `revision`, and the others as soon as they
   * were; those whose clients do not read, and what takes too long, at once.
   */
  endAt(revision: number, turnsLeft: number = END_TURNS_MAX): void {
    this.settle();
    const position = this.#feed?.position ?? 0;
    for (const watcher of Array.from(this.#watchers)) {
      watcher.stopAt(revision);
      const isShown = watcher.isLive && position >= revision;
      if (isShown || turnsLeft === 0 || watcher.request.exchange.writable() <= 0) watcher.end();
    }
    if (this.#watchers.size > 0) this.defer(() => this.endAt(revision, turnsLeft - 1));
  }

  /** Ends every watch cleanly; clients open new ones elsewhere. */
  endAll(): void {
    for (const watcher of Array.from(this.#watchers)) watcher.end();
  }
}
