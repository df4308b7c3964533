/**
 * What work queues tell of themselves, under the names that kube-controller-manager gives them, so
 * that dashboards and alerts carry over. Time is an argument.
 */

import { edgeText } from '@megaplane/client/exposition';

/** Upper bounds of the histograms in seconds: 10 ns to 1,000 s, each ten times the last. */
const BOUNDS: number[] = [];
// Multiplied as upstream does it: the labels show where that is not quite a power of ten.
for (let bound = 10e-9; BOUNDS.length < 12; bound *= 10) BOUNDS.push(bound);
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
  readonly name: string;
  readonly #queued = new Durations();
  readonly #worked = new Durations();
  readonly #since: Map<unknown, number> = new Map();
  readonly #active: Map<unknown, number> = new Map();
  #adds = 0;
  #retries = 0;
  /** Keys ready to be worked on; told by the queue. */
  depth: () => number = () => 0;

  constructor(name: string) {
    this.name = name;
  }

  added(key: unknown, nowMs: number): void {
    this.#adds++;
    if (this.#since.size < TIMED_KEYS_MAX && !this.#since.has(key)) this.#since.set(key, nowMs);
  }

  began(key: unknown, nowMs: number): void {
    const since = this.#since.get(key);
    if (since !== undefined) this.#queued.add((nowMs - since) / 1000);
    this.#since.delete(key);
    this.#active.set(key, nowMs);
  }

  ended(key: unknown, isRetry: boolean, nowMs: number): void {
    this.#worked.add((nowMs - (this.#active.get(key) ?? nowMs)) / 1000);
    this.#active.delete(key);
    if (isRetry) this.#retries++;
  }

  /** Values by metric; histograms as their lines. */
  read(nowMs: number): ReadonlyMap<string, readonly string[]> {
    const label = `name="${this.name}"`;
    const ages = [...this.#active.values()].map((since) => (nowMs - since) / 1000);
    const one = (metric: string, value: number): [string, string[]] => [
      metric,
      [`${metric}{${label}} ${value}`],
    ];
    const many = (metric: string, durations: Durations): [string, string[]] => [
      metric,
      durations.lines(metric, label),
    ];
    return new Map([
      one('workqueue_adds_total', this.#adds),
      one('workqueue_depth', this.depth()),
      one('workqueue_longest_running_processor_seconds', Math.max(0, ...ages)),
      many('workqueue_queue_duration_seconds', this.#queued),
      one('workqueue_retries_total', this.#retries),
      one(
        'workqueue_unfinished_work_seconds',
        ages.reduce((sum, age) => sum + age, 0),
      ),
      many('workqueue_work_duration_seconds', this.#worked),
    ]);
  }
}

/** All queues of a process. */
export class QueueBoard {
  readonly #queues: QueueMetrics[] = [];

  /** Begins to count for a queue; two of one name are told together with a number. */
  queue(name: string): QueueMetrics {
    const others = this.#queues.filter((one) => one.name.replace(/_\d+$/, '') === name).length;
    const queue = new QueueMetrics(others === 0 ? name : `${name}_${others + 1}`);
    this.#queues.push(queue);
    return queue;
  }

  /** In Prometheus' text format, metric by metric. */
  lines(nowMs: number): string[] {
    const read = this.#queues.map((queue) => queue.read(nowMs));
    const metrics = [...(read[0]?.keys() ?? [])];
    return metrics.flatMap((metric) => {
      const isHistogram = metric.endsWith('_duration_seconds');
      const plain = metric.endsWith('_total') ? 'counter' : 'gauge';
      const type = `# TYPE ${metric} ${isHistogram ? 'histogram' : plain}`;
      return [type, ...read.flatMap((one) => one.get(metric) ?? [])];
    });
  }
}
