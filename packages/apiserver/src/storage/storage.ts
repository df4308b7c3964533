/**
 * The one seam between the API server and what keeps its objects.
 *
 * Two kinds of storage stand behind it: the embedded store, which is in the same process, and a
 * replica of an etcd cluster. Reads are synchronous in both (the replica is local), writes report
 * by callback (etcd answers later). Keys and values are bytes; a value is canonical JSON of one
 * object without its resourceVersion, which is the row's `modRevision`.
 *
 * Two revisions matter. `appliedRevision` is the newest that reads see; `publishedRevision` is the
 * newest that is as durable as promised. Nothing that observed revision R may reach a client
 * before R is published: the server holds the answers of a turn until then. Watches report
 * published events only.
 */

/**
 * One stored object, filled in by the storage. The bytes belong to the storage and are valid until
 * the next write, the end of the turn, or until some other rows were filled (those of a change and
 * the state before it stay beside each other); a reader that keeps them copies them.
 */
export interface Row {
  key: Buffer;
  keyStart: number;
  keyEnd: number;
  bytes: Buffer;
  start: number;
  end: number;
  modRevision: number;
  createRevision: number;
}

/** A row with nothing in it, for callers to own and reuse. */
export function emptyRow(): Row {
  const nothing = Buffer.alloc(0);
  return {
    key: nothing,
    keyStart: 0,
    keyEnd: 0,
    bytes: nothing,
    start: 0,
    end: 0,
    modRevision: 0,
    createRevision: 0,
  };
}

/** `compacted`: the revision asked for is older than the history that is kept. */
export type PageOutcome = 'end' | 'stopped' | 'compacted';

/** What a conditional write needs to hold: no object, any state, or exactly this revision. */
export const EXPECT_ABSENT = 0;
export const EXPECT_ANY = -1;

/**
 * How a write ended. `done` has what is shown of the object since, where that may be other than
 * what was given. `conflict`: the expectation did not hold and nothing changed. `full`: refused
 * at the memory limit. `unavailable`: the log does not take it now. `failed`: a remote storage
 * could not be asked or did not answer: not known to be done, a read will tell.
 */
export type WriteOutcome =
  | { readonly kind: 'done'; readonly revision: number; readonly shown?: Buffer }
  | { readonly kind: 'conflict' }
  | { readonly kind: 'full'; readonly message: string }
  | { readonly kind: 'unavailable'; readonly message: string }
  | { readonly kind: 'failed'; readonly message: string };

export type WriteDone = (outcome: WriteOutcome) => void;

/** One change. `value` is the new state (empty for a deletion), `previous` the one before it. */
export interface StorageEvent {
  isDelete: boolean;
  /** The object did not exist before. */
  isCreate: boolean;
  revision: number;
  readonly value: Row;
  readonly previous: Row;
}

/** An event with nothing in it, for callers to own and reuse. */
export function emptyEvent(): StorageEvent {
  return {
    isDelete: false,
    isCreate: false,
    revision: 0,
    value: emptyRow(),
    previous: emptyRow(),
  };
}

/**
 * `idle`: every published event was read. `lagging`: old history is searched in slices; `wake` is
 * called when the search has gone on. `gone`: events that were not read are no longer kept.
 */
export type NextOutcome = 'event' | 'idle' | 'lagging' | 'gone';

/** A cursor into the log of changes under one key range. It holds a position, not a queue. */
export interface StorageWatch {
  /** Fills `event` with the next published change, in revision order. */
  next(event: StorageEvent): NextOutcome;
  /** Changes up to this revision were all read. */
  readonly position: number;
  /** Ends the watch; `wake` is not called again. */
  close(): void;
}

/** What is wanted of the past: rows of a range that match, up to a limit (0: all). */
export interface Recall {
  readonly start: Buffer;
  readonly end: Buffer;
  readonly revision: number;
  readonly test: { matches(row: Row): boolean };
  readonly limit: number;
}

