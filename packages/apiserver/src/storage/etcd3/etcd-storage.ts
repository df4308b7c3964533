// shell: storage on an etcd cluster, or on the group of a journal
/**
 * Reads and watches are answered by a replica, which is the same structure that the embedded store
 * is; writes are etcd's transactions, as Kubernetes makes them. A write is reported when its own
 * event has come back, so that who hears of it also reads it.
 */
import { everyMs } from '@megaplane/base/deferred';
import type { EtcdResult } from '@megaplane/etcd/client/client';
import type { LeaseId, WriteAnswer } from '@megaplane/etcd/client/messages';
import type { RevisionedStore } from '@megaplane/store/contract';
import { EmbeddedStorage } from '../embedded/embedded-storage.ts';
import { isSealed } from '../encryption/value-sealer.ts';
import { isEventKey } from '../event-leases.ts';
import { isMasterLeaseKey } from '../master-leases.ts';
import {
  emptyRow,
  EXPECT_ABSENT,
  type NextOutcome,
  type PageOutcome,
  type Recall,
  type RecalledRows,
  type Row,
  type Storage,
  type StorageEvent,
  type StorageWatch,
  type WriteDone,
  type WriteOutcome,
} from '../storage.ts';
import type { EtcdOperation, EtcdRequests } from './etcd-requests.ts';
import { LeasePool } from './lease-pool.ts';
import type { Origin } from './origin.ts';
import type { PastReader } from './past-rows.ts';
import { RevisionQueue } from './revision-queue.ts';

/** A read that asks for the newest state fails when that is not there by then. */
const FRESH_MS_MAX = 10_000;
/** The event of a write that was done is waited for so long; then the write is reported. */
const ECHO_MS_MAX = 3000;
/** Etcd is asked again how far it is while somebody waits; upstream asks every 100 ms. */
const NUDGE_MS = 50;
const RESOURCE_EXHAUSTED = 8;
const NOT_FOUND = 5;

/** Brings values into the form of etcd; throws where that cannot be done. */
export type Encode = (key: Buffer, value: Buffer) => Buffer;

export interface EtcdStorageParts {
  readonly origin: Origin;
  /** What the origin holds, here. */
  readonly store: RevisionedStore;
  /** Null: nobody keeps more of the past than this replica does. */
  readonly past: PastReader | null;
  readonly encode: Encode;
  /**
   * What must be written before `value` may be: null for nothing, else resolves with why it could
   * not be, or null.
   */
  readonly prepare?: (value: Buffer) => Promise<string | null> | null;
  /** Sealed values in the replica are such that no key opened. */
  readonly showsOpened: boolean;
  readonly isStale: (key: Buffer) => boolean;
  /** History of the replica is its own, not what the origin says of it. */
  readonly compacts: boolean;
  readonly eventTtlSeconds: number;
  readonly masterLeaseSeconds: number;
  /** Counts what is asked of etcd. */
  readonly requests: EtcdRequests;
  /** A caller's callback threw; the next ones are called all the same. */
  readonly onError: (error: unknown) => void;
  /** Ends what runs beside this storage. */
  readonly stop: () => Promise<void>;
}

type Fresh = (fault: string | null) => void;

export class EtcdStorage implements Storage {
  readonly isShared: boolean = true;
  readonly #parts: EtcdStorageParts;
  #reads: EmbeddedStorage;
  readonly #listeners: (() => void)[] = [];
  readonly #queue = new RevisionQueue();
  readonly #events: LeasePool;
  readonly #masters: LeasePool;
  readonly #granting = new Map<LeasePool, Promise<EtcdResult<LeaseId>>>();
  /** Who wants to know the newest revision: asked for already, and for the next question. */
  #asking = false;
  #nextAsk: Fresh[] = [];
  /** Keys whose newest state is on its way. */
  #keyWaits: KeyWait[] = [];
  #nudge: NodeJS.Timeout | null = null;
  readonly #watches = new Set<GapWatch>();
  readonly #row = emptyRow();

  constructor(parts: EtcdStorageParts) {
    this.#parts = parts;
    this.#reads = readsOf(parts.store);
    this.#events = new LeasePool(parts.eventTtlSeconds);
    this.#masters = new LeasePool(parts.masterLeaseSeconds);
  }

