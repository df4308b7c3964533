/** Times of plugins and extension points, under upstream's names and with its buckets. */
import { BucketHistogram, exponential } from '@megaplane/client/bucket-histogram';
import type { CycleMeter, StepStatus } from '../framework/cycle-meter.ts';
import type { Exposition } from '@megaplane/client/exposition';

/** Of the cycles so many, in percent, have their plugins timed one by one, as upstream. */
const SAMPLED_PERCENT = 10;

const POINT_EDGES: readonly number[] = exponential(0.0001, 12);
const PLUGIN_EDGES: readonly number[] = exponential(0.00001, 20, 1.5);

export class PluginMetrics implements CycleMeter {
  readonly #seconds: () => number;
  readonly #points = new Map<string, BucketHistogram>();
  readonly #plugins = new Map<string, BucketHistogram>();
  readonly #evaluations = new Map<string, number>();
  readonly #hints = new Map<string, BucketHistogram>();
  readonly #events = new Map<string, BucketHistogram>();
  #cycles = 0;

  /** `seconds` since any fixed moment, finely. */
  constructor(seconds: () => number) {
    this.#seconds = seconds;
  }

  now(): number {
    return this.#seconds();
  }

  samples(): boolean {
    return this.#cycles++ % (100 / SAMPLED_PERCENT) === 0;
  }

  pointEnded(point: string, status: StepStatus, profile: string, since: number): void {
    this.recordPoint(point, status, profile, this.#seconds() - since);
  }

  recordPoint(point: string, status: StepStatus, profile: string, seconds: number): void {
    histogramOf(this.#points, `${point} ${status} ${profile}`, POINT_EDGES).record(seconds);
  }

  pluginEnded(plugin: string, point: string, status: StepStatus, since: number): void {
    const key = `${plugin} ${point} ${status}`;
    histogramOf(this.#plugins, key, PLUGIN_EDGES).record(this.#seconds() - since);
  }

  evaluated(plugin: string, point: string, profile: string, times: number): void {
    const key = `${plugin} ${point} ${profile}`;
    this.#evaluations.set(key, (this.#evaluations.get(key) ?? 0) + times);
  }

  hinted(plugin: string, event: string, mayHelp: boolean, since: number): void {
    const key = `${plugin} ${event} ${mayHelp ? 'Queue' : 'QueueSkip'}`;
    histogramOf(this.#hints, key, PLUGIN_EDGES).record(this.#seconds() - since);
  }

  /** What the API server told of was taken in. */
  handled(event: string, since: number): void {
    histogramOf(this.#events, event, POINT_EDGES).record(this.#seconds() - since);
  }

  write(out: Exposition): void {
    const prefix = 'scheduler';
    const pointText = 'All plugins of an extension point.';
    out.family(`${prefix}_framework_extension_point_duration_seconds`, 'histogram', pointText);
    for (const [key, histogram] of this.#points) {
      const [extension_point = '', status = '', profile = ''] = key.split(' ');
      out.histogram({ extension_point, status, profile }, histogram);
    }
    const pluginText = 'One plugin at an extension point, in one cycle of ten.';
    out.family(`${prefix}_plugin_execution_duration_seconds`, 'histogram', pluginText);
    for (const [key, histogram] of this.#plugins) {
      const [plugin = '', extension_point = '', status = ''] = key.split(' ');
      out.histogram({ plugin, extension_point, status }, histogram);
    }
    const hintText = 'One plugin, asked whether an event may help a pod.';
    out.family(`${prefix}_queueing_hint_execution_duration_seconds`, 'histogram', hintText);
    for (const [key, histogram] of this.#hints) {
      const [plugin = '', event = '', hint = ''] = key.split(' ');
      out.histogram({ plugin, event, hint }, histogram);
    }
    out.family(`${prefix}_event_handling_duration_seconds`, 'histogram', 'Changes, taken in.');
    for (const [event, histogram] of this.#events) out.histogram({ event }, histogram);
    out.family(`${prefix}_plugin_evaluation_total`, 'counter', 'Plugins that had a say.');
    for (const [key, count] of this.#evaluations) {
      const [plugin = '', extension_point = '', profile = ''] = key.split(' ');
      out.value({ plugin, extension_point, profile }, count);
    }
  }
}

/** The histogram of a key, a new one if there is none. */
export function histogramOf(
  histograms: Map<string, BucketHistogram>,
  key: string,
  edges: readonly number[],
): BucketHistogram {
  let histogram = histograms.get(key);
  if (histogram === undefined) histograms.set(key, (histogram = new BucketHistogram(edges)));
  return histogram;
}
