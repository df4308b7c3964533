/**
 * Gives equal things one number, counts who uses it, and reuses the numbers of things that nobody
 * uses any more. Whoever remembers something by number must forget it when `epoch` changes.
 */
interface Entry<T> {
  readonly key: string;
  readonly value: T;
  users: number;
}

export class Interner<T> {
  readonly #ids = new Map<string, number>();
  readonly #entries: (Entry<T> | undefined)[] = [];
  readonly #free: number[] = [];
  readonly #onFree: (value: T) => void;
  #epoch = 0;

  /** `onFree` is called with what nobody uses any more. */
  constructor(onFree: (value: T) => void = () => {}) {
    this.#onFree = onFree;
  }

  /** Changes when a number gets a new meaning. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Things in use. */
  get size(): number {
    return this.#ids.size;
  }

  /** All numbers are below this. */
  get idEnd(): number {
    return this.#entries.length;
  }

  /** The number of what `key` stands for, with one more user; `make` is called for a new one. */
  acquire(key: string, make: () => T): number {
    const known = this.#ids.get(key);
    if (known !== undefined) {
      const entry = this.#entries[known];
      if (entry !== undefined) entry.users++;
      return known;
    }
    const reused = this.#free.pop();
    if (reused !== undefined) this.#epoch++;
    const id = reused ?? this.#entries.length;
    this.#entries[id] = { key, value: make(), users: 1 };
    this.#ids.set(key, id);
    return id;
  }

  /** One more user of a number in use. */
  retain(id: number): void {
    const entry = this.#entries[id];
    if (entry !== undefined) entry.users++;
  }

  /** One user less; the last one lets the number go. */
  release(id: number): void {
    const entry = this.#entries[id];
    if (entry === undefined || --entry.users > 0) return;
    this.#entries[id] = undefined;
    this.#ids.delete(entry.key);
    this.#free.push(id);
    this.#onFree(entry.value);
  }

  /** What a number in use stands for. */
  get(id: number): T {
    const entry = this.#entries[id];
    if (entry === undefined) throw new Error(`number ${id} is not in use`);
    return entry.value;
  }
}