  get appliedRevision(): number {
    return this.#reads.appliedRevision;
  }

  get publishedRevision(): number {
    return this.#reads.publishedRevision;
  }

  get watchedRevision(): number {
    return this.#reads.watchedRevision;
  }

  get fault(): string | null {
    return this.#parts.origin.fault;
  }

  isStale(key: Buffer): boolean {
    return this.#parts.isStale(key);
  }

  get(key: Buffer, row: Row): boolean {
    return this.#reads.get(key, row);
  }

  page(start: Buffer, end: Buffer, revision: number, visit: (row: Row) => boolean): PageOutcome {
    return this.#reads.page(start, end, revision, visit);
  }

  keys(start: Buffer, end: Buffer, revision: number, visit: (row: Row) => boolean): PageOutcome {
    return this.#reads.keys(start, end, revision, visit);
  }

  count(start: Buffer, end: Buffer): number {
    return this.#reads.count(start, end);
  }

  oldestRevision(start: Buffer, end: Buffer): number {
    return this.#reads.oldestRevision(start, end);
  }

  hold(start: Buffer, end: Buffer, revision: number): () => void {
    return this.#reads.hold(start, end, revision);
  }

  recall(recall: Recall, done: (rows: RecalledRows | string | null) => void): void {
    const { past } = this.#parts;
    if (past === null) {
      done(null);
      return;
    }
    void past.read(recall).then((rows) => {
      try {
        done(rows);
      } catch (error) {
        this.#parts.onError(error);
      }
    });
  }

  watch(start: Buffer, end: Buffer, revision: number, wake: () => void): StorageWatch | null {
    const watch = this.#reads.watch(start, end, revision, wake);
    if (watch === null) return null;
    const own = new GapWatch(watch, wake, this.#watches, this.#parts.showsOpened);
    this.#watches.add(own);
    return own;
  }

  /** Changes were missed: nobody who watches can be told all that happened. */
  lose(): void {
    for (const watch of Array.from(this.#watches)) watch.lose();
  }

  /** Another replica takes the place of this one: it is further, and what came between is gone. */
  renew(store: RevisionedStore): void {
    this.#reads = readsOf(store);
    for (const listener of this.#listeners) this.#reads.onPublish(listener);
    this.lose();
    this.settle();
  }

  print(lines: string[]): void {
    this.#parts.requests.print(lines);
  }

  onPublish(listener: () => void): void {
    this.#listeners.push(listener);
    this.#reads.onPublish(listener);
  }

  /** The replica's history only: etcd's is compacted by turns, see `compactor.ts`. */
  compact(revision: number): void {
    if (this.#parts.compacts) this.#reads.compact(revision);
  }

  /** The feed has moved the replica on. */
  settle(): void {
    this.#queue.reach(this.appliedRevision);
    if (this.#keyWaits.length === 0) return;
    const waits = this.#keyWaits;
    this.#keyWaits = [];
    for (const wait of waits) if (!this.#isSeen(wait)) this.#keyWaits.push(wait);
  }

  /** About once a second: ends what waits in vain. */
  tick(nowMs: number): void {
    this.#queue.expire(nowMs);
    const late = this.#keyWaits.filter((wait) => wait.deadlineMs <= nowMs);
    if (late.length === 0) return;
    this.#keyWaits = this.#keyWaits.filter((wait) => wait.deadlineMs > nowMs);
    for (const wait of late) wait.done(false);
  }

  put(key: Buffer, value: Buffer, expected: number, onDone: WriteDone): void {
    const done = this.#guarded(onDone);
    let stored: Buffer;
    try {
      stored = this.#parts.encode(key, value);
    } catch (error) {
      done({ kind: 'failed', message: error instanceof Error ? error.message : String(error) });
      return;
    }
    const before = this.#parts.prepare?.(value) ?? null;
    const put = { key: Buffer.from(key), value: stored, expected };
    if (before === null) this.#put(put, done);
    else void this.#putAfter(before, put, done);
  }

  #put({ key, value, expected }: Put, done: WriteDone): void {
    const pool = this.#poolOf(key);
    if (pool === null) void this.#write(key, value, expected, undefined, done);
    else void this.#putEnding(key, value, expected, pool, done);
  }

  async #putAfter(before: Promise<string | null>, put: Put, done: WriteDone): Promise<void> {
    const fault = await before;
    if (fault === null) this.#put(put, done);
    else done({ kind: 'failed', message: fault });
  }

  delete(key: Buffer, expected: number, onDone: WriteDone): void {
    const done = this.#guarded(onDone);
    void this.#write(Buffer.from(key), null, expected, undefined, done);
  }

  /** One request's fault must not end what serves the others. */
  #guarded<Outcome>(done: (outcome: Outcome) => void): (outcome: Outcome) => void {
    return (outcome) => {
      try {
        done(outcome);
      } catch (error) {
        this.#parts.onError(error);
      }
    };
  }

  /** Where leases for this key come from; null: the object stays. */
  #poolOf(key: Buffer): LeasePool | null {
    if (isEventKey(key)) return this.#events;
    return isMasterLeaseKey(key) ? this.#masters : null;
  }

  async #putEnding(
    key: Buffer,
    value: Buffer,
    expected: number,
    pool: LeasePool,
    done: WriteDone,
  ): Promise<void> {
    let id = pool.take(performance.now());
    if (id === null) {
      const granted = await this.#grant(pool);
      if (!granted.ok) {
        done({ kind: 'failed', message: granted.message });
        return;
      }
      id = pool.take(performance.now()) ?? granted.value;
    }
    await this.#write(key, value, expected, { id, pool }, done);
  }

  #grant(pool: LeasePool): Promise<EtcdResult<LeaseId>> {
    const granting = this.#granting.get(pool) ?? this.#grantAnew(pool);
    this.#granting.set(pool, granting);
    return granting;
  }

  async #grantAnew(pool: LeasePool): Promise<EtcdResult<LeaseId>> {
    const granted = await this.#parts.origin.grantLease(pool.grantSeconds);
    if (granted.ok) pool.add(granted.value, performance.now());
    this.#granting.delete(pool);
    return granted;
  }

