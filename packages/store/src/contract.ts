/**
 * What the store promises to the programs in its process: the etcd server, the API server.
 *
 * One thread, synchronous calls, no clock: time comes in by `tick`. Data goes in as ranges of
 * Buffers and comes out by *ref*: a number that names one record (one version of one key) in the
 * store's arenas. No object exists per key, per version or per event.
 *
 * A ref is good until the calling turn ends (the store moves and frees records only in `tick`).
 * Keep (key, revision) across turns, not refs. 0 is "no record"; a negative number is a failure
 * of the table `FAILURE`.
 *
 * Two revisions: a write is *applied* at once (reads and compares see it) and *published* when
 * the log holds it as durably as its prefix promises. Whoever looked at the store at revision R
 * must not answer before `publishedRevision >= R`; watchers see published events only.
 * A server therefore holds a connection's output while `isPending` is true and lets it go in
 * `onPublish`. Nothing is ever pending in a store without a log.
 */

/** Why a call was refused. Texts and codes belong to the protocols (etcd, Kubernetes). */
export const FAILURE = {
  /** The read or watch lies before the history that is kept for this range. */
  compacted: -1,
  /** The revision asked for has not happened yet. */
  futureRevision: -2,
  /** `putIf`, `deleteIf`: the key is not at the expected revision. Nothing changed. */
  conflict: -3,
  /** The lease does not exist. */
  leaseNotFound: -4,
  /** A lease with this id exists already. */
  leaseExists: -5,
  /** More than LEASE_TTL_SECONDS_MAX was asked for. */
  leaseTtlTooLarge: -6,
  /** The memory limit or quota is reached; deletes, compaction and lease renewals still go on. */
  noSpace: -7,
  /** LOG_BACKLOG_BYTES_MAX of writes wait for the disk. */
  tooManyRequests: -8,
  /** The log failed (disk full, failed flush): nothing is acknowledged any more. */
  logFailed: -9,
} as const;
export type Failure = (typeof FAILURE)[keyof typeof FAILURE];

/**
 * How durable a write is before it is published:
 * `none` is not logged and gone after a restart (revisions still never go back);
 * `buffered` has been handed to the operating system (survives kill -9, not a power cut) and is
 * flushed at latest after BUFFERED_FLUSH_MS; `fsync` has been flushed to the disk.
 */
export type Durability = 'none' | 'buffered' | 'fsync';

export interface PrefixPolicy {
  /** Keys that start with these bytes; the longest matching prefix counts. */
  readonly prefix: string;
  readonly durability?: Durability;
  /** Bytes of superseded versions kept for this prefix; older ones are cut. Default no limit. */
  readonly historyBytesMax?: number;
  /** If given: kept is half of what is alive, from here to `historyBytesMax`. */
  readonly historyBytesMin?: number;
  /** Values that rest for so long may be packed, see `unpackedSize`. Default as for all others. */
  readonly packAfterMs?: number;
}

export interface StorageOptions {
  /** Directory of log and snapshots, made when missing; null keeps everything in memory only. */
  readonly dataDir: string | null;
  /** For keys under no listed prefix. Ignored (as `none`) when `dataDir` is null. */
  readonly durability: Durability;
  readonly prefixes: readonly PrefixPolicy[];
  /** History bytes of keys under no listed prefix. Default no limit. */
  readonly historyBytesMax?: number;
  /** For keys under no listed prefix, and where a policy says nothing. Default never. */
  readonly packAfterMs?: number;
  /** Bytes of arenas above which writes that grow the store are refused. Default no limit. */
  readonly memoryBytesMax?: number;
}

/** One page of a range, reused from call to call. Refs stand in key order. */
export interface Page {
  refs: Uint32Array;
  length: number;
  /** Live keys in the whole range at the revision read, whatever the limit. Exact. */
  count: number;
  /** True when the limit left keys of the range out. */
  more: boolean;
}

/** Told once per published turn, and only when something in its range happened. */
export interface Watcher {
  /** `id` is what `watch` returned. Read with `watchNext` now, or whenever there is room. */
  onEvents(id: number): void;
}

/**
 * A key range is four offsets into one Buffer: [startAt, startTo) is the first key and
 * [endAt, endTo) etcd's range_end: empty = just the first key, a single zero byte = every key
 * from the first on, anything else = the first key that is not in the range any more.
 */
