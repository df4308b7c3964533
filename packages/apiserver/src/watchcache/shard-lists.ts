// data plane
/**
 * Objects by the hash that shards are cut by, in the order of their keys within each part.
 *
 * The space of hashes is cut into `PARTS` equal parts; each has an ordered index of the ids of the
 * objects in it. A shard is read by merging the parts that it touches, which costs what is read,
 * wherever it starts. An object that is gone stays for a while (a *grave*), because lists of an
 * earlier revision still show it; a reader looks at every row as it was at his revision anyway.
 *
 *   part    Uint8Column    id -> its part plus one, 0 = gone
 *   high    Uint32Column   id -> the upper half of its hash
 *   graves  Uint8Column    id -> how often it is among the graves
 */
import { Uint32Column, Uint8Column } from '@megaplane/base/column';
import type { KeyTable } from '@megaplane/base/keytable';
import { OrderedIndex } from '@megaplane/base/ordered';
import type { ShardSelector } from '@megaplane/machinery/sharding/selector';
import { shardHashOf } from '../request/filter.ts';
import type { Row } from '../storage/storage.ts';

const PART_BITS = 6;
export const PARTS: number = 2 ** PART_BITS;
const SHIFT: number = 32 - PART_BITS;
/** Objects that are gone and still found. */
export const GRAVES_MAX = 65_536;
const GRAVES_EACH_MAX = 255;

interface Grave {
  readonly id: number;
  readonly part: number;
  readonly revision: number;
}

export class ShardLists {
  readonly #keys: KeyTable;
  readonly #parts: OrderedIndex[];
  readonly #partOf = new Uint8Column();
  readonly #highOf = new Uint32Column();
  readonly #gravesOf = new Uint8Column();
  #graves: Grave[] = [];
  #firstGrave = 0;
  /** Lists of this revision and later ones find all that they show. */
  floor = 0;

  constructor(keys: KeyTable) {
    this.#keys = keys;
    this.#parts = Array.from({ length: PARTS }, () => new OrderedIndex(keys));
  }