  async #write(
    key: Buffer,
    value: Buffer | null,
    expected: number,
    lease: { readonly id: LeaseId; readonly pool: LeasePool } | undefined,
    done: WriteDone,
  ): Promise<void> {
    const { origin, requests } = this.#parts;
    const sinceMs = performance.now();
    const result = await origin.write({ key, expected, value, lease: lease?.id });
    const operation = operationOf(value, expected);
    requests.count(operation, key, performance.now() - sinceMs, result.ok);
    if (!result.ok) {
      if (result.code === NOT_FOUND) lease?.pool.drop();
      done(refusal(result.code, result.message));
      return;
    }
    this.#report(key, result.value, done);
  }

  #report(key: Buffer, { succeeded, revision, found }: WriteAnswer, done: WriteDone): void {
    const deadlineMs = performance.now() + ECHO_MS_MAX;
    if (succeeded) {
      this.#whenApplied(revision, deadlineMs, () => done({ kind: 'done', revision }));
      return;
    }
    // whoever tries again must see what was in the way
    const modRevision = found?.modRevision ?? 0;
    this.#whenSeen({ key, modRevision, deadlineMs, done: () => done({ kind: 'conflict' }) });
  }

  #whenApplied(revision: number, deadlineMs: number, done: (isReached: boolean) => void): void {
    if (revision <= this.appliedRevision) done(true);
    else this.#queue.add({ revision, deadlineMs, done });
  }

  #whenSeen(wait: KeyWait): void {
    if (!this.#isSeen(wait)) this.#keyWaits.push(wait);
  }

  /** True, and told, once the replica has the key at the revision, or not any more. */
  #isSeen({ key, modRevision, done }: KeyWait): boolean {
    const isThere =
      modRevision > 0 ? this.appliedRevision >= modRevision : !this.#reads.get(key, this.#row);
    if (isThere) done(true);
    return isThere;
  }

  refresh(key: Buffer | null, onDone: Fresh): void {
    const done = this.#guarded(onDone);
    const { revisionOf } = this.#parts.origin;
    if (key === null || revisionOf === undefined) {
      this.#nextAsk.push(done);
      if (!this.#asking) void this.#ask();
    } else void this.#refreshKey(Buffer.from(key), revisionOf, done);
  }

  async #refreshKey(
    key: Buffer,
    revisionOf: NonNullable<Origin['revisionOf']>,
    done: Fresh,
  ): Promise<void> {
    const sinceMs = performance.now();
    const result = await revisionOf(key);
    this.#parts.requests.count('get', key, performance.now() - sinceMs, result.ok);
    if (!result.ok) {
      done(result.message);
      return;
    }
    const deadlineMs = performance.now() + FRESH_MS_MAX;
    const reached = (isReached: boolean): void => done(isReached ? null : TOO_LATE);
    this.#whenSeen({ key, modRevision: result.value, deadlineMs, done: reached });
  }

  /** Asks for the newest revision, for all who want it by now; again while there are more. */
  async #ask(): Promise<void> {
    this.#asking = true;
    while (this.#nextAsk.length > 0) {
      const asked = this.#nextAsk;
      this.#nextAsk = [];
      const result = await this.#parts.origin.newest();
      if (!result.ok) {
        for (const done of asked) done(result.message);
        continue;
      }
      const deadlineMs = performance.now() + FRESH_MS_MAX;
      this.#whenApplied(result.value, deadlineMs, (isReached) => {
        for (const done of asked) done(isReached ? null : TOO_LATE);
      });
      if (result.value > this.appliedRevision) this.#keepNudging();
    }
    this.#asking = false;
  }

  #keepNudging(): void {
    const { nudge } = this.#parts.origin;
    if (nudge === null) return;
    nudge();
    if (this.#nudge !== null) return;
    this.#nudge = everyMs(NUDGE_MS, () => {
      if (this.#queue.size > 0) this.#parts.origin.nudge?.();
      else if (this.#nudge !== null) {
        clearInterval(this.#nudge);
        this.#nudge = null;
      }
    });
    this.#nudge.unref();
  }

  async close(): Promise<void> {
    if (this.#nudge !== null) clearInterval(this.#nudge);
    await this.#parts.stop();
  }
}

