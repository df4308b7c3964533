import type { Timers } from '../src/rest/client.ts';

/** Timers that stand still until `advance`. */
export class FakeTimers implements Timers {
  #nowMs = 1_000_000;
  /** By how much the wall clock was set. */
  setMs = 0;
  #nextId = 0;
  readonly #due: Map<number, { readonly atMs: number; readonly fire: () => void }> = new Map();

  nowMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#nowMs + this.setMs;
  }

  after(delayMs: number, fire: () => void): () => void {
    const id = this.#nextId++;
    this.#due.set(id, { atMs: this.#nowMs + Math.max(0, delayMs), fire });
    return () => this.#due.delete(id);
  }

  get size(): number {
    return this.#due.size;
  }

  /** Moves time while nothing runs: what became due fires with the next `advance`. */
  sleep(byMs: number): void {
    this.#nowMs += byMs;
  }

  /** Moves time, firing what is due in its order. */
  advance(byMs: number): void {
    const untilMs = this.#nowMs + byMs;
    for (;;) {
      let next = -1;
      let nextMs = Infinity;
      for (const [id, { atMs }] of this.#due) {
        if (atMs >= nextMs || atMs > untilMs) continue;
        next = id;
        nextMs = atMs;
      }
      const timer = this.#due.get(next);
      if (timer === undefined) break;
      this.#due.delete(next);
      this.#nowMs = Math.max(this.#nowMs, timer.atMs);
      timer.fire();
    }
    this.#nowMs = untilMs;
  }
}
