/** A clock and its timers that move when they are told to, for simulations of many of them. */
import type { Timers } from '@megaplane/client/client';

/** From one look of the node lifecycle to the next. */
const LOOK_MS = 5_000;

interface Timer {
  readonly atMs: number;
  readonly order: number;
  /** Null: cancelled; what it held is let go of before its time. */
  fire: (() => void) | null;
}

/**
 * A machine's clock, which may be set either way, as a process there sees it: durations follow it
 * forward and never back, and what was armed before comes when it would have come.
 */
export class SimulatedClock implements Timers {
  readonly #timers: SimulatedTimers;
  #aheadMs = 0;
  #leaptMs = 0;

  constructor(timers: SimulatedTimers) {
    this.#timers = timers;
  }

  /** Sets it so far ahead of the time that there is, or behind. */
  set(aheadMs: number): void {
    this.#aheadMs = aheadMs;
    this.#leaptMs = Math.max(this.#leaptMs, aheadMs);
  }

  /** As `performance.now()`: whoever sets the clock. */
  monotonicMs(): number {
    return this.#timers.nowMs();
  }

  nowMs(): number {
    return this.#timers.nowMs() + this.#leaptMs;
  }

  wallMs(): number {
    return this.#timers.nowMs() + this.#aheadMs;
  }

  after(delayMs: number, fire: () => void): () => void {
    return this.#timers.after(delayMs, fire);
  }
}

/** Timers in a heap: those of one time fire in the order in which they were set. */
export class SimulatedTimers implements Timers {
  #nowMs: number;
  #order = 0;
  #jumpedMs = 0;
  readonly #heap: Timer[] = [];

  constructor(startMs: number) {
    this.#nowMs = startMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  /** The clock of who has none of its own; nobody sets it. */
  wallMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, fire: () => void): () => void {
    const atMs = this.#nowMs + Math.max(0, delayMs);
    const timer: Timer = { atMs, order: this.#order++, fire };
    this.#push(timer);
    return () => {
      timer.fire = null;
    };
  }

  /** The time in which somebody ran; who looks every so often takes a jump for one such pause. */
  awakeMs(): number {
    return this.#nowMs - this.#jumpedMs;
  }

  /** Nobody runs meanwhile: what is due fires late. */
  jump(byMs: number): void {
    this.#jumpedMs += Math.max(0, byMs - LOOK_MS);
    this.#nowMs += byMs;
  }

  /** Goes to the next timer until `untilMs` and fires it; false where none is due by then. */
  step(untilMs: number): boolean {
    for (let first = this.#heap[0]; first !== undefined; first = this.#heap[0]) {
      const { fire } = first;
      if (fire === null) this.#pop();
      else if (first.atMs > untilMs) break;
      else {
        this.#pop();
        this.#nowMs = Math.max(this.#nowMs, first.atMs);
        fire();
        return true;
      }
    }
    this.#nowMs = Math.max(this.#nowMs, untilMs);
    return false;
  }

  #push(timer: Timer): void {
    const heap = this.#heap;
    let at = heap.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || isBefore(above, timer)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = timer;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let place = 2 * at + 1;
      let child = heap[place];
      const other = heap[place + 1];
      if (child !== undefined && other !== undefined && isBefore(other, child)) {
        child = other;
        place++;
      }
      if (child === undefined || isBefore(last, child)) break;
      heap[at] = child;
      at = place;
    }
    heap[at] = last;
  }
}

function isBefore(left: Timer, right: Timer): boolean {
  return left.atMs < right.atMs || (left.atMs === right.atMs && left.order < right.order);
}
