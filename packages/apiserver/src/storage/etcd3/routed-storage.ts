/**
 * Several storages as one: `--etcd-servers-overrides` keeps some resources elsewhere. Each storage
 * has revisions of its own, so one sees them from a *home*: what is asked about revisions is asked
 * of the home, and each key is read and written where it is kept.
 */
import type {
  PageOutcome,
  Recall,
  RecalledRows,
  Row,
  Storage,
  StorageWatch,
  WriteDone,
} from '../storage.ts';

interface Place {
  /** `/registry/events/` */
  readonly prefix: Buffer;
  readonly storage: Storage;
}

export class RoutedStorage implements Storage {
  readonly #home: Storage;
  readonly #main: Storage;
  readonly #places: readonly Place[];
  readonly #views: Map<Storage, RoutedStorage>;

  constructor(
    main: Storage,
    places: readonly Place[],
    home: Storage = main,
    views: Map<Storage, RoutedStorage> = new Map(),
  ) {
    this.#main = main;
    this.#places = places;
    this.#home = home;
    this.#views = views;
    views.set(home, this);
  }

  homeOf(prefix: string): Storage {
    const storage = this.#of(Buffer.from(prefix));
    const view = this.#views.get(storage);
    return view ?? new RoutedStorage(this.#main, this.#places, storage, this.#views);
  }

  #of(key: Buffer): Storage {
    for (const { prefix, storage } of this.#places) {
      const { length } = prefix;
      if (key.length >= length && prefix.compare(key, 0, length) === 0) return storage;
    }
    return this.#main;
  }

  get #all(): readonly Storage[] {
    return [...new Set([this.#main, ...this.#places.map(({ storage }) => storage)])];
  }

  get appliedRevision(): number {
    return this.#home.appliedRevision;
  }

  get publishedRevision(): number {
    return this.#home.publishedRevision;
  }

  get watchedRevision(): number {
    return this.#home.watchedRevision;
  }

  get knowsNames(): boolean {
    return this.#home.knowsNames === true;
  }

  rehearse(value: Buffer, done: WriteDone): void {
    if (this.#home.rehearse === undefined) done({ kind: 'done', revision: 0 });
    else this.#home.rehearse(value, done);
  }

  get isShared(): boolean {
    return this.#home.isShared;
  }

  get fault(): string | null {
    for (const storage of this.#all) if (storage.fault !== null) return storage.fault;
    return null;
  }

  refresh(key: Buffer | null, done: (fault: string | null) => void): void {
    if (key !== null) {
      this.#of(key).refresh(key, done);
      return;
    }
    // a refusal may rest on objects of both: a namespace here, an event there
    this.#home.refresh(null, (fault) => {
      if (fault !== null || this.#home === this.#main) done(fault);
      else this.#main.refresh(null, done);
    });
  }

  isStale(key: Buffer): boolean {
    return this.#of(key).isStale(key);
  }

  get(key: Buffer, row: Row): boolean {
    return this.#of(key).get(key, row);
  }

  page(start: Buffer, end: Buffer, revision: number, visit: (row: Row) => boolean): PageOutcome {
    return this.#of(start).page(start, end, revision, visit);
  }

  count(start: Buffer, end: Buffer): number {
    return this.#of(start).count(start, end);
  }

  oldestRevision(start: Buffer, end: Buffer): number {
    return this.#of(start).oldestRevision(start, end);
  }

  hold(start: Buffer, end: Buffer, revision: number): () => void {
    return this.#of(start).hold(start, end, revision);
  }

  recall(recall: Recall, done: (rows: RecalledRows | string | null) => void): void {
    const storage = this.#of(recall.start);
    if (storage.recall === undefined) done(null);
    else storage.recall(recall, done);
  }

  put(key: Buffer, value: Buffer, expected: number, done: WriteDone): void {
    this.#of(key).put(key, value, expected, done);
  }

  delete(key: Buffer, expected: number, done: WriteDone): void {
    this.#of(key).delete(key, expected, done);
  }

  watch(start: Buffer, end: Buffer, revision: number, wake: () => void): StorageWatch | null {
    const storage = this.#of(start);
    // a revision of the home says nothing about another storage: from now on, there
    const from = storage === this.#home ? revision : storage.publishedRevision;
    return storage.watch(start, end, from, wake);
  }

  print(lines: string[]): void {
    this.#main.print?.(lines);
  }

  onPublish(listener: () => void): void {
    for (const storage of this.#all) storage.onPublish(listener);
  }

  compact(revision: number): void {
    this.#home.compact(revision);
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.map((storage) => storage.close()));
  }
}
