// data plane
/** The store of this process as the server's storage: every call goes straight into it. */
import { unowned } from '@megaplane/base/deferred';
import { FAILURE, type Page, type RevisionedStore } from '@megaplane/store/contract';
import { isOtherForm, packedDefinition, RecentDefinitions } from '../packed-definitions.ts';
import { isEventKey, type EventLeases } from '../event-leases.ts';
import { printFamily } from '../../metrics/metric-families.ts';
import {
  TEMPLATES_END,
  TEMPLATES_START,
  TemplateKeeper,
} from '../../managedfields/template-keeper.ts';
import {
  emptyRow,
  EXPECT_ANY,
  type NextOutcome,
  type PageOutcome,
  type Row,
  type Storage,
  type StorageEvent,
  type StorageWatch,
  type WriteDone,
  type WriteOutcome,
} from '../storage.ts';

/** Records that one call of the store brings at once while a range is walked. */
const PAGE_RECORDS = 256;

const CONFLICT: WriteOutcome = { kind: 'conflict' };

/** How to end the store; given by whoever opened it. */
export type CloseStore = () => Promise<void>;

export class EmbeddedStorage implements Storage {
  readonly #store: RevisionedStore;
  readonly #closeStore: CloseStore;
  readonly #page: Page = { refs: new Uint32Array(PAGE_RECORDS), length: 0, count: 0, more: false };
  readonly #row = emptyRow();
  #range: Buffer = Buffer.allocUnsafeSlow(4096);
  readonly #templates = new TemplateKeeper();

  readonly #events: EventLeases | null;

  constructor(store: RevisionedStore, closeStore: CloseStore, events: EventLeases | null = null) {
    this.#events = events;
    this.#store = store;
    this.#closeStore = closeStore;
    this.page(TEMPLATES_START, TEMPLATES_END, 0, ({ key, keyStart, keyEnd, bytes, start, end }) => {
      const id = key.utf8Slice(keyStart + TEMPLATES_START.length, keyEnd);
      this.#templates.restore(id, bytes.utf8Slice(start, end));
      return true;
    });
  }

  readonly #keepTemplate = (key: Buffer, value: Buffer): boolean =>
    this.#store.putIf(key, 0, key.length, EXPECT_ANY, value, 0, value.length, 0) > 0;

  readonly isShared: boolean = false;
  readonly fault: string | null = null;

  refresh(_key: Buffer | null, done: (fault: string | null) => void): void {
    done(null);
  }

  isStale(): boolean {
    return false;
  }

  get appliedRevision(): number {
    return this.#store.appliedRevision;
  }

  get publishedRevision(): number {
    return this.#store.publishedRevision;
  }

  get watchedRevision(): number {
    return this.#store.watchedRevision;
  }

  get(key: Buffer, row: Row): boolean {
    const ref = this.#store.get(key, 0, key.length);
    if (ref <= 0) return false;
    fill(this.#store, ref, row);
    return true;
  }

  page(start: Buffer, end: Buffer, revision: number, visit: (row: Row) => boolean): PageOutcome {
    return this.#walk(start, end, revision, fill, visit);
  }

  keys(start: Buffer, end: Buffer, revision: number, visit: (row: Row) => boolean): PageOutcome {
    return this.#walk(start, end, revision, fillKey, visit);
  }

  #walk(
    start: Buffer,
    end: Buffer,
    revision: number,
    fillRow: (store: RevisionedStore, ref: number, row: Row) => void,
    visit: (row: Row) => boolean,
  ): PageOutcome {
    const store = this.#store;
    const page = this.#page;
    const row = this.#row;
    const at = revision === store.appliedRevision ? 0 : revision;
    let bytes = this.#joined(start, end);
    let startTo = start.length;
    let startAt = 0;
    const endAt = start.length;
    const endTo = endAt + end.length;
    for (;;) {
      const outcome = store.range(bytes, startAt, startTo, endAt, endTo, at, PAGE_RECORDS, page);
      // a revision that has not happened yet was waited for before; now it can only be compacted
      if (outcome < 0) return 'compacted';
      for (let index = 0; index < page.length; index++) {
        fillRow(store, page.refs[index]!, row);
        if (!visit(row)) return 'stopped';
      }
      if (!page.more) return 'end';
      // go on right after the last key: the end stays where it is in the buffer
      const size = row.keyEnd - row.keyStart + 1;
      const from = endTo;
      bytes = this.#grown(from + size);
      row.key.copy(bytes, from, row.keyStart, row.keyEnd);
      bytes[from + size - 1] = 0;
      startAt = from;
      startTo = from + size;
    }
  }

