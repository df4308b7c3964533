/**
 * What work queues tell of themselves, under the names that kube-controller-manager gives them, so
 * that dashboards and alerts carry over. Time is an argument.
 */

import { assert } from '@megaplane/base/assert';
import { edgeText } from '@megaplane/base/text-format';

/** Upper bounds of the histograms in seconds: 10 ns to 10 s, each ten times the last. */
const BOUNDS: readonly number[] = boundsFrom(10e-9, 10);

/** Multiplied as upstream does it: the labels show where that is not quite a power of ten. */
function boundsFrom(first: number, count: number): number[] {
  const bounds = [first];
  while (bounds.length < count) bounds.push((bounds.at(-1) ?? 0) * 10);
  return bounds;
}

/** Keys whose wait is timed at once; those beyond in a longer queue are not. */
const TIMED_KEYS_MAX = 10_000;

class Durations {
  readonly #counts = new Float64Array(BOUNDS.length + 1);
  #sum = 0;

  add(seconds: number): void {
    const at = BOUNDS.findIndex((bound) => seconds <= bound);
    const index = at < 0 ? BOUNDS.length : at;
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.#sum += seconds;
  }

  addAll(others: Durations): void {
    others.#counts.forEach((count, i) => {
      this.#counts[i] = (this.#counts[i] ?? 0) + count;
    });
    this.#sum += others.#sum;
  }

  lines(metric: string, label: string): string[] {
    let total = 0;
    const lines = BOUNDS.map((bound, i) => {
      total += this.#counts[i] ?? 0;
      return `${metric}_bucket{${label},le="${edgeText(bound)}"} ${total}`;
    });
    total += this.#counts[BOUNDS.length] ?? 0;
    lines.push(`${metric}_bucket{${label},le="+Inf"} ${total}`);
    return [...lines, `${metric}_sum{${label}} ${this.#sum}`, `${metric}_count{${label}} ${total}`];
  }
}

/** One queue. `K` is compared by identity, as in the queue itself. */
export class QueueMetrics {
  readonly #queued = new Durations();
  readonly #worked = new Durations();
  readonly #since: Map<unknown, number> = new Map();
  readonly #active: Map<unknown, number> = new Map();
  #adds = 0;
  #retries = 0;
  /** Keys ready to be worked on; told by the queue. */
  depth: () => number = () => 0;

  added(key: unknown, nowMs: number): void {
    this.#adds++;
    if (this.#since.size < TIMED_KEYS_MAX && !this.#since.has(key)) this.#since.set(key, nowMs);
  }

  began(key: unknown, nowMs: number): void {
    const since = this.#since.get(key);
    if (since !== undefined) this.#queued.add((nowMs - since) / 1000);
    this.#since.delete(key);
    assert(!this.#active.has(key), 'a key is worked on by one at a time');
    this.#active.set(key, nowMs);
  }

  ended(key: unknown, isRetry: boolean, nowMs: number): void {
    const sinceMs = this.#active.get(key);
    assert(sinceMs !== undefined, 'what ends has begun');
    this.#worked.add((nowMs - sinceMs) / 1000);
    this.#active.delete(key);
    if (isRetry) this.#retries++;
  }

  read(nowMs: number): QueueReading {
    const ages = [...this.#active.values()].map((since) => (nowMs - since) / 1000);
    return {
      adds: this.#adds,
      depth: this.depth(),
      retries: this.#retries,
      longestSeconds: Math.max(0, ...ages),
      unfinishedSeconds: ages.reduce((sum, age) => sum + age, 0),
      queued: this.#queued,
      worked: this.#worked,
    };
  }
}

interface QueueReading {
  readonly adds: number;
  readonly depth: number;
  readonly retries: number;
  readonly longestSeconds: number;
  readonly unfinishedSeconds: number;
  readonly queued: Durations;
  readonly worked: Durations;
}

/** Lines by metric of queues that share a name: their sum, but for the longest. */
function linesOf(name: string, readings: readonly QueueReading[]): Map<string, readonly string[]> {
  const label = `name="${name}"`;
  const sum = (value: (one: QueueReading) => number): number =>
    readings.reduce((all, one) => all + value(one), 0);
  const one = (metric: string, value: number): [string, string[]] => [
    metric,
    [`${metric}{${label}} ${value}`],
  ];
  const many = (metric: string, value: (one: QueueReading) => Durations): [string, string[]] => {
    const all = new Durations();
    for (const reading of readings) all.addAll(value(reading));
    return [metric, all.lines(metric, label)];
  };
  const longest = Math.max(...readings.map((reading) => reading.longestSeconds));
  return new Map([
    one(
      'workqueue_adds_total',
      sum((reading) => reading.adds),
    ),
    one(
      'workqueue_depth',
      sum((reading) => reading.depth),
    ),
    one('workqueue_longest_running_processor_seconds', longest),
    many('workqueue_queue_duration_seconds', (reading) => reading.queued),
    one(
      'workqueue_retries_total',
      sum((reading) => reading.retries),
    ),
    one(
      'workqueue_unfinished_work_seconds',
      sum((reading) => reading.unfinishedSeconds),
    ),
    many('workqueue_work_duration_seconds', (reading) => reading.worked),
  ]);
}

/** All queues of a process. */
export class QueueBoard {
  readonly #queues: Map<string, QueueMetrics[]> = new Map();

  /** Begins to count for a queue; those of one name are told together, as upstream does. */
  queue(name: string): QueueMetrics {
    const queue = new QueueMetrics();
    const others = this.#queues.get(name);
    if (others === undefined) this.#queues.set(name, [queue]);
    else others.push(queue);
    return queue;
  }

  /** In Prometheus' text format, metric by metric. */
  lines(nowMs: number): string[] {
    const read = [...this.#queues].map(([name, queues]) =>
      linesOf(
        name,
        queues.map((queue) => queue.read(nowMs)),
      ),
    );
    const metrics = [...(read[0]?.keys() ?? [])];
    return metrics.flatMap((metric) => {
      const isHistogram = metric.endsWith('_duration_seconds');
      const plain = metric.endsWith('_total') ? 'counter' : 'gauge';
      const type = `# TYPE ${metric} ${isHistogram ? 'histogram' : plain}`;
      return [type, ...read.flatMap((one) => one.get(metric) ?? [])];
    });
  }
}