export interface RevisionedStore {
  /** Memory that all versions of all keys take. */
  readonly arenas: { readonly allocatedBytes: number };

  /** Revision of the newest write, 1 in a fresh store. */
  readonly appliedRevision: number;
  /** Everything up to here is as durable as promised and visible to watchers. */
  readonly publishedRevision: number;
  /** Watches have events up to here: `publishedRevision`, but for what this turn has written. */
  readonly watchedRevision: number;
  /** Reads and watches below fail with `compacted`; -1 when nothing was compacted. */
  readonly compactRevision: number;
  /** True while some applied write is not published. */
  readonly isPending: boolean;
  /** Counts changes, those without a revision (leases) included; for answers that must wait. */
  readonly appliedChange: number;
  /** Answers that saw no later change than this may leave. */
  readonly publishedChange: number;
  /** Called after each publication, before watchers; never inside a write. */
  onPublish(callback: (revision: number) => void): void;
  /** Called once when the log cannot go on; nothing will be published any more. */
  onLogFailure(callback: (message: string) => void): void;

  /** The live record of a key, 0 when there is none. */
  get(bytes: Buffer, startAt: number, startTo: number): number;
  /** The record live at `revision`; 0, `compacted` or `futureRevision`. */
  getAt(bytes: Buffer, startAt: number, startTo: number, revision: number): number;
  /**
   * Fills `page` with at most `limit` (0 = no limit) live records of the range at `revision`
   * (0 = now). Returns 0 or a failure. Costs O(log n) plus the page, also for `count`.
   */
  range(
    bytes: Buffer,
    startAt: number,
    startTo: number,
    endAt: number,
    endTo: number,
    revision: number,
    limit: number,
    page: Page,
  ): number;
  /** Live keys of the range at `revision` (0 = now), or a failure. O(log n). */
  count(
    bytes: Buffer,
    startAt: number,
    startTo: number,
    endAt: number,
    endTo: number,
    revision: number,
  ): number;

  // One record. Key and value lie in the same Buffer, `record(ref)`: the key in [keyAt, keyTo),
  // the value in [valueAt, valueTo).
  record(ref: number): Buffer;
  keyAt(ref: number): number;
  keyTo(ref: number): number;
  valueAt(ref: number): number;
  valueTo(ref: number): number;
  /**
   * Not 0 where the value in the record is packed: its size as it was put, and `unpack` writes it
   * out. Only where `packAfterMs` says so.
   */
  unpackedSize(ref: number): number;
  /** Writes a packed value into `out`, which has room for it, and returns where it ends. */
  unpack(ref: number, out: Buffer, at: number): number;
  modRevision(ref: number): number;
  /** 0 for a tombstone. */
  createRevision(ref: number): number;
  /** 0 for a tombstone. */
  version(ref: number): number;
  isTombstone(ref: number): boolean;
  /** Lease number (see `leases`), 0 for none. */
  lease(ref: number): number;
  /**
   * The record that was live just before this one, 0 for none (a creation) or when compaction
   * took it. This is `prev_kv` of a watch event, and the object before an update.
   */
  previous(ref: number): number;

  /**
   * Compare and put in one step. `expectedModRevision`: 0 = the key must not exist, -1 = any,
   * else the revision of the live record. Returns the new revision (applied), `conflict`,
   * `leaseNotFound`, `noSpace`, `tooManyRequests` or `logFailed`. After a conflict `get` tells
   * what is there, in the same turn. `lease` is a lease number, 0 for none.
   */
  putIf(
    key: Buffer,
    keyAt: number,
    keyTo: number,
    expectedModRevision: number,
    value: Buffer,
    valueAt: number,
    valueTo: number,
    lease: number,
  ): number;
  /** Compare and delete; `expectedModRevision` as in putIf, but 0 is a conflict when it exists. */
  deleteIf(key: Buffer, keyAt: number, keyTo: number, expectedModRevision: number): number;

  /**
   * Between `begin` and `commit` all changes carry one revision and are published together.
   * Reads in between see them. There is no roll-back: check first. `commit` returns the
   * revision, which is the old one when nothing changed.
   */
  begin(): void;
  /** Returns the new record; only inside begin/commit. */
  put(
    key: Buffer,
    keyAt: number,
    keyTo: number,
    value: Buffer,
    valueAt: number,
    valueTo: number,
    lease: number,
  ): number;
  /** Returns the tombstone, 0 when there was nothing; `previous` of it is what was deleted. */
  delete(key: Buffer, keyAt: number, keyTo: number): number;
  commit(): number;
  /** May a write of so many bytes go ahead? 0, `noSpace`, `tooManyRequests` or `logFailed`. */
  admit(sizeBytes: number): number;

