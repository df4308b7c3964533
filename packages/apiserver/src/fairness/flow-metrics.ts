/** What priority and fairness counts, under upstream's names (`apiserver_flowcontrol_*`). */
import type { Levels } from './levels.ts';
import type { Refusal } from './priority-level.ts';

const START = 'apiserver_flowcontrol_';
const SECONDS = [0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30] as const;
const LENGTHS = [0, 10, 25, 50, 100, 250, 500, 1000] as const;
const SEATS = [1, 2, 4, 8, 16, 32, 64, 100] as const;

/** A histogram with cumulative buckets at the time of printing. */
export class FlowHistogram {
  readonly #bounds: readonly number[];
  readonly #counts: Float64Array;
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    let index = 0;
    while (index < this.#bounds.length && value > (this.#bounds[index] ?? Infinity)) index++;
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.#sum += value;
  }

  print(lines: string[], name: string, labels: string): void {
    let total = 0;
    for (const [index, count] of this.#counts.entries()) {
      total += count;
      lines.push(`${name}_bucket{${labels},le="${this.#bounds[index] ?? '+Inf'}"} ${total}`);
    }
    lines.push(`${name}_sum{${labels}} ${this.#sum}`, `${name}_count{${labels}} ${total}`);
  }
}

/** The counts of one flow schema on one priority level. */
export class FlowSeries {
  readonly labels: string;
  dispatched = 0;
  executing = 0;
  seatsInUse = 0;
  waiting = 0;
  seatsWaiting = 0;
  readonly rejected: Map<Refusal, number> = new Map();
  readonly waited: FlowHistogram = new FlowHistogram(SECONDS);
  readonly gaveUp: FlowHistogram = new FlowHistogram(SECONDS);
  readonly executed: FlowHistogram = new FlowHistogram(SECONDS);
  readonly queueLengths: FlowHistogram = new FlowHistogram(LENGTHS);
  readonly seats: FlowHistogram = new FlowHistogram(SEATS);

  constructor(level: string, schema: string) {
    this.labels = `flow_schema="${schema}",priority_level="${level}"`;
  }

  reject(reason: Refusal): void {
    this.rejected.set(reason, (this.rejected.get(reason) ?? 0) + 1);
  }
}

interface Shown {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge';
  readonly value: (series: FlowSeries) => number;
}

const OF_SERIES: readonly Shown[] = [
  {
    name: 'dispatched_requests_total',
    help: 'Requests that were let in.',
    type: 'counter',
    value: (series) => series.dispatched,
  },
  {
    name: 'current_executing_requests',
    help: 'Requests that run.',
    type: 'gauge',
    value: (series) => series.executing,
  },
  {
    name: 'current_executing_seats',
    help: 'Seats of requests that run.',
    type: 'gauge',
    value: (series) => series.seatsInUse,
  },
  {
    name: 'current_inqueue_requests',
    help: 'Requests that wait.',
    type: 'gauge',
    value: (series) => series.waiting,
  },
  {
    name: 'current_inqueue_seats',
    help: 'Seats of requests that wait.',
    type: 'gauge',
    value: (series) => series.seatsWaiting,
  },
];

const HISTOGRAMS = [
  { name: 'request_execution_seconds', help: 'Time that requests ran.', of: 'executed' },
  {
    name: 'request_queue_length_after_enqueue',
    help: 'Length of the queue as each request found it, itself included.',
    of: 'queueLengths',
  },
  { name: 'work_estimated_seats', help: 'Seats that requests were given.', of: 'seats' },
] as const;

/** All lines of all series and levels. */
export function printFlows(
  lines: string[],
  series: readonly FlowSeries[],
  levels: Levels<unknown>,
): void {
  for (const { name, help, type, value } of OF_SERIES) {
    head(lines, name, help, type);
    for (const one of series) lines.push(`${START}${name}{${one.labels}} ${value(one)}`);
  }
  head(lines, 'rejected_requests_total', 'Requests that were refused with 429.', 'counter');
  for (const { labels, rejected } of series) {
    for (const [reason, count] of rejected) {
      lines.push(`${START}rejected_requests_total{${labels},reason="${reason}"} ${count}`);
    }
  }
  head(lines, 'request_wait_duration_seconds', 'Time that requests waited.', 'histogram');
  for (const { labels, waited, gaveUp } of series) {
    const name = `${START}request_wait_duration_seconds`;
    waited.print(lines, name, `execute="true",${labels}`);
    gaveUp.print(lines, name, `execute="false",${labels}`);
  }
  for (const { name, help, of } of HISTOGRAMS) {
    head(lines, name, help, 'histogram');
    // watches are over for fairness when they have begun
    const type = of === 'executed' ? ',type="regular"' : '';
    for (const one of series) one[of].print(lines, START + name, one.labels + type);
  }
  printLevels(lines, levels);
}

function printLevels(lines: string[], levels: Levels<unknown>): void {
  const all = levels.all();
  const gauge = (name: string, help: string, value: (at: (typeof all)[number]) => number): void => {
    head(lines, name, help, 'gauge');
    for (const level of all) {
      lines.push(`${START}${name}{priority_level="${level.name}"} ${value(level)}`);
    }
  };
  gauge('nominal_limit_seats', 'Seats by the shares of the level.', (at) => at.nominalSeats);
  gauge('lower_limit_seats', 'Seats that are never lent.', (at) => at.lowerSeats);
  gauge('upper_limit_seats', 'Seats with all that may be borrowed.', (at) => at.upperSeats);
  gauge('current_limit_seats', 'Seats for the present ten seconds.', (at) => at.seats);
  gauge('demand_seats_high_watermark', 'Most seats that could be used.', (at) => {
    return at.demand.highWatermark;
  });
  gauge('demand_seats_average', 'Seats that could be used, on average.', (at) => at.demand.average);
  gauge('demand_seats_stdev', 'Deviation of the same.', (at) => at.demand.deviation);
  gauge('demand_seats_smoothed', 'Demand that falls slowly.', (at) => at.demand.smoothed);
  gauge('target_seats', 'Seats that the level would like.', ({ demand, lowerSeats }) =>
    Math.max(lowerSeats, demand.smoothed),
  );
  head(lines, 'seat_fair_frac', 'Part of its target that each level got.', 'gauge');
  lines.push(`${START}seat_fair_frac ${levels.fairFraction}`);
}

function head(lines: string[], name: string, help: string, type: string): void {
  lines.push(`# HELP ${START}${name} ${help}`, `# TYPE ${START}${name} ${type}`);
}
