/** What priority and fairness counts, under upstream's names (`apiserver_flowcontrol_*`). */
import { ownMember } from '@megaplane/base/members';
import { printFamily } from '../metrics/metric-families.ts';
import { FLOW_FAMILIES } from './flow-families.ts';
import type { Levels } from './levels.ts';
import type { PriorityLevel, Refusal } from './priority-level.ts';
import { printBuckets, TimedRatio } from './timed-ratio.ts';

const START = 'apiserver_flowcontrol_';
const SECONDS = [0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30] as const;
const LENGTHS = [0, 10, 25, 50, 100, 250, 500, 1000] as const;
const SEATS = [1, 2, 4, 8, 16, 32, 64, 100] as const;
const WATCHES = [0, 1, 10, 100, 1000, 10_000] as const;
const REQUESTS = [
  0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1,
] as const;

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

  /** Nothing where nothing was observed. */
  print(lines: string[], name: string, labels: string): void {
    const total = this.#counts.reduce((sum, one) => sum + one, 0);
    if (total === 0) return;
    printBuckets(lines, name, labels, { bounds: this.#bounds, counts: this.#counts });
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
  /** Something came that could have waited. */
  hasQueued = false;
  /** Times that the next request was wider than the seats that were left. */
  unaccommodated = 0;
  readonly rejected: Map<Refusal, number> = new Map();
  readonly waited: FlowHistogram = new FlowHistogram(SECONDS);
  readonly gaveUp: FlowHistogram = new FlowHistogram(SECONDS);
  readonly executed: FlowHistogram = new FlowHistogram(SECONDS);
  /** Watches, until they have begun. */
  readonly begun: FlowHistogram = new FlowHistogram(SECONDS);
  readonly queueLengths: FlowHistogram = new FlowHistogram(LENGTHS);
  readonly seats: FlowHistogram = new FlowHistogram(SEATS);
  readonly watches: FlowHistogram = new FlowHistogram(WATCHES);

  constructor(level: string, schema: string) {
    this.labels = `flow_schema="${schema}",priority_level="${level}"`;
  }

  /** Upstream puts each request into its queue, also where its turn comes at once. */
  enqueueAlone(): void {
    this.hasQueued = true;
    this.queueLengths.observe(1);
  }

  reject(reason: Refusal): void {
    this.rejected.set(reason, (this.rejected.get(reason) ?? 0) + 1);
  }
}

/** Requests that read and that write, as parts of what the server's levels have room for. */
export class RequestKinds {
  readonly #ratios: Readonly<Record<'mutating' | 'readOnly', KindUse>>;

  constructor(nowMs: number) {
    this.#ratios = { mutating: new KindUse(nowMs), readOnly: new KindUse(nowMs) };
  }

  of(verb: string): KindUse {
    const isReading = verb === 'get' || verb === 'list' || verb === 'watch';
    return isReading ? this.#ratios.readOnly : this.#ratios.mutating;
  }

  limitTo(executing: number, waiting: number, nowMs: number): void {
    for (const use of Object.values(this.#ratios)) {
      use.executing.limitTo(executing, nowMs);
      use.waiting.limitTo(waiting, nowMs);
    }
  }

  /** About once a second. */
  endSecond(): void {
    for (const use of Object.values(this.#ratios)) use.endSecond();
  }

  printQueued(lines: string[]): void {
    const name = 'apiserver_current_inqueue_requests';
    printFamily(lines, name);
    for (const [kind, { lastPeak }] of Object.entries(this.#ratios)) {
      lines.push(`${name}{request_kind="${kind}"} ${lastPeak}`);
    }
  }

  print(lines: string[], name: string, nowMs: number): void {
    for (const phase of ['executing', 'waiting'] as const) {
      for (const [kind, use] of Object.entries(this.#ratios)) {
        use[phase].print(lines, name, `phase="${phase}",request_kind="${kind}"`, nowMs);
      }
    }
  }
}

class KindUse {
  readonly executing: TimedRatio;
  readonly waiting: TimedRatio;
  /** The most that waited at a time, in this second and in the one before. */
  #peak = 0;
  lastPeak = 0;

  constructor(nowMs: number) {
    this.executing = new TimedRatio(REQUESTS, nowMs);
    this.waiting = new TimedRatio(REQUESTS, nowMs);
  }

  enqueue(nowMs: number): void {
    this.waiting.add(1, nowMs);
    this.#peak = Math.max(this.#peak, this.waiting.value);
  }

  endSecond(): void {
    this.lastPeak = this.#peak;
    this.#peak = this.waiting.value;
  }
}

type Printer = (lines: string[], name: string) => void;

/** All lines of all series and levels, with upstream's explanations. */
export function printFlows(
  lines: string[],
  series: readonly FlowSeries[],
  levels: Levels<unknown>,
  kinds: RequestKinds,
  nowMs: number,
): void {
  const printers: Readonly<Record<string, Printer>> = {
    ...ofSeries(series),
    ...ofLevels(levels, nowMs),
    read_vs_write_current_requests: (out, name) => kinds.print(out, name, nowMs),
  };
  for (const [short, type, help] of FLOW_FAMILIES) {
    const own: string[] = [];
    const name = START + short;
    ownMember(printers, short)?.(own, name);
    if (own.length === 0) continue;
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
    for (const line of own) lines.push(line);
  }
}

function ofSeries(series: readonly FlowSeries[]): Readonly<Record<string, Printer>> {
  const value =
    (isShown: (one: FlowSeries) => boolean, of: (one: FlowSeries) => number): Printer =>
    (lines, name) => {
      for (const one of series) {
        if (isShown(one)) lines.push(`${name}{${one.labels}} ${of(one)}`);
      }
    };
  const histogram =
    (of: (one: FlowSeries) => FlowHistogram): Printer =>
    (lines, name) => {
      for (const one of series) of(one).print(lines, name, one.labels);
    };
  const hasRun = (one: FlowSeries): boolean => one.dispatched > 0;
  const hasQueued = (one: FlowSeries): boolean => one.hasQueued;
  return {
    current_executing_requests: value(hasRun, (one) => one.executing),
    current_executing_seats: value(hasRun, (one) => one.seatsInUse),
    current_inqueue_requests: value(hasQueued, (one) => one.waiting),
    current_inqueue_seats: value(hasQueued, (one) => one.seatsWaiting),
    dispatched_requests_total: value(hasRun, (one) => one.dispatched),
    rejected_requests_total: (lines, name) => {
      for (const { labels, rejected } of series) {
        for (const [reason, count] of rejected) {
          lines.push(`${name}{${labels},reason="${reason}"} ${count}`);
        }
      }
    },
    request_dispatch_no_accommodation_total: value(
      (one) => one.unaccommodated > 0,
      (one) => one.unaccommodated,
    ),
    request_execution_seconds: (lines, name) => {
      for (const { labels, executed, begun } of series) {
        executed.print(lines, name, `${labels},type="regular"`);
        begun.print(lines, name, `${labels},type="watch"`);
      }
    },
    request_queue_length_after_enqueue: histogram((one) => one.queueLengths),
    request_wait_duration_seconds: (lines, name) => {
      for (const { labels, waited, gaveUp } of series) {
        gaveUp.print(lines, name, `execute="false",${labels}`);
        waited.print(lines, name, `execute="true",${labels}`);
      }
    },
    watch_count_samples: histogram((one) => one.watches),
    work_estimated_seats: histogram((one) => one.seats),
  };
}

function ofLevels(levels: Levels<unknown>, nowMs: number): Readonly<Record<string, Printer>> {
  const all = levels.all().toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const queued = all.filter(({ queues }) => queues.hasStarted);
  type Level = PriorityLevel<unknown>;
  const gauge =
    (of: (level: Level) => number, shown: readonly Level[] = all): Printer =>
    (lines, name) => {
      for (const level of shown) {
        lines.push(`${name}{priority_level="${level.name}"} ${of(level)}`);
      }
    };
  const ratio =
    (phase: string, of: (level: Level) => TimedRatio): Printer =>
    (lines, name) => {
      for (const level of all) {
        of(level).print(lines, name, `${phase}priority_level="${level.name}"`, nowMs);
      }
    };
  const bounds =
    (of: (level: Level) => readonly [number, number]): Printer =>
    (lines, name) => {
      for (const level of queued) {
        const [min, max] = of(level);
        lines.push(`${name}{bound="max",priority_level="${level.name}"} ${max / 1000}`);
        lines.push(`${name}{bound="min",priority_level="${level.name}"} ${min / 1000}`);
      }
    };
  return {
    current_limit_seats: gauge((at) => at.seats),
    current_r: gauge((at) => at.queues.meter / 1000),
    demand_seats: ratio('', ({ use }) => use.demand),
    demand_seats_average: gauge(({ demand }) => demand.average),
    demand_seats_high_watermark: gauge(({ demand }) => demand.highWatermark),
    demand_seats_smoothed: gauge(({ demand }) => demand.smoothed),
    demand_seats_stdev: gauge(({ demand }) => demand.deviation),
    dispatch_r: gauge(({ queues }) => queues.startMeter / 1000, queued),
    latest_s: gauge(({ queues }) => queues.startR / 1000, queued),
    lower_limit_seats: gauge((at) => at.lowerSeats),
    next_discounted_s_bounds: bounds(({ queues }) => queues.nextBounds(true)),
    next_s_bounds: bounds(({ queues }) => queues.nextBounds(false)),
    nominal_limit_seats: gauge((at) => at.nominalSeats),
    priority_level_request_utilization: (lines, name) => {
      ratio('phase="executing",', ({ use }) => use.executing)(lines, name);
      ratio('phase="waiting",', ({ use }) => use.waiting)(lines, name);
    },
    priority_level_seat_utilization: ratio('phase="executing",', ({ use }) => use.seats),
    seat_fair_frac: (lines, name) => lines.push(`${name} ${levels.fairFraction}`),
    target_seats: gauge((at) => at.targetSeats),
    upper_limit_seats: gauge((at) => at.upperSeats),
  };
}
