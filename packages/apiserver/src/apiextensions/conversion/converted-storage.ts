/**
 * The objects of a custom resource in a version that only its webhook can make: a storage that
 * follows the one where they are kept, at its revisions. What a revision changed is converted, in
 * batches and in order, before this storage is at that revision; so lists, pages, watches and
 * bookmarks of the version are exact, and each change is converted once for all who look.
 *
 *     load (all objects at one revision) -> follow -> follow ...
 *          \-> failed: whoever asks is told why, and the next request tries again
 *
 * Writes are converted back and go to where the objects are kept.
 */
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { decodeStoredValue } from '@megaplane/machinery/stored-value';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { openStore, type OpenStore } from '@megaplane/store/open';
import { Replica } from '@megaplane/store/replica';
import { EmbeddedStorage } from '../../storage/embedded/embedded-storage.ts';
import type { KeyRange } from '../../storage/served.ts';
import {
  emptyEvent,
  emptyRow,
  type PageOutcome,
  type Recall,
  type RecalledRows,
  type Row,
  type Storage,
  type StorageWatch,
  type WriteDone,
} from '../../storage/storage.ts';
import type { ConversionOutcome, Unconverted } from './conversion-webhook.ts';
import { recallConverted } from './past-view.ts';

/** Objects and bytes that one call of a webhook brings over, at most. */
const BATCH_OBJECTS_MAX = 500;
const BATCH_BYTES_MAX: number = 4 * 1024 * 1024;
/** Requests that wait for one view; more are refused. */
const WAITERS_MAX = 10_000;

/** Objects that are kept converted while not all can be. */
const ALONE_MAX = 1000;

const event = emptyEvent();
const row = emptyRow();

export interface ConvertedParts {
  /** Where the objects are kept. */
  readonly base: Storage;
  readonly range: KeyRange;
  /** `example.com/v2`, and the version in which objects are kept. */
  readonly apiVersion: string;
  readonly storedVersion: string;
  /** Gives objects in the form that the version `desired` allows. */
  readonly convert: (
    sources: readonly Unconverted[],
    desired: string,
    then: (outcome: ConversionOutcome) => void,
  ) => void;
  /** Where keys of other kinds are kept. */
  readonly homeOf: (prefix: string) => Storage;
  /** Brings an object into the form that the version gives in which it is stored. */
  readonly formKept: (object: JsonObject) => JsonObject;
  /** History was lost: this view has to be replaced by another one. */
  readonly onLost: () => void;
}

/** One object on its way into the view; `value` is null for a deletion. */
interface Change {
  readonly key: Buffer;
  readonly source: Unconverted | null;
  readonly revision: number;
  readonly createRevision: number;
}

interface Waiter {
  readonly revision: number;
  readonly done: (fault: string | null) => void;
}

export class ConvertedStorage implements Storage {
  readonly isShared: boolean = true;
  readonly fault: string | null = null;
  readonly #parts: ConvertedParts;
  readonly #opened: OpenStore;
  readonly #replica: Replica;
  readonly #reads: EmbeddedStorage;
  #watch: StorageWatch | null = null;
  #isBusy = false;
  #isClosed = false;
  #waiters: Waiter[] = [];
  /** Changes that were read and not converted yet. */
  #pending: Change[] = [];
  #hasAll = false;
  /** All could not be converted when that was tried last: objects are brought one by one. */
  #isBroken = false;
  /** What was brought so, until all is converted again. */
  readonly #alone = new Map<string, Alone>();
  readonly knowsNames: boolean = true;

  constructor(parts: ConvertedParts) {
    this.#parts = parts;
    this.#opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
    this.#replica = new Replica(this.#opened.store);
    this.#reads = new EmbeddedStorage(this.#opened.store, () => this.#opened.close());
  }

  get isLoaded(): boolean {
    return this.#hasAll && !this.#isBroken;
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

  isStale(): boolean {
    return false;
  }

  /** Of other kinds, everything is where it always is, whichever storage one looks through. */
  #placeOf(key: Buffer): Storage {
    const { start, end } = this.#parts.range;
    const isOwn = key.compare(start) >= 0 && key.compare(end) < 0;
    return isOwn ? this.#reads : this.#parts.base;
  }

