/**
 * Time as a value. Cores take it, or take the milliseconds themselves; only shells own a real one.
 */
export interface Clock {
  /** Wall clock, milliseconds since 1970-01-01 UTC. May jump either way. */
  nowMs(): number;
  /** Milliseconds since some fixed moment, with a fraction. Never goes back. */
  monotonicMs(): number;
}

/** A clock that stands still until it is told to move. */
export class SimulatedClock implements Clock {
  #wallMs: number;
  #monotonicMs = 0;

  constructor(startMs = 0) {
    this.#wallMs = startMs;
  }

  nowMs(): number {
    return this.#wallMs;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  /** Moves both clocks forward by `durationMs`, which is not negative. */
  advance(durationMs: number): void {
    if (!(durationMs >= 0)) throw new RangeError(`advance(${durationMs}): time goes forward only`);
    this.#wallMs += durationMs;
    this.#monotonicMs += durationMs;
  }

  /** Sets the wall clock as an operator or NTP would; monotonic time does not notice. */
  setWall(nowMs: number): void {
    this.#wallMs = nowMs;
  }
}
