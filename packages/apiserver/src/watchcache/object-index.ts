/**
 * An index of one kind's objects, for lists and initial states that would otherwise look at all of
 * them: by node, by a label, by the hash of the uid.
 *
 * It is made when it is first wanted, by walking over the newest state in slices while the changes
 * of the hub come in as well, and is right once the hub has seen what the walk may have seen. What
 * nobody wants any more is dropped.
 */
import { KeyTable } from '@megaplane/base/keytable';
import type { Random } from '@megaplane/base/random';
import { stringAt } from '@megaplane/machinery/json';
import { findLabelValue, LabelsRange, type TextRange } from '@megaplane/machinery/selectors-bytes';
import { fillText, findNodeName, foreignObject, type Filter } from '../request/filter.ts';
import { keyAfter, type KeyRange } from '../storage/served.ts';
import type { Row, Storage, StorageEvent } from '../storage/storage.ts';
import { labelPlaceOf } from './label-buckets.ts';
import { PickedRows, ShardRows } from './row-source.ts';
import { PARTS, ShardLists } from './shard-lists.ts';
import { ValueLists } from './value-lists.ts';
import type { RowSource } from '../storage/row-source.ts';

/** Fewer objects are looked at one by one. */
export const INDEX_ITEMS_MIN = 2000;
/** Asked for by each node at its start: kept by while nodes watch, and begun while it is small. */
export const NODE_FIELD = 'spec.nodeName';
/** What was not wanted for so long is dropped. */
export const INDEX_IDLE_MS: number = 10 * 60_000;
/** Rows that one turn of a walk looks at. */
const WALK_ROWS_MAX = 1000;
/** Labels that are indexed at once, of one kind. */
const LABELS_MAX = 4;
/** Keys that one list picks; where more match, all objects are looked at. */
const PICKED_MAX = 20_000;
/** A larger shard is read by looking at everything: in a row that is quicker, one by one. */
const SHARD_PARTS_MAX: number = PARTS / 8;

interface Field {
  readonly lists: ValueLists | ShardLists;
  /** The hub must have come so far; -1 while the walk goes on. */
  readyRevision: number;
  wantedMs: number;
}

export class ObjectIndex {
  readonly #storage: Storage;
  readonly #range: KeyRange;
  readonly #prefix: Buffer;
  readonly #keys: KeyTable;
  readonly #random: Random;
  readonly #fields = new Map<string, Field>();
  /** Labels that were asked for once: the second time an index is made. */
  readonly #asked = new Map<string, number>();

  constructor(storage: Storage, range: KeyRange, prefixLength: number, random: Random) {
    this.#storage = storage;
    this.#range = range;
    this.#prefix = range.start.subarray(0, prefixLength);
    this.#random = random;
    this.#keys = new KeyTable({ random });
  }

  get isEmpty(): boolean {
    return this.#fields.size === 0;
  }