  /** Takes in the object `id`. Its hash never changes while it lives. */
  set(id: number, row: Row, isNew: boolean): void {
    if (!isNew && this.#partOf.get(id) !== 0) return;
    const { high } = shardHashOf(row, 'uid');
    const part = high >>> SHIFT;
    this.#partOf.set(id, part + 1);
    this.#highOf.set(id, high);
    this.#parts[part]!.insert(id);
  }

  /** The object is gone since `revision`. True: its id is still needed here. */
  remove(id: number, revision: number): boolean {
    const part = this.#partOf.get(id) - 1;
    if (part < 0) return this.#gravesOf.get(id) > 0;
    this.#partOf.set(id, 0);
    if (this.#gravesOf.get(id) === GRAVES_EACH_MAX) {
      // it has come and gone too often to be kept in mind: earlier lists must look for themselves
      this.floor = Math.max(this.floor, revision);
      return true;
    }
    this.#gravesOf.set(id, this.#gravesOf.get(id) + 1);
    this.#graves.push({ id, part, revision });
    return true;
  }

  /** Forgets the oldest graves beyond the limit; calls `onFree` for ids that nothing needs now. */
  purge(onFree: (id: number) => void): void {
    while (this.#graves.length - this.#firstGrave > GRAVES_MAX) {
      const { id, part, revision } = this.#graves[this.#firstGrave++]!;
      this.floor = Math.max(this.floor, revision);
      const left = this.#gravesOf.get(id) - 1;
      this.#gravesOf.set(id, left);
      if (left > 0) continue;
      const own = this.#partOf.get(id) - 1;
      if (own !== part) this.#parts[part]!.delete(id);
      // an id with several graves may have left parts behind that no grave names any more
      for (let at = 0; at < PARTS; at++) if (at !== own) this.#parts[at]!.delete(id);
      if (own < 0) onFree(id);
    }
    if (this.#firstGrave < GRAVES_MAX) return;
    this.#graves = this.#graves.slice(this.#firstGrave);
    this.#firstGrave = 0;
  }

  /** The parts that a selector touches. */
  partsOf(selector: ShardSelector): number[] {
    const found = new Set<number>();
    for (const { startHigh, endHigh, endLow } of selector.ranges) {
      const last = (endLow === 0 ? endHigh - 1 : endHigh) >>> SHIFT;
      for (let part = startHigh >>> SHIFT; part <= last; part++) found.add(part);
    }
    return [...found];
  }

  /** Objects, gone ones included, in a part. */
  sizeOf(part: number): number {
    return this.#parts[part]!.size;
  }

  /**
   * Visits ids of the parts with keys in `[start, end)` in the order of the keys, until `visit`
   * returns false. Nothing may change meanwhile.
   */
  merge(
    parts: readonly number[],
    selector: ShardSelector,
    start: Buffer,
    end: Buffer,
    visit: (id: number) => boolean,
  ): void {
    const heap = new PositionHeap(this.#keys, this.#parts);
    for (const part of parts) heap.push(part, this.#parts[part]!.seek(start, 0, start.length));
    let last = -1;
    for (let id = heap.top(); id >= 0; id = heap.top()) {
      if (this.#keys.compareKey(id, end, 0, end.length) >= 0) return;
      // who was made anew with another hash may be in the part of his grave as well
      if (id !== last && this.#mayHold(selector, id) && !visit(id)) return;
      last = id;
      heap.advance();
    }
  }

  /** By the upper half alone, and of the living; whoever reads the row looks closer. */
  #mayHold({ ranges }: ShardSelector, id: number): boolean {
    if (this.#gravesOf.get(id) > 0) return true;
    const high = this.#highOf.get(id);
    for (let index = 0; index < ranges.length; index++) {
      const range = ranges[index]!;
      if (high >= range.startHigh && high <= range.endHigh) return true;
    }
    return false;
  }
}

/** The parts that are being merged, the one with the smallest key on top. */
class PositionHeap {
  readonly #keys: KeyTable;
  readonly #indexes: readonly OrderedIndex[];
  readonly #parts: number[] = [];
  readonly #positions: number[] = [];
  readonly #ids: number[] = [];

  constructor(keys: KeyTable, indexes: readonly OrderedIndex[]) {
    this.#keys = keys;
    this.#indexes = indexes;
  }

  push(part: number, position: number): void {
    if (position < 0) return;
    this.#parts.push(part);
    this.#positions.push(position);
    this.#ids.push(this.#indexes[part]!.idAt(position));
    this.#rise(this.#parts.length - 1);
  }

  /** The id with the smallest key, or -1. */
  top(): number {
    return this.#parts.length === 0 ? -1 : this.#ids[0]!;
  }

  advance(): void {
    const index = this.#indexes[this.#parts[0]!]!;
    const position = index.next(this.#positions[0]!);
    if (position >= 0) {
      this.#positions[0] = position;
      this.#ids[0] = index.idAt(position);
    } else {
      const last = this.#parts.length - 1;
      this.#swap(0, last);
      this.#parts.pop();
      this.#positions.pop();
      this.#ids.pop();
    }
    this.#sink();
  }

  #isBefore(one: number, other: number): boolean {
    const keys = this.#keys;
    const id = this.#ids[other]!;
    const start = keys.keyStart(id);
    const bytes = keys.keyBytes(id);
    return keys.compareKey(this.#ids[one]!, bytes, start, start + keys.keyLength(id)) < 0;
  }

  #swap(one: number, other: number): void {
    for (const column of [this.#parts, this.#positions, this.#ids]) {
      const kept = column[one]!;
      column[one] = column[other]!;
      column[other] = kept;
    }
  }

  #rise(from: number): void {
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.#isBefore(at, parent)) return;
      this.#swap(at, parent);
      at = parent;
    }
  }

  #sink(): void {
    const size = this.#parts.length;
    let at = 0;
    for (;;) {
      let least = at;
      const left = 2 * at + 1;
      if (left < size && this.#isBefore(left, least)) least = left;
      if (left + 1 < size && this.#isBefore(left + 1, least)) least = left + 1;
      if (least === at) return;
      this.#swap(at, least);
      at = least;
    }
  }
}
