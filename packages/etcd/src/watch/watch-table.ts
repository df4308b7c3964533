// data plane: what a server knows of each watch, in columns
/**
 * A million idle watches must not be a million objects. The store numbers its cursors densely, so
 * what a watch is called and how it was asked for stand in columns by cursor, for all streams
 * together; each stream finds cursors by the watches' ids.
 *
 * ```
 *   by cursor (WatchTable)      flags  u8     see FLAG_*
 *                               ids    f64    id; the few beyond 2^53 are in a map
 *   by id (WatchIds)            dense  u32    id -> cursor, 0 = none: ids that the server gave
 *                               sparse Map    all other ids
 * ```
 */
import { assert } from '@megaplane/base/assert';
import type { WatchId } from './watch-request.ts';

export const FLAG_PREV_KV = 1;
export const FLAG_NO_PUT = 2;
export const FLAG_NO_DELETE = 4;
export const FLAG_FRAGMENT = 8;
export const FLAG_PROGRESS = 16;
/** What responses with events depend on. */
const FLAGS_KIND: number = FLAG_PREV_KV | FLAG_NO_PUT | FLAG_NO_DELETE | FLAG_FRAGMENT;
/** Events were sent since progress was told last. */
export const FLAG_HAS_SENT = 32;

export class WatchTable {
  #flags = new Uint8Array(64);
  #ids = new Float64Array(64);
  readonly #largeIds: Map<number, bigint> = new Map();

  add(cursor: number, id: WatchId, flags: number): void {
    if (cursor >= this.#flags.length) this.#grow(cursor);
    this.#flags[cursor] = flags;
    if (typeof id === 'number') this.#ids[cursor] = id;
    else {
      this.#ids[cursor] = NaN;
      this.#largeIds.set(cursor, id);
    }
  }

  #grow(cursor: number): void {
    const size = Math.max(this.#flags.length * 2, cursor + 1);
    const flags = new Uint8Array(size);
    flags.set(this.#flags);
    this.#flags = flags;
    const ids = new Float64Array(size);
    ids.set(this.#ids);
    this.#ids = ids;
  }

  remove(cursor: number): void {
    if (Number.isNaN(this.#ids[cursor]!)) this.#largeIds.delete(cursor);
  }

  id(cursor: number): WatchId {
    const id = this.#ids[cursor]!;
    return Number.isNaN(id) ? this.#largeIds.get(cursor)! : id;
  }

  has(cursor: number, flag: number): boolean {
    return (this.#flags[cursor]! & flag) !== 0;
  }

  /** The flags by which responses with the same events differ. */
  kind(cursor: number): number {
    return this.#flags[cursor]! & FLAGS_KIND;
  }

  set(cursor: number, flag: number, isSet: boolean): void {
    if (isSet) this.#flags[cursor]! |= flag;
    else this.#flags[cursor]! &= ~flag;
  }
}

/** Ids that a server gives are below this in any stream that is not meant to do harm. */
const DENSE_IDS_MAX: number = 1 << 24;

/** The watches of one stream by their ids. */
export class WatchIds {
  #dense: Uint32Array = NONE;
  readonly #sparse: Map<WatchId, number> = new Map();
  size = 0;

  /** The cursor of an id; 0 when there is none. */
  get(id: WatchId): number {
    if (this.#isDense(id)) return this.#dense[id]!;
    return this.#sparse.get(id) ?? 0;
  }

  /** Adds an id that is not there. */
  add(id: WatchId, cursor: number): void {
    assert(cursor !== 0 && this.get(id) === 0, 'an id is that of one watch');
    this.size++;
    if (id === this.#dense.length && id < DENSE_IDS_MAX) this.#grow(id);
    if (this.#isDense(id)) this.#dense[id] = cursor;
    else this.#sparse.set(id, cursor);
  }

  /** Given one after the other, ids fill the table; chosen to leave holes, they do not make it. */
  #grow(length: number): void {
    if (this.size < length / 2) return;
    const longer = new Uint32Array(Math.max(4, length * 2));
    longer.set(this.#dense);
    this.#dense = longer;
    if (this.#sparse.size === 0) return;
    for (let id = length; id < longer.length; id++) {
      longer[id] = this.#sparse.get(id) ?? 0;
      this.#sparse.delete(id);
    }
  }

  remove(id: WatchId): void {
    assert(this.get(id) !== 0, 'a watch ends once');
    this.size--;
    if (this.#isDense(id)) this.#dense[id] = 0;
    else this.#sparse.delete(id);
  }

  clear(): void {
    this.size = 0;
    this.#dense = NONE;
    this.#sparse.clear();
  }

  #isDense(id: WatchId): id is number {
    return typeof id === 'number' && id >= 0 && id < this.#dense.length;
  }

  /** All cursors, those of small ids first. */
  *cursors(): Generator<number, void, undefined> {
    for (const cursor of this.#dense) if (cursor !== 0) yield cursor;
    yield* this.#sparse.values();
  }
}

const NONE = new Uint32Array(0);