  /** The field that would spare a list of this filter from looking at everything; '' for none. */
  fieldOf(filter: Filter, nowMs: number): string {
    if (filter.name !== '') return '';
    if (filter.nodeName !== null && filter.nodeName !== '') return NODE_FIELD;
    const { shard } = filter;
    if (shard?.field === 'uid') return isSmall(shard.ranges) ? 'uid' : '';
    const place = labelPlaceOf(filter.labels);
    if (place === null || place.values.includes('')) return '';
    const field = `label ${place.key}`;
    if (this.#fields.has(field)) return field;
    const isAgain = nowMs - (this.#asked.get(field) ?? -Infinity) < INDEX_IDLE_MS;
    if (this.#asked.size >= 2 * LABELS_MAX) this.#asked.clear();
    this.#asked.set(field, nowMs);
    return isAgain && this.#labelCount() < LABELS_MAX ? field : '';
  }

  #labelCount(): number {
    let count = 0;
    for (const name of this.#fields.keys()) if (name.startsWith('label ')) count++;
    return count;
  }

  /** True where `field` can be used by who has seen everything up to `revision`. */
  isReady(field: string, revision: number, nowMs: number): boolean {
    const found = this.#fields.get(field);
    if (found === undefined) return false;
    found.wantedMs = Math.max(found.wantedMs, nowMs);
    return found.readyRevision >= 0 && found.readyRevision <= revision;
  }

  has(field: string): boolean {
    return this.#fields.has(field);
  }

  /** Somebody who has no list to make just now will want the field again. */
  keep(field: string, nowMs: number): void {
    const found = this.#fields.get(field);
    if (found !== undefined) found.wantedMs = Math.max(found.wantedMs, nowMs);
  }

  /** Begins a field; `walk` until it says that the walk is over. */
  begin(field: string, nowMs: number): void {
    this.#fields.set(field, { lists: this.#listsOf(field), readyRevision: -1, wantedMs: nowMs });
  }

  #listsOf(field: string): ValueLists | ShardLists {
    if (field === 'uid') return new ShardLists(this.#keys);
    if (field === NODE_FIELD) return new ValueLists(findNodeName, true, this.#random);
    const key = Buffer.from(field.slice('label '.length));
    return new ValueLists((row, found) => findLabel(row, key, found), false, this.#random);
  }

  /** One slice of the walk for `field` from `next` on; where to go on, null at the end. */
  walk(field: string, next: Buffer): Buffer | null {
    const found = this.#fields.get(field);
    if (found === undefined) return null;
    let rows = 0;
    let last: Buffer | null = null;
    this.#storage.page(next, this.#range.end, 0, (row) => {
      this.#setOne(found, this.#idOf(row), row, row.modRevision);
      if (++rows < WALK_ROWS_MAX) return true;
      last = keyAfter(row.key.subarray(row.keyStart, row.keyEnd));
      return false;
    });
    if (last !== null) return last;
    found.readyRevision = this.#storage.appliedRevision;
    if (found.lists instanceof ShardLists) found.lists.floor = found.readyRevision;
    else found.lists.leftRevision = found.readyRevision;
    return null;
  }

  get start(): Buffer {
    return this.#range.start;
  }

  #idOf({ key, keyStart, keyEnd }: Row): number {
    return this.#keys.insert(key, keyStart + this.#prefix.length, keyEnd);
  }

  #setOne({ lists }: Field, id: number, row: Row, revision: number): void {
    if (lists instanceof ShardLists) lists.set(id, row, false);
    else lists.set(id, row, false, revision);
  }

  /** Takes in one change. */
  apply(event: StorageEvent): void {
    if (this.#fields.size === 0) return;
    const { key, keyStart, keyEnd } = event.value;
    const from = keyStart + this.#prefix.length;
    if (event.isDelete) {
      this.#remove(this.#keys.find(key, from, keyEnd), event.revision);
      return;
    }
    const id = this.#keys.insert(key, from, keyEnd);
    for (const { lists } of this.#fields.values()) {
      if (lists instanceof ShardLists) lists.set(id, event.value, event.isCreate);
      else lists.set(id, event.value, event.isCreate, event.revision);
    }
  }

  #remove(id: number, revision: number): void {
    if (id < 0) return;
    let isNeeded = false;
    for (const { lists } of this.#fields.values()) {
      if (lists instanceof ShardLists) {
        isNeeded = lists.remove(id, revision);
        lists.purge((free) => this.#keys.remove(free));
      } else lists.remove(id, revision);
    }
    if (!isNeeded && this.#keys.has(id)) this.#keys.remove(id);
  }

  /** What a list by `field` has to look at, or null where everything is better looked at. */
  source(field: string, filter: Filter, range: KeyRange, revision: number): RowSource | null {
    const lists = this.#fields.get(field)?.lists;
    if (lists === undefined) return null;
    if (lists instanceof ShardLists) {
      const { shard } = filter;
      if (shard === null || lists.floor > revision) return null;
      return new ShardRows(this.#storage, this.#keys, lists, shard, this.#prefix);
    }
    if (lists.isGivenUp || lists.leftRevision > revision) return null;
    const values =
      field === NODE_FIELD ? [filter.nodeName ?? ''] : (labelPlaceOf(filter.labels)?.values ?? []);
    let count = 0;
    for (const value of values) count += lists.count(value);
    return count > PICKED_MAX ? null : this.#pick(lists, values, range);
  }

  #pick(lists: ValueLists, values: readonly string[], range: KeyRange): RowSource {
    const keys: Buffer[] = [];
    const { length } = this.#prefix;
    for (const value of values) {
      lists.each(value, (id) => {
        const key = Buffer.allocUnsafe(length + this.#keys.keyLength(id));
        this.#prefix.copy(key);
        this.#keys.copyKey(id, key, length);
        if (Buffer.compare(key, range.start) >= 0 && Buffer.compare(key, range.end) < 0) {
          keys.push(key);
        }
      });
    }
    keys.sort((one, other) => Buffer.compare(one, other));
    return new PickedRows(this.#storage, keys);
  }

  /** Drops what nobody has wanted for long. True when nothing is left. */
  dropIdle(nowMs: number): boolean {
    for (const [name, { wantedMs }] of this.#fields) {
      if (nowMs - wantedMs > INDEX_IDLE_MS) this.#fields.delete(name);
    }
    return this.#fields.size === 0;
  }
}

/** True where the ranges are a part of everything that is worth an index. */
function isSmall(ranges: readonly { startHigh: number; endHigh: number }[]): boolean {
  let sum = 0;
  for (const { startHigh, endHigh } of ranges) sum += endHigh - startHigh;
  return sum <= (SHARD_PARTS_MAX / PARTS) * 2 ** 32;
}

const BRACE_OPEN = 0x7b;
const labels = new LabelsRange();

/** Where the value of a label stands; an empty range without one. */
function findLabel(row: Row, key: Buffer, found: TextRange): void {
  const { bytes, start, end } = row;
  if (bytes[start] !== BRACE_OPEN) {
    fillText(found, stringAt(foreignObject(row), 'metadata', 'labels', key.toString()));
    return;
  }
  labels.find(bytes, start, end);
  findLabelValue(bytes, labels.start, labels.end, key, found);
}