/** A watch that ends where changes were missed, although the next ones are known. */
class GapWatch implements StorageWatch {
  readonly #watch: StorageWatch;
  readonly #wake: () => void;
  readonly #all: Set<GapWatch>;
  readonly #showsOpened: boolean;
  #isLost = false;

  constructor(watch: StorageWatch, wake: () => void, all: Set<GapWatch>, showsOpened: boolean) {
    this.#watch = watch;
    this.#wake = wake;
    this.#all = all;
    this.#showsOpened = showsOpened;
  }

  get position(): number {
    return this.#watch.position;
  }

  next(event: StorageEvent): NextOutcome {
    if (this.#isLost) return 'gone';
    const outcome = this.#watch.next(event);
    if (outcome !== 'event' || !this.#showsOpened) return outcome;
    // a change that cannot be told ends the watch; whoever lists again hears why
    const { value, previous } = event;
    if (!event.isDelete && isSealed(value.bytes, value.start)) return 'gone';
    return !event.isCreate && isSealed(previous.bytes, previous.start) ? 'gone' : outcome;
  }

  lose(): void {
    this.#isLost = true;
    this.#all.delete(this);
    this.#wake();
  }

  close(): void {
    this.#all.delete(this);
    this.#watch.close();
  }
}

interface Put {
  readonly key: Buffer;
  readonly value: Buffer;
  readonly expected: number;
}

interface KeyWait {
  readonly key: Buffer;
  /** 0: absent. */
  readonly modRevision: number;
  readonly deadlineMs: number;
  readonly done: (isReached: boolean) => void;
}

function readsOf(store: RevisionedStore): EmbeddedStorage {
  return new EmbeddedStorage(store, () => Promise.resolve());
}

function operationOf(value: Buffer | null, expected: number): EtcdOperation {
  if (value === null) return 'delete';
  return expected === EXPECT_ABSENT ? 'create' : 'update';
}

const TOO_LATE = 'etcdserver: request timed out';

function refusal(code: number, message: string): WriteOutcome {
  const isFull = code === RESOURCE_EXHAUSTED && message.includes('database space exceeded');
  return isFull ? { kind: 'full', message } : { kind: 'failed', message };
}