  get(key: Buffer, row: Row): boolean {
    const { base } = this.#parts;
    if (this.isLoaded || this.#placeOf(key) === base) return this.#placeOf(key).get(key, row);
    if (!base.get(key, row)) return false;
    const alone = this.#alone.get(key.toString());
    if (alone?.revision === row.modRevision) {
      row.bytes = alone.value;
      row.start = 0;
      row.end = alone.value.length;
    }
    // as it is kept, its name and marks can be told
    return true;
  }

  page(start: Buffer, end: Buffer, revision: number, visit: (row: Row) => boolean): PageOutcome {
    return this.#placeOf(start).page(start, end, revision, visit);
  }

  count(start: Buffer, end: Buffer): number {
    return this.#placeOf(start).count(start, end);
  }

  oldestRevision(start: Buffer, end: Buffer): number {
    return this.#placeOf(start).oldestRevision(start, end);
  }

  hold(start: Buffer, end: Buffer, revision: number): () => void {
    return this.#placeOf(start).hold(start, end, revision);
  }

  recall(recall: Recall, done: (rows: RecalledRows | string | null) => void): void {
    const { base, apiVersion } = this.#parts;
    const read = (one: Row): Change => changeOf(one, one.modRevision);
    const convert: (
      sources: readonly Unconverted[],
      then: (outcome: ConversionOutcome) => void,
    ) => void = (sources, then) => this.#convertKept(sources, apiVersion, then);
    recallConverted({ base, read, convert }, recall, done);
  }

  watch(start: Buffer, end: Buffer, revision: number, wake: () => void): StorageWatch | null {
    return this.#placeOf(start).watch(start, end, revision, wake);
  }

  onPublish(listener: () => void): void {
    this.#reads.onPublish(listener);
  }

  compact(revision: number): void {
    this.#reads.compact(revision);
  }

  homeOf(prefix: string): Storage {
    return this.#parts.homeOf(prefix);
  }

  refresh(key: Buffer | null, done: (fault: string | null) => void): void {
    const { base } = this.#parts;
    const own = key === null ? null : Buffer.from(key);
    base.refresh(key, (fault) => {
      if (fault !== null) done(fault);
      else this.#whenSeen(own, base.appliedRevision, done);
    });
  }

  /** What is at `key` waits for that object alone where not all can be converted. */
  #whenSeen(key: Buffer | null, revision: number, done: (fault: string | null) => void): void {
    if (key === null) this.#whenAt(revision, done);
    else if (this.#isBroken) this.#bringAlone(key, done);
    else {
      this.#whenAt(revision, (fault) => {
        if (fault === null || this.#isClosed) done(fault);
        else this.#bringAlone(key, done);
      });
    }
  }

