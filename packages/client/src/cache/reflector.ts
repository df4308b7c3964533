/**
 * Keeps rows equal to a collection of the server: the rules of client-go's reflector.
 *
 *     start ─► initial ─(bookmark: initial events end)─► watching ◄─┐
 *                │  └──(refused for good)─► listing ─────────┘ │    │
 *                │                                             │    │
 *                └──────────(failed)──► waiting ◄──(failed)────┘    │
 *                                         └──(revision known)───────┘
 *     listing, watching ──(large, and to be polled)─► resting ──(period)─► listing
 *
 * A watch that ends is taken up again at the last revision seen; the server then sends what came
 * after it, so nothing is missed. When the server has forgotten that revision (410), the whole
 * collection is read once more into the same rows: what changed is delivered, what is the same is
 * not, what is missing at its end is deleted.
 */
import { unreachable } from '@megaplane/base/assert';
import type { Status } from '@megaplane/machinery/status';
import { statusOf } from '../rest/answer.ts';
import { Backoff } from '../rest/backoff.ts';
import type { Client, StreamHandle, StreamSink } from '../rest/client.ts';
import { withQuery } from '../rest/list-query.ts';
import { isInitialEventsEnd } from './object-key.ts';
import { PAGE_ITEMS, Pages } from './pager.ts';
import type { InformerStore } from './informer-store.ts';
import type { Shard } from './shard.ts';
import {
  EVENT_ADDED,
  EVENT_BOOKMARK,
  EVENT_DELETED,
  EVENT_ERROR,
  EVENT_GARBAGE,
  EVENT_MODIFIED,
  FRAME_BYTES_MAX,
  WatchFrames,
} from './watch-frames.ts';
import type {
  InformerHandler,
  InformerMetrics,
  InformerOptions,
  Polling,
} from './informer-options.ts';

/** Upstream's pauses after failures, and after how long they begin anew. */
const BACKOFF = { baseMs: 800, capMs: 30_000, jitter: 1, resetMs: 120_000 };
/**
 * Pauses after the connection was lost. Short ones: the program's own connection is the only one
 * that comes back, and its pauses protect the server; here they would only add to them.
 */
const RECONNECT = { baseMs: 100, capMs: 2000, jitter: 0.5, resetMs: 60_000 };
/** A watch is asked for so many seconds, drawn from this range, lest all watches end at once. */
const WATCH_SECONDS_MIN = 300;
const WATCH_SECONDS_MAX = 600;
/** How long after its time a watch that did not end is taken for dead. */
const WATCH_GRACE_MS = 30_000;
/** Silence of an initial list after which it is taken for dead. */
const INITIAL_SILENCE_MS = 60_000;
/** A watch that ends sooner, without an event, counts as a failure. */
const SHORT_WATCH_MS = 1000;
/** Octets of a refusal that are kept for its message. */
const REFUSAL_BYTES_MAX: number = 64 * 1024;
/** A list whose revision was forgotten before its end is read in larger pages, up to this. */
const PAGE_ITEMS_MAX = 32_000;
/** Answers that say "this way of asking is not understood", as opposed to "not now". */
const NOT_UNDERSTOOD: ReadonlySet<number> = new Set([400, 405, 406, 415, 422, 501]);

type ReflectorState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'waiting'; readonly cancel: () => void }
  | { readonly kind: 'resting'; readonly cancel: () => void }
  | { readonly kind: 'initial'; readonly watch: Watch }
  | { readonly kind: 'listing'; readonly pages: Pages }
  | { readonly kind: 'watching'; readonly watch: Watch }
  | { readonly kind: 'stopped' };

/** One stream of events and what is known of it. */
class Watch implements StreamSink {
  readonly startMs: number;
  /** What it tells came after this revision; 0 for one that begins with the collection. */
  readonly fromRevision: number;
  events = 0;
  status = 0;
  retryAfterSeconds = 0;
  refusal: Buffer = Buffer.alloc(0);
  handle: StreamHandle | null = null;
  cancelGuard: (() => void) | null = null;
  lastDataMs: number;
  readonly #owner: Reflector;

  constructor(owner: Reflector, nowMs: number) {
    this.#owner = owner;
    this.fromRevision = owner.revision;
    this.startMs = nowMs;
    this.lastDataMs = nowMs;
  }