  /**
   * Moves the boundary of history to `revision`; memory follows in slices of `tick`.
   * Returns 0, `compacted` (at or below the boundary) or `futureRevision`.
   */
  compact(revision: number): number;
  /** Boundary that holds for a range: the global one or the cut of its prefix, if later. */
  compactRevisionOf(
    bytes: Buffer,
    startAt: number,
    startTo: number,
    endAt: number,
    endTo: number,
  ): number;

  /**
   * Keeps the state of a range at `revision` readable for a reader that takes several turns, until
   * the call of what it returns: no cut of history over budget goes beyond it, see `HistoryHolds`
   * for the bounds. A compaction does.
   */
  holdHistory(
    bytes: Buffer,
    startAt: number,
    startTo: number,
    endAt: number,
    endTo: number,
    revision: number,
  ): () => void;
  /** The oldest revision that is held so; Infinity where none is. */
  readonly heldRevision: number;

  /**
   * Opens a cursor over the events of a range, from `fromRevision` on (0 = after what is
   * published now). Returns its id (> 0). A start below the boundary is reported by the first
   * `watchNext`. A watcher with history before it is told by `onEvents` after the next tick.
   */
  watch(
    bytes: Buffer,
    startAt: number,
    startTo: number,
    endAt: number,
    endTo: number,
    fromRevision: number,
    watcher: Watcher,
  ): number;
  /**
   * The next event's record in order of revision (and of execution within one), 0 when there is
   * none now, `compacted` when the cursor fell behind the boundary. A returned record is consumed.
   * Old history is searched in slices: after 0, `watchIsCurrent` false means "call again in a
   * later turn", and the store calls `onEvents` then by itself.
   */
  watchNext(id: number): number;
  /**
   * The number of what a cursor is about to read, the same for all cursors of its range that stand
   * at its place, until one that does not begins to read, or the next publication. 0: nothing.
   */
  watchReading(id: number): number;
  /** Others may pass over what the cursor has read since it asked for that number. */
  watchShare(id: number): void;
  /** A cursor that was given the number of a shared reading stands at its end. */
  watchPass(id: number): void;
  /** All events up to `publishedRevision` were returned: a progress mark would be true. */
  watchIsCurrent(id: number): boolean;
  /** The last record that `watchNext` returned counts as not taken: there is no room for it. */
  watchPutBack(id: number): void;
  unwatch(id: number): void;

  readonly leases: LeaseTable;

  /**
   * Lets time pass: expires leases, gives memory back in slices of at most SLICE_MS of work, cuts
   * history over budget, continues searches of lagging watchers. `nowMs` is monotonic.
   */
  tick(nowMs: number): void;
}

/** etcd leases. Ids are 64-bit: high and low halves as unsigned 32-bit numbers. */
export interface LeaseTable {
  /** Lease number (> 0, valid until the lease ends) or 0. */
  find(idHigh: number, idLow: number): number;
  /** Number, `leaseExists` or `leaseTtlTooLarge`. The TTL is raised to LEASE_TTL_SECONDS_MIN. */
  grant(idHigh: number, idLow: number, ttlSeconds: number, nowMs: number): number;
  /** Deletes its keys in one revision. Returns the revision or `leaseNotFound`. */
  revoke(lease: number): number;
  /** Granted TTL in seconds, or `leaseNotFound`. */
  keepAlive(lease: number, nowMs: number): number;
  remainingMs(lease: number, nowMs: number): number;
  ttlSeconds(lease: number): number;
  idHigh(lease: number): number;
  idLow(lease: number): number;
  readonly size: number;
  /** Visits lease numbers, in no order that means anything. */
  each(visit: (lease: number) => void): void;
  /** Visits the live record of each attached key: a few thousand in key order, more in no order. */
  eachKey(lease: number, visit: (ref: number) => void): void;
}

/** Names a boot of the machine by two numbers, 0 and 0 where it is not told. */
export interface Boot {
  readonly high: number;
  readonly low: number;
}
