/** How a priority level's seats and queues were used over time, for the metrics. */
import { TimedRatio } from './timed-ratio.ts';

/** Buckets as upstream has them. */
const REQUESTS = [0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1] as const;
const SEATS = [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1] as const;
const DEMAND = [0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4, 1.7, 2, 2.8, 4, 6] as const;

export class LevelUse {
  readonly executing: TimedRatio;
  readonly waiting: TimedRatio;
  readonly seats: TimedRatio;
  readonly demand: TimedRatio;

  constructor(nowMs: number) {
    this.executing = new TimedRatio(REQUESTS, nowMs);
    this.waiting = new TimedRatio(REQUESTS, nowMs);
    this.seats = new TimedRatio(SEATS, nowMs);
    this.demand = new TimedRatio(DEMAND, nowMs);
  }

  /** From now on the level has so many seats, and so many may wait. */
  limitTo(seats: number, waiting: number, nowMs: number): void {
    this.executing.limitTo(seats, nowMs);
    this.seats.limitTo(seats, nowMs);
    this.demand.limitTo(seats, nowMs);
    this.waiting.limitTo(waiting, nowMs);
  }
}
