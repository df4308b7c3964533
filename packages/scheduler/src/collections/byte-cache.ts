// data plane: from bytes that are always the same to the number that they mean
import { KeyTable } from '@megaplane/base/keytable';
import { Uint32Column } from '@megaplane/base/column';
import type { Random } from '@megaplane/base/random';

/** Entries that may be of no use to anybody, whatever else is in a cache. */
export const UNUSED_MAX = 256;

/**
 * Remembers what a part of an object means, by its bytes as they stand, so that parts which a
 * million objects have in common are decoded once. Each time that it has doubled it forgets what
 * nobody uses: that is never more than the rest, or `UNUSED_MAX`. When full it forgets everything.
 */
export class ByteCache {
  readonly #random: Random;
  readonly #entriesMax: number;
  readonly #onForget: (value: number) => void;
  readonly #isUsed: (value: number) => boolean;
  readonly #values = new Uint32Column();
  #keys: KeyTable;

  /** Entries at which it is looked for what nobody uses. */
  #sweepAt: number = UNUSED_MAX;

  /** `onForget` is called with each value that is given up; `isUsed`: by others than this cache. */
  constructor(
    random: Random,
    entriesMax: number,
    onForget: (value: number) => void,
    isUsed: (value: number) => boolean = () => true,
  ) {
    this.#random = random;
    this.#entriesMax = entriesMax;
    this.#onForget = onForget;
    this.#isUsed = isUsed;
    this.#keys = new KeyTable({ random });
  }

  get size(): number {
    return this.#keys.size;
  }

  /** What the bytes mean, or -1. */
  find(bytes: Uint8Array, start: number, end: number): number {
    const id = this.#keys.find(bytes, start, end);
    return id < 0 ? -1 : this.#values.get(id);
  }

  add(bytes: Uint8Array, start: number, end: number, value: number): void {
    if (this.#keys.size >= this.#sweepAt) this.#sweep();
    if (this.#keys.size >= this.#entriesMax) this.#clear();
    const id = this.#keys.insert(bytes, start, end);
    if (id < 0) this.#onForget(value);
    else this.#values.set(id, value);
  }

  #sweep(): void {
    const keys = this.#keys;
    for (let id = 0; id < keys.idEnd; id++) {
      if (!keys.has(id)) continue;
      const value = this.#values.get(id);
      if (this.#isUsed(value)) continue;
      keys.remove(id);
      this.#onForget(value);
    }
    this.#sweepAt = Math.max(UNUSED_MAX, 2 * keys.size);
  }

  #clear(): void {
    for (let id = 0; id < this.#keys.idEnd; id++) {
      if (this.#keys.has(id)) this.#onForget(this.#values.get(id));
    }
    this.#keys = new KeyTable({ random: this.#random });
    this.#sweepAt = UNUSED_MAX;
  }
}
