/**
 * Keys that wait to be worked on. A key is in the queue once, however often it is added, and is
 * never worked on twice at a time: added meanwhile, it comes again when its worker is done.
 * Failures make a key wait longer each time. Time is an argument; nothing happens by itself.
 */
import { assert } from '@megaplane/base/assert';

/** How long a key waits that failed: twice as long each time, from the least to the most. */
export interface RetryDelays {
  readonly minMs: number;
  readonly maxMs: number;
}

/** `DefaultTypedControllerRateLimiter` of client-go's workqueue. */
const RETRY: RetryDelays = { minMs: 5, maxMs: 1_000_000 };

/** Keys that have been taken are cut off when they are as many, and as many as the rest. */
const TAKEN_MIN = 1024;
/** Void appointments are dropped when there are as many, and as many as others. */
const VOID_MIN = 1024;

export class WorkQueue<K> {
  /** With the number of the last time that the key became ready. */
  readonly #ready: Map<K, number> = new Map();
  /**
   * In the order in which they became ready, those before `#first` are taken: the first of a Set of
   * many that begins with removed ones is found by passing all of these.
   */
  #order: K[] = [];
  /** The number of each in `#order`. */
  #numbers: number[] = [];
  #first = 0;
  #entered = 0;
  readonly #waiting: Map<K, number> = new Map();
  /** Appointments by time; one that is no longer in `#waiting` with its time is void. */
  readonly #appointments: Appointment<K>[] = [];
  readonly #active: Set<K> = new Set();
  readonly #again: Set<K> = new Set();
  readonly #failures: Map<K, number> = new Map();
  readonly #readied: (key: K) => void;
  readonly #retry: RetryDelays;

  /** `readied` hears of each key that can be worked on from now. */
  constructor(readied: (key: K) => void = () => {}, retry: RetryDelays = RETRY) {
    this.#readied = readied;
    this.#retry = retry;
  }

  /** Keys ready or waiting. */
  get size(): number {
    return this.#ready.size + this.#waiting.size + this.#again.size;
  }

  /** Keys that can be worked on now. */
  get ready(): number {
    return this.#ready.size;
  }

  /** Whether the key can be worked on now, or is being worked on. */
  isDue(key: K): boolean {
    return this.#ready.has(key) || this.#active.has(key);
  }

  isActive(key: K): boolean {
    return this.#active.has(key);
  }

  /** When the next waiting key becomes ready; Infinity if none waits. */
  get nextMs(): number {
    for (let first = this.#appointments[0]; first !== undefined; first = this.#appointments[0]) {
      if (this.#waiting.get(first.key) === first.atMs) return first.atMs;
      popFirst(this.#appointments);
    }
    return Infinity;
  }

  add(key: K): void {
    this.#waiting.delete(key);
    if (this.#active.has(key)) this.#again.add(key);
    else this.#enter(key);
  }

  #enter(key: K): void {
    assert(!this.#active.has(key), 'a key that is worked on is not ready besides');
    if (this.#ready.has(key)) return;
    this.#ready.set(key, ++this.#entered);
    this.#order.push(key);
    this.#numbers.push(this.#entered);
    this.#readied(key);
  }

  /** Adds the key later; an earlier appointment stands. */
  addAt(key: K, atMs: number): void {
    assert(!Number.isNaN(atMs), 'an appointment has a time');
    if (this.#ready.has(key) || this.#again.has(key)) return;
    if ((this.#waiting.get(key) ?? Infinity) <= atMs) return;
    this.#waiting.set(key, atMs);
    push(this.#appointments, { key, atMs });
    this.#dropVoid();
  }

  /** A key that is added before its time leaves a void appointment, which may be minutes away. */
  #dropVoid(): void {
    const kept = Math.max(VOID_MIN, 2 * this.#waiting.size);
    if (this.#appointments.length <= kept) return;
    this.#appointments.length = 0;
    for (const [key, atMs] of this.#waiting) push(this.#appointments, { key, atMs });
  }

  /** The next key to work on, which `done` or `retry` must follow. */
  take(nowMs: number): K | undefined {
    while (this.nextMs <= nowMs) {
      const due = popFirst(this.#appointments);
      if (due !== undefined) this.add(due.key);
    }
    while (this.#first < this.#order.length) {
      const key = this.#order[this.#first] as K;
      const number = this.#numbers[this.#first++];
      this.#cut();
      // it was dropped, and may have come back since
      if (this.#ready.get(key) !== number) continue;
      this.#ready.delete(key);
      assert(!this.#active.has(key), 'a key is worked on by one at a time');
      this.#active.add(key);
      return key;
    }
    assert(this.#ready.size === 0, 'each key that is ready has a place in the order');
    return undefined;
  }

  #cut(): void {
    if (this.#first < TAKEN_MIN || this.#first * 2 < this.#order.length) return;
    assert(this.#numbers.length === this.#order.length, 'each place in the order has a number');
    this.#order = this.#order.slice(this.#first);
    this.#numbers = this.#numbers.slice(this.#first);
    this.#first = 0;
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
    const { minMs, maxMs } = this.#retry;
    this.addAt(key, nowMs + Math.min(minMs * 2 ** Math.min(failures, 30), maxMs));
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
    assert(this.#active.delete(key), 'what is done was taken');
    if (this.#again.delete(key)) this.#enter(key);
  }
}

interface Appointment<K> {
  readonly key: K;
  readonly atMs: number;
}

/** A binary heap in a list: each item is due no later than those at 2i + 1 and 2i + 2. */
function push<K>(heap: Appointment<K>[], item: Appointment<K>): void {
  let at = heap.length;
  while (at > 0) {
    const parent = (at - 1) >> 1;
    const above = heap[parent];
    if (above === undefined || above.atMs <= item.atMs) break;
    heap[at] = above;
    at = parent;
  }
  heap[at] = item;
}

function popFirst<K>(heap: Appointment<K>[]): Appointment<K> | undefined {
  const first = heap[0];
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return first;
  let at = 0;
  for (;;) {
    const left = 2 * at + 1;
    const right = left + 1;
    let child = heap[left];
    let place = left;
    const other = heap[right];
    if (child !== undefined && other !== undefined && other.atMs < child.atMs) {
      child = other;
      place = right;
    }
    if (child === undefined || child.atMs >= last.atMs) break;
    heap[at] = child;
    at = place;
  }
  heap[at] = last;
  return first;
}
