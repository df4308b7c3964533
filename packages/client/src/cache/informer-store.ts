/**
 * The rows of an informer: keys, the version of each object, and in which round it was seen.
 *
 *     keys      KeyTable        namespace/name <-> id
 *     versions  Float64Column   id -> resourceVersion last delivered
 *     seen      Uint32Column    id -> round of the last list that brought it
 */
import { asBuffer } from '@megaplane/base/bytes';
import { Float64Column, Uint32Column } from '@megaplane/base/column';
import { KeyTable } from '@megaplane/base/keytable';
import { Random } from '@megaplane/base/random';
import { ObjectKey } from './object-key.ts';
import type { Shard } from './shard.ts';
import type { InformerHandler } from './informer-options.ts';

const EMPTY = Buffer.alloc(0);

export class InformerStore {
  readonly object: ObjectKey = new ObjectKey();
  readonly #keys: KeyTable;
  readonly #versions = new Float64Column();
  readonly #seen = new Uint32Column();
  readonly #handler: InformerHandler;
  readonly #shard: Shard | null;
  #round = 0;

  constructor(handler: InformerHandler, random: () => number, shard: Shard | null = null) {
    this.#handler = handler;
    this.#shard = shard;
    this.#keys = new KeyTable({ random: new Random(Math.floor(random() * 2 ** 53)) });
  }

  get size(): number {
    return this.#keys.size;
  }

  get idLimit(): number {
    return this.#keys.idEnd;
  }

  has(id: number): boolean {
    return id >= 0 && this.#keys.has(id);
  }

  find(namespace: string, name: string): number {
    this.object.set(namespace, name);
    return this.#keys.find(this.object.key, 0, this.object.keyLength);
  }

  keyOf(id: number): string {
    return this.has(id) ? this.#keys.keyText(id) : '';
  }

  versionOf(id: number): number {
    return this.has(id) ? this.#versions.get(id) : 0;
  }

  /** The server was put back to an earlier state: a version may stand for something else now. */
  doubt(): void {
    for (let id = 0; id < this.#keys.idEnd; id++) if (this.#keys.has(id)) this.#versions.set(id, 0);
  }

  /** A list begins: objects that it does not bring will be gone at its end. */
  beginRound(): void {
    this.#round++;
  }

  /**
   * Takes in the object that `object` has read. In a list every version but the one that is there
   * is news, for the server may have been put back to an earlier state; in a watch only a later one
   * is. False if it brought nothing new, has no name, or is of another shard.
   */
  upsert(bytes: Uint8Array, start: number, end: number, isList: boolean): boolean {
    const { key, keyLength, resourceVersion } = this.object;
    if (keyLength === 0) return false;
    if (this.#shard !== null && !this.#shard.holds(asBuffer(bytes), start, end)) return false;
    const id = this.#keys.insert(key, 0, keyLength);
    if (id < 0) return false;
    const { isNew } = this.#keys;
    this.#seen.set(id, this.#round);
    if (!isNew) {
      const present = this.#versions.get(id);
      const isNews = isList ? resourceVersion !== present : resourceVersion > present;
      if (!isNews) return false;
    }
    this.#versions.set(id, resourceVersion);
    this.#handler.onUpsert(id, isNew, bytes, start, end);
    return true;
  }

  /** Takes in that the object which `object` has read is gone. False if that is not news. */
  remove(bytes: Uint8Array, start: number, end: number): boolean {
    const { key, keyLength, resourceVersion } = this.object;
    if (keyLength === 0) return false;
    const id = this.#keys.find(key, 0, keyLength);
    if (id < 0 || resourceVersion < this.#versions.get(id)) return false;
    this.#handler.onDelete(id, bytes, start, end);
    this.#keys.remove(id);
    return true;
  }

  /**
   * As `upsert`, of an object that has rested: `onStill` hears of those that are known, whichever
   * version they have.
   */
  rest(bytes: Uint8Array, start: number, end: number): void {
    const { key, keyLength, resourceVersion } = this.object;
    const id = keyLength === 0 ? -1 : this.#keys.find(key, 0, keyLength);
    if (id < 0) {
      this.upsert(bytes, start, end, true);
      return;
    }
    this.#seen.set(id, this.#round);
    this.#versions.set(id, resourceVersion);
    this.#handler.onStill?.(id, bytes, start, end);
  }

  /** The list of what rests is complete: everything else has changed. */
  endRest(): void {
    const { onMoved } = this.#handler;
    if (onMoved === undefined) return;
    for (let id = 0; id < this.#keys.idEnd; id++) {
      if (this.#keys.has(id) && this.#seen.get(id) !== this.#round) onMoved(id);
    }
  }

  /** The list is complete: what it did not bring is gone. */
  endRound(): void {
    for (let id = 0; id < this.#keys.idEnd; id++) {
      if (!this.#keys.has(id) || this.#seen.get(id) === this.#round) continue;
      this.#handler.onDelete(id, EMPTY, 0, 0);
      this.#keys.remove(id);
    }
  }
}
