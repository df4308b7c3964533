/**
 * Encryption at rest for the embedded store: values are sealed on their way in and opened on their
 * way out, so that neither its log nor its snapshots nor its memory hold what must be secret.
 */
import type {
  NextOutcome,
  PageOutcome,
  Row,
  Storage,
  StorageEvent,
  StorageWatch,
  WriteDone,
} from '../storage.ts';
import { packedValue, wholeValue } from '../../managedfields/whole-fields.ts';
import { isSealed, type ValueSealer } from './value-sealer.ts';

export class SealedStorage implements Storage {
  readonly #inner: Storage;
  readonly #sealer: ValueSealer;
  readonly #onFault: (message: string) => void;

  constructor(inner: Storage, sealer: ValueSealer, onFault: (message: string) => void) {
    this.#inner = inner;
    this.#sealer = sealer;
    this.#onFault = onFault;
  }

  get appliedRevision(): number {
    return this.#inner.appliedRevision;
  }

  get publishedRevision(): number {
    return this.#inner.publishedRevision;
  }

  get watchedRevision(): number {
    return this.#inner.watchedRevision;
  }

  get isShared(): boolean {
    return this.#inner.isShared;
  }

  get fault(): string | null {
    return this.#inner.fault;
  }

  refresh(key: Buffer | null, done: (fault: string | null) => void): void {
    this.#inner.refresh(key, done);
  }

  isStale(key: Buffer): boolean {
    const row = { ...NO_ROW };
    if (!this.#inner.get(key, row)) return false;
    const wanted = this.#sealer.sealOf(key.toString());
    const { length } = wanted;
    if (length === 0) return isSealed(row.bytes, row.start);
    return row.bytes.toString('utf8', row.start, row.start + length) !== wanted;
  }

  get(key: Buffer, row: Row): boolean {
    if (!this.#inner.get(key, row)) return false;
    this.#open(row);
    return true;
  }

  page(start: Buffer, end: Buffer, revision: number, visit: (row: Row) => boolean): PageOutcome {
    return this.#inner.page(start, end, revision, (row) => {
      this.#open(row);
      return visit(row);
    });
  }

  /** False where no key opens the value: it stays as it is, and whoever decodes it fails. */
  #open(row: Row): boolean {
    if (!isSealed(row.bytes, row.start)) return true;
    const key = row.key.toString('utf8', row.keyStart, row.keyEnd);
    const value = row.bytes.subarray(row.start, row.end);
    try {
      const opened = this.#sealer.open(key, Buffer.from(key), value);
      row.bytes = packedValue(opened.value);
      row.start = 0;
      row.end = row.bytes.length;
      return true;
    } catch (error) {
      this.#onFault(`${key}: ${error instanceof Error ? error.message : String(error)}`);
      return false;
    }
  }

  count(start: Buffer, end: Buffer): number {
    return this.#inner.count(start, end);
  }

  oldestRevision(start: Buffer, end: Buffer): number {
    return this.#inner.oldestRevision(start, end);
  }

  hold(start: Buffer, end: Buffer, revision: number): () => void {
    return this.#inner.hold(start, end, revision);
  }

  put(key: Buffer, value: Buffer, expected: number, done: WriteDone): void {
    const name = key.toString();
    // references to the owners of fields would be kept for open values only
    const isSealing = this.#sealer.sealOf(name) !== '';
    const kept = isSealing ? this.#sealer.seal(name, key, wholeValue(value)) : value;
    this.#inner.put(key, kept, expected, done);
  }

  delete(key: Buffer, expected: number, done: WriteDone): void {
    this.#inner.delete(key, expected, done);
  }

  watch(start: Buffer, end: Buffer, revision: number, wake: () => void): StorageWatch | null {
    const inner = this.#inner.watch(start, end, revision, wake);
    if (inner === null) return null;
    return {
      get position() {
        return inner.position;
      },
      next: (event: StorageEvent): NextOutcome => {
        const outcome = inner.next(event);
        if (outcome !== 'event') return outcome;
        // a change that cannot be told ends the watch; whoever lists again hears why
        if (!event.isDelete && !this.#open(event.value)) return 'gone';
        return event.isCreate || this.#open(event.previous) ? outcome : 'gone';
      },
      close: () => inner.close(),
    };
  }

  onPublish(listener: () => void): void {
    this.#inner.onPublish(listener);
  }

  compact(revision: number): void {
    this.#inner.compact(revision);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}

const NOTHING = Buffer.alloc(0);
const NO_ROW: Row = {
  key: NOTHING,
  keyStart: 0,
  keyEnd: 0,
  bytes: NOTHING,
  start: 0,
  end: 0,
  modRevision: 0,
  createRevision: 0,
};
