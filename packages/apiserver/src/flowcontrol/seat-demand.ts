/** How many seats a priority level could have used over time: what borrowing goes by. */

/** Upstream's coefficient for a period of ten seconds: an old peak halves in five minutes. */
const SMOOTHING = 0.977;

export class SeatDemand {
  #value = 0;
  #sinceMs: number;
  #startMs: number;
  #weighted = 0;
  #weightedSquares = 0;
  #high = 0;
  /** Of the last period that was closed. */
  average = 0;
  deviation = 0;
  highWatermark = 0;
  /** Rises at once with average and deviation, falls slowly. */
  smoothed = 0;

  constructor(nowMs: number) {
    this.#sinceMs = nowMs;
    this.#startMs = nowMs;
  }

  /** From now on so many seats could be used. */
  set(seats: number, nowMs: number): void {
    this.#pass(nowMs);
    this.#value = seats;
    if (seats > this.#high) this.#high = seats;
  }

  /** For demand that comes and goes within a turn: it counts as a peak, it has no duration. */
  touch(seats: number): void {
    if (seats > this.#high) this.#high = seats;
  }

  #pass(nowMs: number): void {
    const passed = Math.max(0, nowMs - this.#sinceMs);
    this.#sinceMs = nowMs;
    this.#weighted += this.#value * passed;
    this.#weightedSquares += this.#value * this.#value * passed;
  }

  /** Ends a period: takes its figures, begins the next. */
  close(nowMs: number): void {
    this.#pass(nowMs);
    const duration = nowMs - this.#startMs;
    this.highWatermark = this.#high;
    this.#high = this.#value;
    this.#startMs = nowMs;
    const [weighted, squares] = [this.#weighted, this.#weightedSquares];
    this.#weighted = 0;
    this.#weightedSquares = 0;
    if (duration <= 0) return;
    this.average = weighted / duration;
    this.deviation = Math.sqrt(Math.max(0, squares / duration - this.average * this.average));
    const envelope = this.average + this.deviation;
    this.smoothed = Math.max(envelope, SMOOTHING * this.smoothed + (1 - SMOOTHING) * envelope);
  }
}