  #bringAlone(key: Buffer, done: (fault: string | null) => void): void {
    const { base, apiVersion } = this.#parts;
    if (!base.get(key, row)) {
      done(null);
      return;
    }
    const { source, revision } = changeOf(row, row.modRevision);
    this.#convertKept(source === null ? [] : [source], apiVersion, (outcome) => {
      const [object] = outcome.ok ? outcome.values : [];
      if (object !== undefined) {
        if (this.#alone.size >= ALONE_MAX) this.#alone.clear();
        const value = encodeCanonical(object);
        this.#alone.set(key.toString(), { revision, value });
      }
      done(outcome.ok ? null : outcome.why);
    });
  }

  rehearse(value: Buffer, done: WriteDone): void {
    const { convert, apiVersion, storedVersion } = this.#parts;
    const object = parseJson(value.toString('utf8')) as JsonObject;
    convert([{ object, revision: 0 }], storedVersion, (there) => {
      if (!there.ok) {
        done({ kind: 'failed', message: there.why });
        return;
      }
      const sources = there.values.map((one) => ({ object: { ...one }, revision: 0 }));
      this.#convertKept(sources, apiVersion, (back) => {
        if (!back.ok) done({ kind: 'failed', message: back.why });
        else {
          const shown = encodeCanonical(back.values[0] ?? {});
          done({ kind: 'done', revision: 0, shown });
        }
      });
    });
  }

  #whenAt(revision: number, done: (fault: string | null) => void): void {
    if (this.#isClosed) {
      done('the definition of the resource has changed; try again');
      return;
    }
    if (this.isLoaded && this.appliedRevision >= revision) {
      done(null);
      return;
    }
    if (this.#waiters.length >= WAITERS_MAX) {
      done(`${WAITERS_MAX} requests wait for the conversion webhook already`);
      return;
    }
    this.#waiters.push({ revision, done });
    this.#go();
  }

  put(key: Buffer, value: Buffer, expected: number, done: WriteDone): void {
    const { base, convert, storedVersion, formKept } = this.#parts;
    if (this.#placeOf(key) === base) {
      base.put(key, value, expected, done);
      return;
    }
    const own = Buffer.from(key);
    const object = parseJson(value.toString('utf8')) as JsonObject;
    convert([{ object, revision: 0 }], storedVersion, (outcome) => {
      const [converted] = outcome.ok ? outcome.values : [];
      if (!outcome.ok) done({ kind: 'failed', message: outcome.why });
      else if (converted !== undefined) {
        const kept = encodeCanonical(formKept({ ...converted }));
        base.put(own, kept, expected, this.#afterWrite(own, done));
      }
    });
  }

  delete(key: Buffer, expected: number, done: WriteDone): void {
    const { base } = this.#parts;
    const isOther = this.#placeOf(key) === base;
    base.delete(key, expected, isOther ? done : this.#afterWrite(Buffer.from(key), done));
  }

  /** A write is reported when it can be read here; or what was in its way can. */
  #afterWrite(key: Buffer, done: WriteDone): WriteDone {
    return (outcome) => {
      if (outcome.kind !== 'done' && outcome.kind !== 'conflict') {
        done(outcome);
        return;
      }
      const revision =
        outcome.kind === 'done' ? outcome.revision : this.#parts.base.appliedRevision;
      // what was written is written, whether it can be shown or not
      this.#whenSeen(key, revision, (fault) => {
        if (fault !== null && !this.#isClosed) done({ kind: 'failed', message: fault });
        else if (outcome.kind !== 'done' || !this.get(key, row)) done(outcome);
        else if (row.modRevision !== outcome.revision) done(outcome);
        else done({ ...outcome, shown: Buffer.from(row.bytes.subarray(row.start, row.end)) });
      });
    };
  }

  /** Who waits for a revision of other objects hears of it, too; they wake nobody here. */
  nudge(): void {
    if (this.#waiters.length > 0) this.#go();
  }

  /** Goes on with loading or following, one call of the webhook at a time. */
  #go(): void {
    if (this.#isBusy || this.#isClosed) return;
    if (!this.#hasAll) {
      this.#load();
      return;
    }
    if (this.#pending.length === 0) this.#collect();
    if (this.#pending.length > 0) this.#convertPending();
    else this.#settle(null);
  }

  #load(): void {
    const { base, range } = this.#parts;
    const revision = base.watchedRevision;
    this.#watch?.close();
    this.#watch = base.watch(range.start, range.end, revision, () => this.#go());
    this.#isBusy = true;
    this.#loadFrom(range.start, revision, []);
  }

  /** Nothing is put into the view before all is converted: a load may have to begin anew. */
  #loadFrom(start: Buffer, revision: number, loaded: Loaded[]): void {
    const { base, range } = this.#parts;
    const changes: Change[] = [];
    let bytes = 0;
    const outcome = base.page(start, range.end, revision, (row) => {
      changes.push(changeOf(row, row.modRevision));
      bytes += row.end - row.start;
      return changes.length < BATCH_OBJECTS_MAX && bytes < BATCH_BYTES_MAX;
    });
    if (outcome === 'compacted') {
      this.#fail('objects changed faster than they were converted; try again');
      return;
    }
    this.#convert(changes, (values) => {
      for (const [index, change] of changes.entries()) {
        loaded.push({ change, value: values[index] ?? Buffer.alloc(0) });
      }
      const last = changes.at(-1);
      if (outcome !== 'end' && last !== undefined) {
        this.#loadFrom(Buffer.concat([last.key, ZERO]), revision, loaded);
        return;
      }
      for (const { change, value } of loaded) {
        this.#replica.seed(change.key, value, change.revision, change.createRevision, 1);
      }
      this.#replica.advance(revision, true);
      this.#hasAll = true;
      this.#mend();
      this.#isBusy = false;
      this.#go();
    });
  }

  /** Reads what has changed since; moves on at once where nothing has. */
  #collect(): void {
    const watch = this.#watch;
    let bytes = 0;
    while (watch !== null && this.#pending.length < BATCH_OBJECTS_MAX && bytes < BATCH_BYTES_MAX) {
      const outcome = watch.next(event);
      if (outcome === 'gone') {
        this.close().catch(() => {});
        this.#parts.onLost();
        return;
      }
      if (outcome !== 'event') {
        const isQuiet = outcome === 'idle' && this.#pending.length === 0;
        if (isQuiet) this.#replica.advance(watch.position);
        return;
      }
      const { value, revision, isDelete } = event;
      const key = Buffer.from(value.key.subarray(value.keyStart, value.keyEnd));
      bytes += value.end - value.start;
      this.#pending.push(
        isDelete ? { key, source: null, revision, createRevision: 0 } : changeOf(value, revision),
      );
    }
  }

  #convertPending(): void {
    this.#isBusy = true;
    const changes = this.#pending;
    this.#convert(changes, (values) => {
      this.#pending = [];
      this.#isBusy = false;
      this.#mend();
      this.#apply(changes, values);
      this.#settle(null);
      this.#go();
    });
  }

  #apply(changes: readonly Change[], values: readonly (Buffer | null)[]): void {
    let open = 0;
    for (const [index, { key, revision }] of changes.entries()) {
      if (revision !== open) {
        if (open > 0) this.#replica.commit();
        this.#replica.begin(revision);
        open = revision;
      }
      const value = values[index] ?? null;
      if (value === null) this.#replica.delete(key);
      else this.#replica.put(key, value);
    }
    if (open > 0) this.#replica.commit();
  }

  /** Calls `then` with the new bytes, null for deletions; or fails for all who wait. */
  #convert(changes: readonly Change[], then: (values: readonly (Buffer | null)[]) => void): void {
    const { apiVersion } = this.#parts;
    const sources = changes.map(({ source }) => source).filter((source) => source !== null);
    this.#convertKept(sources, apiVersion, (outcome) => {
      if (this.#isClosed) return;
      if (!outcome.ok) {
        this.#fail(outcome.why);
        return;
      }
      let next = 0;
      const { values } = outcome;
      then(
        changes.map(({ source }) => {
          return source === null ? null : encodeCanonical(values[next++] ?? {});
        }),
      );
    });
  }

  /** Converts what is stored; a webhook sees it as its own version shows it. */
  #convertKept(
    sources: readonly Unconverted[],
    desired: string,
    then: (outcome: ConversionOutcome) => void,
  ): void {
    const { convert, formKept } = this.#parts;
    const kept = sources.map((one) => ({ ...one, object: formKept(one.object) }));
    convert(kept, desired, then);
  }

  /** The next request tries again: until then, nothing is shown that is not known. */
  #fail(why: string): void {
    this.#isBusy = false;
    this.#isBroken = true;
    this.#settle(why);
  }

  #mend(): void {
    this.#isBroken = false;
    this.#alone.clear();
  }

  #settle(fault: string | null): void {
    const waiting = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiting) {
      if (fault !== null) waiter.done(fault);
      else if (this.isLoaded && this.appliedRevision >= waiter.revision) waiter.done(null);
      else this.#waiters.push(waiter);
    }
  }

  /** Ends the view; whoever waits is told to ask again. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#watch?.close();
    this.#settle('the definition of the resource has changed; try again');
    await this.#opened.close();
  }
}

/** An object that was converted by itself, as of one revision of it. */
interface Alone {
  readonly revision: number;
  readonly value: Buffer;
}

interface Loaded {
  readonly change: Change;
  readonly value: Buffer;
}

const ZERO = Buffer.from([0]);

function changeOf(row: Row, revision: number): Change {
  const key = Buffer.from(row.key.subarray(row.keyStart, row.keyEnd));
  const read = decodeStoredValue(row.bytes, row.start, row.end);
  const object: JsonObject = read.ok ? read.object : nameOf(key);
  const { createRevision } = row;
  return { key, source: { object, revision }, revision, createRevision };
}

/** What cannot be read is shown as an object with a name, so that it can be seen and deleted. */
function nameOf(key: Buffer): JsonObject {
  return { metadata: { name: key.toString('utf8', key.lastIndexOf('/') + 1) } };
}
