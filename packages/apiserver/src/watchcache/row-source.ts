// data plane
/** Where the rows of a list come from: storage itself, or what an index says to look at. */
import type { KeyTable } from '@megaplane/base/keytable';
import type { ShardSelector } from '@megaplane/machinery/sharding/selector';
import { emptyRow, type PageOutcome, type Row, type Storage } from '../storage/storage.ts';
import type { ShardLists } from './shard-lists.ts';
import type { RowSource } from '../storage/row-source.ts';

const row = emptyRow();

/** The state of one key at a revision, shown to `visit`; what `visit` says, or true without one. */
function visitKey(
  storage: Storage,
  key: Buffer,
  revision: number,
  visit: (row: Row) => boolean,
): boolean | 'compacted' {
  if (revision === storage.appliedRevision) return storage.get(key, row) ? visit(row) : true;
  let goesOn = true;
  const after = Buffer.allocUnsafe(key.length + 1);
  key.copy(after);
  after[key.length] = 0;
  const outcome = storage.page(key, after, revision, (found) => {
    goesOn = visit(found);
    return false;
  });
  return outcome === 'compacted' ? outcome : goesOn;
}

/** Rows of a few keys that were picked when the list began. */
export class PickedRows implements RowSource {
  readonly #storage: Storage;
  /** In order. */
  readonly #keys: readonly Buffer[];

  constructor(storage: Storage, keys: readonly Buffer[]) {
    this.#storage = storage;
    this.#keys = keys;
  }

  page(start: Buffer, end: Buffer, revision: number, visit: (row: Row) => boolean): PageOutcome {
    const keys = this.#keys;
    for (let at = this.#seek(start); at < keys.length; at++) {
      const key = keys[at]!;
      if (Buffer.compare(key, end) >= 0) break;
      const outcome = visitKey(this.#storage, key, revision, visit);
      if (outcome === 'compacted') return outcome;
      if (!outcome) return 'stopped';
    }
    return 'end';
  }

  #seek(start: Buffer): number {
    let low = 0;
    let high = this.#keys.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (Buffer.compare(this.#keys[middle]!, start) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Rows of a shard, merged from its parts; all rows once the parts do not know enough any more. */
export class ShardRows implements RowSource {
  readonly #storage: Storage;
  readonly #keys: KeyTable;
  readonly #lists: ShardLists;
  readonly #selector: ShardSelector;
  readonly #parts: readonly number[];
  readonly #prefix: Buffer;
  readonly #buffers: Buffer[] = [];

  constructor(
    storage: Storage,
    keys: KeyTable,
    lists: ShardLists,
    selector: ShardSelector,
    prefix: Buffer,
  ) {
    this.#storage = storage;
    this.#keys = keys;
    this.#lists = lists;
    this.#selector = selector;
    this.#parts = lists.partsOf(selector);
    this.#prefix = prefix;
  }

  /** A buffer of that length that begins with the prefix; reused from key to key. */
  #scratch(length: number): Buffer {
    const kept = this.#buffers[length];
    if (kept !== undefined) return kept;
    const made = Buffer.allocUnsafeSlow(length);
    this.#prefix.copy(made);
    if (length <= SCRATCH_BYTES_MAX) this.#buffers[length] = made;
    return made;
  }

  page(start: Buffer, end: Buffer, revision: number, visit: (row: Row) => boolean): PageOutcome {
    if (this.#lists.floor > revision) return this.#storage.page(start, end, revision, visit);
    const keys = this.#keys;
    const prefix = this.#prefix;
    let outcome: PageOutcome = 'end';
    // keys in the table lack the prefix that all have
    const from = start.subarray(Math.min(prefix.length, start.length));
    const isWhole = Buffer.compare(end.subarray(0, prefix.length), prefix) !== 0;
    const to = isWhole ? LAST : end.subarray(prefix.length);
    this.#lists.merge(this.#parts, this.#selector, from, to, (id) => {
      const key = this.#scratch(prefix.length + keys.keyLength(id));
      keys.copyKey(id, key, prefix.length);
      const goesOn = visitKey(this.#storage, key, revision, visit);
      if (goesOn === true) return true;
      outcome = goesOn === 'compacted' ? goesOn : 'stopped';
      return false;
    });
    return outcome;
  }
}

/** Longer keys get a buffer of their own each time. */
const SCRATCH_BYTES_MAX = 512;

/** After every key: names are ASCII. */
const LAST = Buffer.from([0xff]);