  onHead(status: number, retryAfterSeconds: number): void {
    this.status = status;
    this.retryAfterSeconds = retryAfterSeconds;
  }

  onData(bytes: Uint8Array, start: number, end: number): void {
    if (this.status === 200) return this.#owner.receive(this, bytes, start, end);
    const room = REFUSAL_BYTES_MAX - this.refusal.length;
    const part = bytes.subarray(start, Math.min(end, start + room));
    this.refusal = Buffer.concat([this.refusal, part]);
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

export class Reflector {
  readonly metrics: InformerMetrics = {
    events: 0,
    bookmarks: 0,
    lists: 0,
    watches: 0,
    expired: 0,
    repeated: 0,
  };
  /** Up to which events have been delivered; 0 while no consistent state is known. */
  revision = 0;
  isSynced = false;
  /** The collection is read again and again, not watched. */
  isPolling = false;
  readonly #options: InformerOptions;
  readonly #client: Client;
  readonly #handler: InformerHandler;
  readonly #rows: InformerStore;
  readonly #frames = new WatchFrames();
  readonly #backoff: Backoff;
  readonly #reconnect: Backoff;
  #state: ReflectorState = { kind: 'idle' };
  /** The server knows watches that begin with the whole collection, as far as we know. */
  #hasWatchList = true;
  /** When the reading under way began. */
  #roundMs = 0;
  /** What the last reading of a polled collection left out, and how many objects it brought. */
  #isRest = false;
  #itemsRead = 0;
  /** Revisions of the last two readings; 0: nothing may be left out. */
  #lastRevision = 0;
  #beforeRevision = 0;
  /** There are other objects than the rows know: all must be compared. */
  #isAstray = false;
  #pageItems = PAGE_ITEMS;
  readonly #shard: Shard | null;
  #probe: StreamHandle | null = null;

  constructor(options: InformerOptions, rows: InformerStore, shard: Shard | null = null) {
    this.#options = options;
    this.#shard = shard;
    this.#client = options.client;
    this.#handler = options.handler;
    this.#rows = rows;
    this.#backoff = new Backoff(BACKOFF, () => options.client.random());
    this.#reconnect = new Backoff(RECONNECT, () => options.client.random());
  }

  start(): void {
    if (this.#state.kind === 'idle') this.#begin();
  }

  stop(): void {
    const state = this.#state;
    this.#state = { kind: 'stopped' };
    this.#probe?.cancel();
    switch (state.kind) {
      case 'waiting':
      case 'resting':
        return state.cancel();
      case 'initial':
      case 'watching':
        return state.watch.close();
      case 'listing':
        return state.pages.cancel();
      case 'idle':
      case 'stopped':
        return;
      default:
        unreachable(state);
    }
  }

  #begin(): void {
    if (this.isPolling) this.#list();
    else if (this.revision > 0) this.#watch();
    else if (this.#hasWatchList) this.#watchFromNothing();
    else this.#list();
  }

  #query(more: Readonly<Record<string, string>>): string {
    const { path, labelSelector, fieldSelector } = this.#options;
    const shardSelector = this.#shard?.text;
    return withQuery(path, { ...more, labelSelector, fieldSelector, shardSelector });
  }

  /** A watch does not tell whether the server knows shards; a list of one object does. */
  #askForShards(): void {
    if (this.#shard === null || (this.isPolling && this.#shard.sharding !== 'unknown')) return;
    const { path } = this.#options;
    this.#probe?.cancel();
    this.#probe = this.#shard.probe(this.#client, path, () => {
      this.#handler.onTrouble?.(
        `the server ignores shardSelector: all of ${path} is sent, and filtered here`,
      );
    });
  }

  #open(more: Readonly<Record<string, string>>): Watch {
    const seconds = Math.floor(
      WATCH_SECONDS_MIN + this.#client.random() * (WATCH_SECONDS_MAX - WATCH_SECONDS_MIN),
    );
    const { timers } = this.#client;
    const watch = new Watch(this, timers.nowMs());
    this.#frames.reset();
    this.metrics.watches++;
    watch.cancelGuard = timers.after(seconds * 1000 + WATCH_GRACE_MS, () => {
      watch.close();
      this.watchEnded(watch, 'the server did not end the watch in time');
    });
    const query = this.#query({
      watch: 'true',
      allowWatchBookmarks: 'true',
      timeoutSeconds: `${seconds}`,
      ...more,
    });
    this.#state = { kind: this.revision > 0 ? 'watching' : 'initial', watch };
    watch.handle = this.#client.stream(query, watch);
    return watch;
  }

  #watchFromNothing(): void {
    this.metrics.lists++;
    this.#rows.beginRound();
    const watch = this.#open({
      sendInitialEvents: 'true',
      resourceVersionMatch: 'NotOlderThan',
    });
    this.#askForShards();
    this.#guardInitial(watch);
  }

  /** Ends an initial list in which nothing moves any more. */
  #guardInitial(watch: Watch): void {
    const { timers } = this.#client;
    if (this.#state.kind !== 'initial' || this.#state.watch !== watch) return;
    const silentMs = timers.nowMs() - watch.lastDataMs;
    if (silentMs >= INITIAL_SILENCE_MS) {
      return this.#giveUp(watch, `nothing came for ${INITIAL_SILENCE_MS / 1000} s`);
    }
    const cancelEnd = watch.cancelGuard;
    // at least a millisecond: differences of times that are no integers may never reach the bound
    const cancelSilence = timers.after(Math.max(1, INITIAL_SILENCE_MS - silentMs), () => {
      watch.cancelGuard = cancelEnd;
      this.#guardInitial(watch);
    });
    watch.cancelGuard = (): void => {
      cancelEnd?.();
      cancelSilence();
    };
  }

  #watch(): void {
    this.#open({ resourceVersion: `${this.revision}` });
  }

  /** After the rows became equal to the collection: watches it, or rests until it is read anew. */
  #follow(): void {
    const { polling, client } = this.#options;
    const wasPolling = this.isPolling;
    const itemsMin = (polling?.itemsMin ?? Infinity) / (wasPolling ? 2 : 1);
    this.isPolling = this.#rows.size > itemsMin;
    // What was polled may be of more than one revision: a watch needs a list that is of one.
    if (wasPolling && !this.isPolling) return this.#list();
    if (polling === undefined || !this.isPolling) return this.#watch();
    const pauseMs = Math.max(0, this.#periodMs(polling) - (client.timers.nowMs() - this.#roundMs));
    const cancel = client.timers.after(pauseMs, () => this.#list());
    this.#state = { kind: 'resting', cancel };
  }

  /** Spreads the pages of a reading over half its period. */
  #pageMs(): number {
    const { polling } = this.#options;
    if (polling === undefined || !this.isPolling) return 0;
    return (this.#periodMs(polling) / 2 / Math.max(1, this.#rows.size)) * this.#limit();
  }

  #limit(): number {
    const polled = this.isPolling ? (this.#options.polling?.pageItems ?? 0) : 0;
    return Math.max(this.#pageItems, polled);
  }

  #periodMs({ periodMs, restPeriodMs = periodMs, itemsPerSecondMax }: Polling): number {
    const items = this.#isRest ? this.#itemsRead : this.#rows.size;
    return Math.max(this.#isRest ? restPeriodMs : periodMs, (items / itemsPerSecondMax) * 1000);
  }

  /** What has changed since this revision may be left out of the next reading; 0: nothing. */
  #restsSince(): number {
    const { onStill, onMoved } = this.#handler;
    const isPolled = this.isPolling && onStill !== undefined && onMoved !== undefined;
    return isPolled && !this.#isAstray ? this.#beforeRevision : 0;
  }

  #list(): void {
    this.metrics.lists++;
    this.#roundMs = this.#client.timers.nowMs();
    this.#rows.beginRound();
    const { path, labelSelector, fieldSelector } = this.#options;
    const unchangedSince = this.#restsSince();
    const pages: Pages = new Pages(
      {
        client: this.#client,
        path,
        labelSelector: labelSelector ?? '',
        fieldSelector: fieldSelector ?? '',
        shardSelector: this.#shard?.text ?? '',
        limit: this.#limit(),
        pageMs: this.#pageMs(),
        // What is polled may come from two revisions: an object that is there is in one of them.
        mustBeConsistent: !this.isPolling,
        unchangedSince,
        onItem: (bytes, start, end) => {
          if (this.#state.kind !== 'listing') return;
          const { object } = this.#rows;
          if (!object.read(bytes as Buffer, start, end)) return;
          const isStill = pages.unchangedOf >= 0 && object.resourceVersion <= unchangedSince;
          if (isStill) this.#rows.rest(bytes, start, end);
          else this.#rows.upsert(bytes, start, end, true);
        },
      },
      (result) => {
        if (this.#state.kind !== 'listing' || this.#state.pages !== pages) return;
        if (!result.ok) return this.#listFailed(result.status);
        this.#pageItems = PAGE_ITEMS;
        this.#itemsRead = result.items;
        this.#readThrough(Number(result.resourceVersion), pages.unchangedOf);
        if (this.#state.kind === 'listing') this.#follow();
      },
    );
    this.#state = { kind: 'listing', pages };
    pages.start();
    this.#askForShards();
  }

  /** A reading is over; `unchangedOf` as in `Pages`. */
  #readThrough(revision: number, unchangedOf: number): void {
    this.#isRest = unchangedOf >= 0;
    if (this.#isRest) this.#rows.endRest();
    else this.#rows.endRound();
    this.#isAstray = this.#isRest && this.#rows.size !== unchangedOf;
    this.#beforeRevision = this.#lastRevision;
    this.#lastRevision = revision;
    this.#synced(revision);
  }

  #listFailed(status: Status): void {
    this.#lastRevision = this.#beforeRevision = 0;
    if (status.code === 410) {
      this.metrics.expired++;
      this.#pageItems = Math.min(4 * this.#limit(), PAGE_ITEMS_MAX);
    }
    this.#wait(`cannot list ${this.#options.path}: ${status.message ?? 'no reason given'}`, 0);
  }

  /** The rows equal the collection at `revision`. */
  #synced(revision: number): void {
    this.revision = revision;
    this.isSynced = true;
    this.#backoff.reset();
    this.#handler.onSynced?.();
  }

  /** A chunk of the present watch. */
  receive(watch: Watch, bytes: Uint8Array, start: number, end: number): void {
    watch.lastDataMs = this.#client.timers.nowMs();
    const frames = this.#frames;
    frames.push(bytes, start, end);
    // Any event may end the watch, and a handler may stop the informer.
    while (this.#isCurrent(watch) && frames.next()) this.#event(watch);
    if (!frames.isTooLong || !this.#isCurrent(watch)) return;
    this.#giveUp(watch, `an event is larger than ${FRAME_BYTES_MAX} bytes`);
  }

  #isCurrent(watch: Watch): boolean {
    const state = this.#state;
    return (state.kind === 'initial' || state.kind === 'watching') && state.watch === watch;
  }

  #event(watch: Watch): void {
    const { bytes, type, objectStart, objectEnd } = this.#frames;
    watch.events++;
    if (type === EVENT_ERROR) return this.#errorEvent(watch, bytes, objectStart, objectEnd);
    const rows = this.#rows;
    const isRead = type !== EVENT_GARBAGE && rows.object.read(bytes, objectStart, objectEnd);
    if (!isRead || rows.object.resourceVersion < 0) {
      const shown = bytes.toString('utf8', objectStart, Math.min(objectEnd, objectStart + 100));
      return this.#giveUp(watch, `the server sent what is no watch event: ${shown}`);
    }
    const { resourceVersion } = rows.object;
    // Its store was put back to an earlier state, and takes our revision for one that is to come.
    if (resourceVersion < watch.fromRevision) {
      watch.close();
      rows.doubt();
      return this.#expired();
    }
    const isInitial = this.#state.kind === 'initial';
    // First, so that a handler that acts at once knows what it has seen.
    if (!isInitial && type !== EVENT_BOOKMARK) {
      this.revision = Math.max(this.revision, resourceVersion);
    }
    let isNews = true;
    switch (type) {
      case EVENT_ADDED:
      case EVENT_MODIFIED:
        isNews = rows.upsert(bytes, objectStart, objectEnd, isInitial);
        break;
      case EVENT_DELETED:
        isNews = rows.remove(bytes, objectStart, objectEnd);
        break;
      case EVENT_BOOKMARK:
        return this.#bookmark(watch, bytes, objectStart, objectEnd, resourceVersion);
      default:
        break;
    }
    this.metrics.events++;
    if (!isNews) this.metrics.repeated++;
    if (!isInitial) this.#pollIfLarge(watch);
  }

  /** Gives a watch up that has become too large a collection's. */
  #pollIfLarge(watch: Watch): void {
    const { polling } = this.#options;
    if (polling === undefined || this.#rows.size <= polling.itemsMin) return;
    watch.close();
    this.#roundMs = this.#client.timers.nowMs();
    this.#lastRevision = this.#beforeRevision = 0;
    this.#isRest = false;
    this.#follow();
  }

  /** The server answers, but not as it should. */
  #giveUp(watch: Watch, message: string): void {
    watch.close();
    this.#wait(`watch of ${this.#options.path}: ${message}`, 0);
  }

  #bookmark(
    watch: Watch,
    bytes: Buffer,
    start: number,
    end: number,
    resourceVersion: number,
  ): void {
    this.metrics.bookmarks++;
    if (this.#state.kind === 'watching') {
      this.revision = Math.max(this.revision, resourceVersion);
    } else if (isInitialEventsEnd(bytes, start, end)) {
      this.#state = { kind: 'watching', watch };
      this.#rows.endRound();
      this.#synced(resourceVersion);
      if (this.#isCurrent(watch)) this.#pollIfLarge(watch);
    }
  }

  #errorEvent(watch: Watch, bytes: Buffer, start: number, end: number): void {
    const status = statusOf(500, bytes, start, end);
    const isInitial = this.#state.kind === 'initial';
    watch.close();
    if (status.code === 410) return this.#expired();
    const message = `watch of ${this.#options.path}: ${status.message ?? 'error without a text'}`;
    // As in client-go: who cannot stream a list can give one. kube-apiserver on an etcd before
    // 3.4.25 begins to stream, and then says that it does not.
    if (isInitial && status.code !== 429) {
      this.#handler.onTrouble?.(message);
      return this.#list();
    }
    this.#wait(message, 0);
  }

  /** The server has forgotten our revision: begin anew, in the rows that are there. */
  #expired(): void {
    this.metrics.expired++;
    this.revision = 0;
    // A server that forgets faster than it lists must not be asked in a tight loop.
    this.#wait('', 0);
  }

  /** A watch is over, for whatever reason. */
  watchEnded(watch: Watch, error: string | null): void {
    if (!this.#isCurrent(watch)) return;
    const { path } = this.#options;
    const isInitial = this.#state.kind === 'initial';
    if (watch.status !== 0 && watch.status !== 200) return this.#refused(watch, isInitial);
    if (error !== null) return this.#reconnectAfter(`watch of ${path}: ${error}`);
    if (isInitial) return this.#wait(`watch of ${path} ended before all objects were sent`, 0);
    const ageMs = this.#client.timers.nowMs() - watch.startMs;
    if (ageMs < SHORT_WATCH_MS && watch.events === 0) {
      return this.#wait(`watch of ${path} ended at once`, 0);
    }
    this.#watch();
  }

  #refused(watch: Watch, isInitial: boolean): void {
    const status = statusOf(watch.status, watch.refusal, 0, watch.refusal.length);
    const isTooLarge = status.details?.causes?.some(
      (cause) => cause.reason === 'ResourceVersionTooLarge',
    );
    // A server that was put back to an earlier state has not our revision any more, or not yet.
    if (isTooLarge === true) this.#rows.doubt();
    if (watch.status === 410 || isTooLarge === true) return this.#expired();
    if (isInitial && NOT_UNDERSTOOD.has(watch.status)) {
      this.#hasWatchList = false;
      return this.#list();
    }
    this.#wait(
      `watch of ${this.#options.path} refused: ${status.message ?? watch.status}`,
      watch.retryAfterSeconds * 1000,
    );
  }

  #reconnectAfter(message: string): void {
    this.#pause(this.#reconnect.next(this.#client.timers.nowMs()), message);
  }

  /** Tries again after a pause that grows from failure to failure. */
  #wait(message: string, leastMs: number): void {
    const pauseMs = this.#backoff.next(this.#client.timers.nowMs());
    this.#pause(Math.max(leastMs, pauseMs), message);
  }

  #pause(pauseMs: number, message: string): void {
    const cancel = this.#client.timers.after(pauseMs, () => this.#begin());
    this.#state = { kind: 'waiting', cancel };
    if (message !== '') this.#handler.onTrouble?.(message);
  }
}
