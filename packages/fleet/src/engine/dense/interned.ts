// data plane: names and vectors as small numbers that are given back when nobody uses them
import { assert } from '@megaplane/base/assert';

/** Keys to numbers from 0 on; the number of a key that nobody holds goes to another one. */
export class Interned<Key> {
  readonly #ids = new Map<Key, number>();
  readonly #keys: (Key | undefined)[] = [];
  #references: Int32Array<ArrayBuffer> = new Int32Array(64);
  readonly #free: number[] = [];

  /** How many numbers have been given out at most; each is lower. */
  get end(): number {
    return this.#keys.length;
  }

  get size(): number {
    return this.#ids.size;
  }

  /** The number of a key, held once more. */
  hold(key: Key): number {
    const known = this.#ids.get(key);
    if (known !== undefined) {
      this.#references[known]!++;
      return known;
    }
    const id = this.#free.pop() ?? this.#keys.length;
    if (id === this.#references.length) this.#references = doubled(this.#references);
    this.#ids.set(key, id);
    this.#keys[id] = key;
    this.#references[id] = 1;
    return id;
  }

  holdAgain(id: number): void {
    assert(this.#references[id]! > 0, 'only what is held is held again');
    this.#references[id]!++;
  }

  /** Gives a number back; true if nobody holds it any more. */
  release(id: number): boolean {
    const left = --this.#references[id]!;
    assert(left >= 0, 'what is released was held');
    if (left > 0) return false;
    this.#ids.delete(this.#keys[id]!);
    this.#keys[id] = undefined;
    this.#free.push(id);
    return true;
  }

  find(key: Key): number | undefined {
    return this.#ids.get(key);
  }

  keyOf(id: number): Key {
    return this.#keys[id]!;
  }
}

export function doubled(array: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(array.length * 2);
  larger.set(array);
  return larger;
}

export function doubledFloats(array: Float64Array<ArrayBuffer>): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(array.length * 2);
  larger.set(array);
  return larger;
}
