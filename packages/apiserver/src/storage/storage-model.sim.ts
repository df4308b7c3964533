/**
 * The smallest storage that keeps the contract: plain arrays and maps, every version kept until
 * `compact`. Tests run the server on it, because it can hold back publication and lose history on
 * command, and property tests compare the real storages with it.
 */
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
} from './storage.ts';

interface Version {
  readonly key: Buffer;
  /** null: deleted by this revision. */
  readonly value: Buffer | null;
  readonly revision: number;
  readonly createRevision: number;
}

interface Change {
  readonly now: Version;
  readonly before: Version | null;
}

export class StorageModel implements Storage {
  appliedRevision = 1;
  publishedRevision = 1;
  /** While true, writes are applied but not published. */
  isHolding = false;
  isShared = false;
  fault: string | null = null;
  #compacted = 0;
  readonly #versions = new Map<string, Version[]>();
  readonly #changes: Change[] = [];
  readonly #watches = new Set<ModelWatch>();
  readonly #listeners: (() => void)[] = [];

  get watchedRevision(): number {
    return this.publishedRevision;
  }

  get(key: Buffer, row: Row): boolean {
    const version = this.#versions.get(nameOf(key))?.at(-1);
    return fill(row, version ?? null);
  }

  page(start: Buffer, end: Buffer, revision: number, visit: (row: Row) => boolean): PageOutcome {
    if (revision !== 0 && revision < this.#compacted) return 'compacted';
    const row = emptyRow();
    const at = revision === 0 ? this.appliedRevision : revision;
    for (const name of this.#namesIn(start, end)) {
      const version = this.#versions.get(name)?.findLast((one) => one.revision <= at);
      if (fill(row, version ?? null) && !visit(row)) return 'stopped';
    }
    return 'end';
  }

  count(start: Buffer, end: Buffer): number {
    let count = 0;
    this.page(start, end, 0, () => {
      count++;
      return true;
    });
    return count;
  }

  refresh(_key: Buffer | null, done: (fault: string | null) => void): void {
    done(this.fault);
  }

  isStale(): boolean {
    return false;
  }

  oldestRevision(): number {
    return this.#compacted;
  }

  hold(): () => void {
    return () => {
      // a model keeps everything
    };
  }

  put(key: Buffer, value: Buffer, expected: number, done: WriteDone): void {
    this.#write(key, Buffer.from(value), expected, done);
  }

  delete(key: Buffer, expected: number, done: WriteDone): void {
    this.#write(key, null, expected, done);
  }

  #write(key: Buffer, value: Buffer | null, expected: number, done: WriteDone): void {
    const name = nameOf(key);
    const versions = this.#versions.get(name) ?? [];
    const last = versions.at(-1);
    const before = last === undefined || last.value === null ? null : last;
    const found = before?.revision ?? 0;
    if ((expected !== EXPECT_ANY && expected !== found) || (value === null && before === null)) {
      done({ kind: 'conflict' });
      return;
    }
    const revision = ++this.appliedRevision;
    const createRevision = before?.createRevision ?? revision;
    const now: Version = { key: Buffer.from(key), value, revision, createRevision };
    this.#versions.set(name, [...versions, now]);
    this.#changes.push({ now, before });
    done({ kind: 'done', revision });
    if (!this.isHolding) this.publish();
  }

  /** Makes everything applied visible to watches. */
  publish(): void {
    this.publishedRevision = this.appliedRevision;
    for (const watch of this.#watches) watch.wakeIfNew(this.#changes);
    for (const listener of this.#listeners) listener();
  }

  watch(start: Buffer, end: Buffer, revision: number, wake: () => void): StorageWatch | null {
    if (revision < this.#compacted) return null;
    const watch = new ModelWatch(this, nameOf(start), nameOf(end), revision, wake);
    this.#watches.add(watch);
    return watch;
  }

  changesAfter(revision: number): readonly Change[] | null {
    if (revision < this.#compacted) return null;
    return this.#changes.filter(
      ({ now }) => now.revision > revision && now.revision <= this.publishedRevision,
    );
  }

  forget(watch: ModelWatch): void {
    this.#watches.delete(watch);
  }

  onPublish(listener: () => void): void {
    this.#listeners.push(listener);
  }

  compact(revision: number): void {
    this.#compacted = revision;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #namesIn(start: Buffer, end: Buffer): string[] {
    const [from, to] = [nameOf(start), nameOf(end)];
    return [...this.#versions.keys()].filter((name) => name >= from && name < to).sort();
  }
}

class ModelWatch implements StorageWatch {
  position: number;
  readonly #model: StorageModel;
  readonly #start: string;
  readonly #end: string;
  readonly #wake: () => void;

  constructor(model: StorageModel, start: string, end: string, after: number, wake: () => void) {
    this.#model = model;
    this.#start = start;
    this.#end = end;
    this.position = after;
    this.#wake = wake;
  }

  next(event: StorageEvent): NextOutcome {
    const changes = this.#model.changesAfter(this.position);
    if (changes === null) return 'gone';
    const change = changes.find((one) => this.#concerns(one));
    this.position = change?.now.revision ?? Math.max(this.position, this.#model.publishedRevision);
    if (change === undefined) return 'idle';
    event.revision = change.now.revision;
    event.isDelete = change.now.value === null;
    event.isCreate = change.before === null;
    fill(event.value, change.now);
    fill(event.previous, change.before);
    return 'event';
  }

  wakeIfNew(changes: readonly Change[]): void {
    const isNew = (one: Change): boolean => one.now.revision > this.position && this.#concerns(one);
    if (changes.some(isNew)) this.#wake();
  }

  close(): void {
    this.#model.forget(this);
  }

  #concerns({ now }: Change): boolean {
    const name = nameOf(now.key);
    return name >= this.#start && name < this.#end;
  }
}

function nameOf(key: Buffer): string {
  return Buffer.from(key.buffer, key.byteOffset, key.length).toString('latin1');
}

const NOTHING = Buffer.alloc(0);

function fill(row: Row, version: Version | null): boolean {
  row.key = version?.key ?? NOTHING;
  row.keyStart = 0;
  row.keyEnd = row.key.length;
  row.bytes = version?.value ?? NOTHING;
  row.start = 0;
  row.end = row.bytes.length;
  row.modRevision = version?.revision ?? 0;
  row.createRevision = version?.createRevision ?? 0;
  return version !== null && version.value !== null;
}