  #joined(start: Buffer, end: Buffer): Buffer {
    const bytes = this.#grown(start.length + end.length);
    start.copy(bytes, 0);
    end.copy(bytes, start.length);
    return bytes;
  }

  #grown(size: number): Buffer {
    if (size > this.#range.length) {
      const grown = Buffer.allocUnsafeSlow(size * 2);
      this.#range.copy(grown);
      this.#range = grown;
    }
    return this.#range;
  }

  count(start: Buffer, end: Buffer): number {
    const bytes = this.#joined(start, end);
    const endAt = start.length;
    return Math.max(0, this.#store.count(bytes, 0, endAt, endAt, endAt + end.length, 0));
  }

  oldestRevision(start: Buffer, end: Buffer): number {
    const bytes = this.#joined(start, end);
    const endAt = start.length;
    const revision = this.#store.compactRevisionOf(bytes, 0, endAt, endAt, endAt + end.length);
    return Math.max(0, revision);
  }

  hold(start: Buffer, end: Buffer, revision: number): () => void {
    const bytes = this.#joined(start, end);
    const endAt = start.length;
    return this.#store.holdHistory(bytes, 0, endAt, endAt, endAt + end.length, revision);
  }

  put(key: Buffer, value: Buffer, expected: number, done: WriteDone): void {
    this.#templates.keep(value, this.#keepTemplate);
    const lease = this.#events !== null && isEventKey(key) ? this.#events.take() : 0;
    const kept = packedDefinition(key, value);
    const end = kept.length;
    const result = this.#store.putIf(key, 0, key.length, expected, kept, 0, end, lease);
    if (kept !== value && result > 0) recentOf(this.#store).note(result, value);
    done(outcomeOf(result));
  }

  delete(key: Buffer, expected: number, done: WriteDone): void {
    done(outcomeOf(this.#store.deleteIf(key, 0, key.length, expected)));
  }

  watch(start: Buffer, end: Buffer, revision: number, wake: () => void): StorageWatch | null {
    const oldest = this.oldestRevision(start, end);
    if (revision < oldest) return null;
    return new EmbeddedWatch(
      this.#store,
      this.#joined(start, end),
      start.length,
      end.length,
      revision,
      unowned(wake),
    );
  }

  onPublish(listener: () => void): void {
    this.#store.onPublish(unowned(listener));
  }

  print(lines: string[]): void {
    const name = 'apiserver_storage_size_bytes';
    printFamily(lines, name);
    lines.push(`${name}{storage_cluster_id="embedded"} ${this.#store.arenas.allocatedBytes}`);
  }

  compact(revision: number): void {
    // who reads an answer slowly is in the middle of it
    this.#store.compact(Math.min(revision, this.#store.heldRevision));
  }

  close(): Promise<void> {
    return this.#closeStore();
  }
}

class EmbeddedWatch implements StorageWatch {
  readonly #store: RevisionedStore;
  readonly #id: number;
  #position: number;

  constructor(
    store: RevisionedStore,
    range: Buffer,
    startLength: number,
    endLength: number,
    revision: number,
    wake: () => void,
  ) {
    this.#store = store;
    this.#position = revision;
    const endTo = startLength + endLength;
    const watcher = { onEvents: wake };
    this.#id = store.watch(range, 0, startLength, startLength, endTo, revision + 1, watcher);
  }

  get position(): number {
    return this.#position;
  }

  next(event: StorageEvent): NextOutcome {
    const store = this.#store;
    const ref = store.watchNext(this.#id);
    if (ref === FAILURE.compacted) return 'gone';
    if (ref <= 0) {
      if (!store.watchIsCurrent(this.#id)) return 'lagging';
      this.#position = Math.max(this.#position, store.watchedRevision);
      return 'idle';
    }
    const revision = store.modRevision(ref);
    const before = store.previous(ref);
    this.#position = revision;
    event.revision = revision;
    event.isDelete = store.isTombstone(ref);
    event.isCreate = before === 0;
    fill(store, ref, event.value);
    if (before === 0) clear(event.previous, event.value);
    else fill(store, before, event.previous);
    return 'event';
  }

  close(): void {
    this.#store.unwatch(this.#id);
  }
}

/**
 * Values that the store keeps packed are written out here, one behind the other: those of the last
 * rows that were filled stay, and all of them stay near the processor.
 */
const UNPACKED_BYTES: number = 192 * 1024;
/** A larger value has memory of its own. */
const SHARED_BYTES_MAX: number = 32 * 1024;
const unpacked: Buffer = Buffer.allocUnsafeSlow(UNPACKED_BYTES);
let unpackedEnd = 0;

function fillKey(store: RevisionedStore, ref: number, row: Row): void {
  row.key = store.record(ref);
  row.keyStart = store.keyAt(ref);
  row.keyEnd = store.keyTo(ref);
  row.modRevision = store.modRevision(ref);
  row.createRevision = store.createRevision(ref);
}

function fill(store: RevisionedStore, ref: number, row: Row): void {
  fillKey(store, ref, row);
  const size = store.unpackedSize(ref);
  if (size > 0) {
    fillPacked(store, ref, row, size);
  } else {
    row.bytes = row.key;
    row.start = store.valueAt(ref);
    row.end = store.valueTo(ref);
  }
  if (isOtherForm(row.bytes, row.start, row.end)) unpack(store, row);
}

function fillPacked(store: RevisionedStore, ref: number, row: Row, size: number): void {
  if (size > SHARED_BYTES_MAX) {
    row.bytes = Buffer.allocUnsafeSlow(size);
    row.start = 0;
  } else {
    if (unpackedEnd + size > UNPACKED_BYTES) unpackedEnd = 0;
    row.bytes = unpacked;
    row.start = unpackedEnd;
    unpackedEnd += size;
  }
  row.end = store.unpack(ref, row.bytes, row.start);
}

const recent = new WeakMap<RevisionedStore, RecentDefinitions>();

function recentOf(store: RevisionedStore): RecentDefinitions {
  let found = recent.get(store);
  if (found === undefined) recent.set(store, (found = new RecentDefinitions()));
  return found;
}

/** Keys stay where they are, in the record. */
function unpack(store: RevisionedStore, row: Row): void {
  const { modRevision, bytes, start, end } = row;
  row.bytes = recentOf(store).unpacked(modRevision, bytes, start, end);
  row.start = 0;
  row.end = row.bytes.length;
}

function clear(row: Row, like: Row): void {
  row.key = like.key;
  row.keyStart = like.keyStart;
  row.keyEnd = like.keyEnd;
  row.bytes = like.bytes;
  row.start = like.start;
  row.end = like.start;
  row.modRevision = 0;
  row.createRevision = 0;
}

function outcomeOf(result: number): WriteOutcome {
  if (result > 0) return { kind: 'done', revision: result };
  switch (result) {
    case FAILURE.conflict:
      return CONFLICT;
    case FAILURE.noSpace:
      return { kind: 'full', message: 'the store is full: raise --memory-limit or delete objects' };
    case FAILURE.tooManyRequests:
      return { kind: 'unavailable', message: 'too many writes wait for the disk' };
    default:
      return { kind: 'unavailable', message: 'the log of the store cannot be written' };
  }
}
