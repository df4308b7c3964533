/**
 * Keys that wait to be worked on. A key is in the queue once, however often it is added, and is
 * never worked on twice at a time: added meanwhile, it comes again when its worker is done.
 * Failures make a key wait longer each time. Time is an argument; nothing happens by itself.
 */
const RETRY_MS_MIN = 5;
const RETRY_MS_MAX = 60_000;

export class WorkQueue<K> {
  readonly #ready: Set<K> = new Set();
  readonly #waiting: Map<K, number> = new Map();
  readonly #active: Set<K> = new Set();
  readonly #again: Set<K> = new Set();
  readonly #failures: Map<K, number> = new Map();

  /** Keys ready or waiting. */
  get size(): number {
    return this.#ready.size + this.#waiting.size + this.#again.size;
  }

  /** When the next waiting key becomes ready; Infinity if none waits. */
  get nextMs(): number {
    let nextMs = Infinity;
    for (const atMs of this.#waiting.values()) nextMs = Math.min(nextMs, atMs);
    return nextMs;
  }

  add(key: K): void {
    this.#waiting.delete(key);
    if (this.#active.has(key)) this.#again.add(key);
    else this.#ready.add(key);
  }

  /** Adds the key later; an earlier appointment stands. */
  addAt(key: K, atMs: number): void {
    if (this.#ready.has(key) || this.#again.has(key)) return;
    this.#waiting.set(key, Math.min(atMs, this.#waiting.get(key) ?? Infinity));
  }

  /** The next key to work on, which `done` or `retry` must follow. */
  take(nowMs: number): K | undefined {
    for (const [key, atMs] of this.#waiting) if (atMs <= nowMs) this.add(key);
    for (const key of this.#ready) {
      this.#ready.delete(key);
      this.#active.add(key);
      return key;
    }
    return undefined;
  }

  /** The work is done: what failed before is forgotten. */
  done(key: K): void {
    this.#failures.delete(key);
    this.#end(key);
  }

  /** The work failed: the key comes again after a while, twice as long as the last time. */
  retry(key: K, nowMs: number): void {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    this.#end(key);
    this.addAt(key, nowMs + Math.min(RETRY_MS_MIN * 2 ** Math.min(failures, 30), RETRY_MS_MAX));
  }

  /** How often the key has failed in a row. */
  failuresOf(key: K): number {
    return this.#failures.get(key) ?? 0;
  }

  /** Forgets a key wherever it waits. */
  drop(key: K): void {
    this.#ready.delete(key);
    this.#waiting.delete(key);
    this.#again.delete(key);
    this.#failures.delete(key);
  }

  #end(key: K): void {
    this.#active.delete(key);
    if (this.#again.delete(key)) this.#ready.add(key);
  }
}