/** Rows that were fetched for one answer. */
export interface RecalledRows {
  /** All rows of the range, whether they were fetched or not. */
  readonly total: number;
  page(start: Buffer, end: Buffer, revision: number, visit: (row: Row) => boolean): PageOutcome;
  /** The answer was sent, or nobody waits for it. */
  free(): void;
}

/** See the head of the file for what holds between the members. */
export interface Storage {
  readonly appliedRevision: number;
  readonly publishedRevision: number;
  /** Watches have been told of everything up to here: the published, but for this turn's writes. */
  readonly watchedRevision: number;
  /** Others write here too: reads may be behind them until `refresh` has said otherwise. */
  readonly isShared: boolean;
  /** False while reads would show less than there is; absent where that never is. */
  readonly isLoaded?: boolean;
  /** Creations wait for nothing: which names are taken is known without what reads show. */
  readonly knowsNames?: boolean;
  /** Why reads and writes cannot be relied on just now; null while they can. */
  readonly fault: string | null;

  /**
   * Calls `done` once reads see all that anybody had written when this was called: of one object
   * where `key` names it, of all otherwise; with the reason where that cannot be known. At once,
   * in the same turn, where nobody else writes.
   */
  refresh(key: Buffer | null, done: (fault: string | null) => void): void;

  /** True where `key` is kept in a form that a write would not choose any more. */
  isStale(key: Buffer): boolean;

  /** The newest state of `key` in `row`; false where there is no object. */
  get(key: Buffer, row: Row): boolean;

  /**
   * Visits the objects in `[start, end)` as of `revision` (0: newest) in byte order of their keys,
   * until `visit` returns false. The row is the storage's own and is reused between visits.
   */
  page(start: Buffer, end: Buffer, revision: number, visit: (row: Row) => boolean): PageOutcome;

  /** `page`, but rows may lack their values. Absent where that costs no less. */
  keys?(start: Buffer, end: Buffer, revision: number, visit: (row: Row) => boolean): PageOutcome;

  /** How many objects there are in `[start, end)` now; O(log n). */
  count(start: Buffer, end: Buffer): number;

  /** The oldest revision that `page` still shows for this range. */
  oldestRevision(start: Buffer, end: Buffer): number;

  /**
   * Keeps what `page` shows of a range at `revision` for an answer that takes several turns, until
   * the call of what it returns. Nothing but the bounds of the storage ends it before.
   */
  hold(start: Buffer, end: Buffer, revision: number): () => void;

  /**
   * Rows of a revision older than that, from where others keep them; null where there are none, or
   * why nobody can tell. Absent where nobody else keeps any.
   */
  recall?(recall: Recall, done: (rows: RecalledRows | string | null) => void): void;

  /**
   * Writes `value` if the newest modRevision of `key` is `expected` (or EXPECT_ABSENT, _ANY). Both
   * are the caller's again afterwards, unless the storage is shared.
   */
  put(key: Buffer, value: Buffer, expected: number, done: WriteDone): void;

  /** What would be shown of `value` were it written; absent where that is `value`. */
  rehearse?(value: Buffer, done: WriteDone): void;

  /** Removes `key` if its newest modRevision is `expected` (or EXPECT_ANY). */
  delete(key: Buffer, expected: number, done: WriteDone): void;

  /**
   * Watches `[start, end)` for changes after `revision`; null where those are no longer all kept.
   * `wake` is called at most once a turn, when there is something new to read.
   */
  watch(start: Buffer, end: Buffer, revision: number, wake: () => void): StorageWatch | null;

  /**
   * Where keys under `prefix` are kept, if not with all others: the same keys, at revisions of
   * their own. Absent: nothing is kept elsewhere.
   */
  homeOf?(prefix: string): Storage;

  /** Appends what it counts in Prometheus' text format; absent where that is nothing. */
  print?(lines: string[]): void;

  /** Calls `listener` whenever `publishedRevision` has grown. */
  onPublish(listener: () => void): void;

  /** Forgets history before `revision`. */
  compact(revision: number): void;

  /** Flushes and closes. Resolves when all that was acknowledged is as durable as it can be. */
  close(): Promise<void>;
}
