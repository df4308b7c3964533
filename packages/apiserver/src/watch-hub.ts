/**
 * All watches of one kind's objects.
 *
 * The hub reads the log of changes once and hands each event to the watches that it may concern:
 * those of everything, those of its namespace, of its very object, and of the node that its pod is
 * or was bound to. An event costs what those cost, not what all watches cost.
 */
import { nodeNameOf } from './filter.ts';
import type { KeyRange } from './served.ts';
import { emptyEvent, type Storage, type StorageWatch } from './storage.ts';
import { FrameCache, Watcher, type WatchHome, type WatchRequest } from './watcher.ts';

/** A client is told its revision this often. */
export const BOOKMARK_MS = 60_000;
/** And this long before its watch ends. */
const LAST_BOOKMARK_MS = 2000;

const event = emptyEvent();

export class WatchHub implements WatchHome {
  readonly storage: Storage;
  readonly #range: KeyRange;
  readonly #prefixLength: number;
  readonly defer: (work: () => void) => void;
  readonly #frames = new FrameCache();
  readonly #watchers = new Set<Watcher>();
  readonly #everything = new Set<Watcher>();
  readonly #byNamespace = new Map<string, Set<Watcher>>();
  readonly #byName = new Map<string, Set<Watcher>>();
  readonly #byNode = new Map<string, Set<Watcher>>();
  #feed: StorageWatch | null = null;
  #isSettling = false;
  /** Events handed out, for the metrics. */
  dispatched = 0;

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

  /** Starts a watch whose head was sent. */
  add(request: WatchRequest, nowMs: number): void {
    this.#openFeed();
    const firstMs = Math.min(nowMs + BOOKMARK_MS, request.deadlineMs - LAST_BOOKMARK_MS);
    const watcher = new Watcher(request, this, firstMs);
    this.#watchers.add(watcher);
    watcher.pump();
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
      outcome = feed.next(event);
    }
    this.#isSettling = false;
    if (outcome === 'gone') this.#loseAll(feed);
  }

  #dispatch(): void {
    this.dispatched++;
    for (const watcher of this.#everything) watcher.offer(event, this.#frames);
    const { key, keyStart, keyEnd } = event.value;
    if (this.#byNamespace.size > 0 || this.#byName.size > 0) {
      const path = key.toString('latin1', keyStart + this.#prefixLength, keyEnd);
      const slash = path.indexOf('/');
      if (slash >= 0) this.#offer(this.#byNamespace.get(path.slice(0, slash)));
      this.#offer(this.#byName.get(path));
    }
    if (this.#byNode.size > 0) {
      const now = nodeNameOf(event.value);
      const before = nodeNameOf(event.previous);
      this.#offer(this.#byNode.get(now));
      if (before !== now) this.#offer(this.#byNode.get(before));
    }
  }

  #offer(watchers: Set<Watcher> | undefined): void {
    if (watchers === undefined) return;
    for (const watcher of watchers) watcher.offer(event, this.#frames);
  }

  join(watcher: Watcher): void {
    this.#bucketOf(watcher, true)?.add(watcher);
  }

  leave(watcher: Watcher): void {
    const bucket = this.#bucketOf(watcher, false);
    bucket?.delete(watcher);
    if (bucket?.size === 0) this.#dropBucket(watcher);
    if (watcher.request.exchange.closed) this.#forget(watcher);
  }

  #forget(watcher: Watcher): void {
    this.#watchers.delete(watcher);
    if (this.#watchers.size > 0) return;
    this.#feed?.close();
    this.#feed = null;
  }

  /** Each live watch is in one bucket, the narrowest that its request allows. */
  #bucketOf({ request }: Watcher, create: boolean): Set<Watcher> | undefined {
    const { namespace, name, filter } = request;
    if (name !== '') {
      const path = namespace === '' ? name : `${namespace}/${name}`;
      return bucket(this.#byName, path, create);
    }
    if (filter.nodeName !== null) return bucket(this.#byNode, filter.nodeName, create);
    if (namespace !== '') return bucket(this.#byNamespace, namespace, create);
    return this.#everything;
  }

  #dropBucket({ request }: Watcher): void {
    const { namespace, name, filter } = request;
    if (name !== '') this.#byName.delete(namespace === '' ? name : `${namespace}/${name}`);
    else if (filter.nodeName !== null) this.#byNode.delete(filter.nodeName);
    else if (namespace !== '') this.#byNamespace.delete(namespace);
  }

  #loseAll(feed: StorageWatch): void {
    feed.close();
    this.#feed = null;
    for (const watcher of Array.from(this.#watchers)) if (watcher.isLive) watcher.lose();
    if (this.#watchers.size > 0) this.#openFeed();
  }

  /** About once a second: bookmarks that are due, and watches whose time is over. */
  tick(nowMs: number): void {
    this.settle();
    for (const watcher of Array.from(this.#watchers)) {
      const { deadlineMs, exchange } = watcher.request;
      if (exchange.closed) {
        this.#forget(watcher);
      } else if (nowMs >= deadlineMs) {
        watcher.end();
        this.#forget(watcher);
      } else if (nowMs >= watcher.bookmarkAtMs) {
        watcher.bookmark(this.storage.publishedRevision);
        const beforeEndMs = deadlineMs - LAST_BOOKMARK_MS;
        const nextMs = nowMs + BOOKMARK_MS;
        watcher.bookmarkAtMs = nowMs >= beforeEndMs ? deadlineMs : Math.min(nextMs, beforeEndMs);
      }
    }
  }

  /** Ends every watch cleanly; clients open new ones elsewhere. */
  endAll(): void {
    for (const watcher of Array.from(this.#watchers)) {
      watcher.end();
      this.#forget(watcher);
    }
  }
}

function bucket(
  buckets: Map<string, Set<Watcher>>,
  key: string,
  create: boolean,
): Set<Watcher> | undefined {
  let found = buckets.get(key);
  if (found === undefined && create) buckets.set(key, (found = new Set()));
  return found;
}
