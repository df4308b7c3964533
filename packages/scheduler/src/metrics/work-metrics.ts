/** What is counted of work that takes longer than a decision, or that is about many pods. */
import { BucketHistogram, exponential } from '@megaplane/client/bucket-histogram';
import type { Exposition } from '@megaplane/client/exposition';
import { histogramOf } from './plugin-metrics.ts';

export type GroupResult = 'scheduled' | 'unschedulable' | 'waiting_on_preemption' | 'error';

/** What became of the pods of a group that were decided about. */
export interface GroupTry {
  readonly result: GroupResult;
  readonly profile: string;
}

/** How the wait for devices that are made ready on demand ended. */
export type DeviceWait = 'success' | 'failure' | 'timeout' | 'error';

const GROUP_EDGES: readonly number[] = exponential(0.001, 15);
const EVICTION_EDGES: readonly number[] = exponential(0.01, 20);
const DEVICE_EDGES: readonly number[] = exponential(0.1, 14);

export class WorkMetrics {
  readonly #groups = new Map<string, BucketHistogram>();
  readonly #groupSeconds = new BucketHistogram(GROUP_EDGES);
  readonly #evictions = new Map<string, BucketHistogram>();
  readonly #claims = new Map<string, number>();
  readonly #deviceWaits = new Map<string, BucketHistogram>();
  readonly #deviceUses = new Map<string, number>();

  /** The pods of a group were decided about in one go. */
  groupTried({ result, profile }: GroupTry, seconds: number): void {
    histogramOf(this.#groups, `${result} ${profile}`, GROUP_EDGES).record(seconds);
    this.#groupSeconds.record(seconds);
  }

  /** All victims of a preemptor were asked to go, or one could not be. */
  evicted(isDone: boolean, seconds: number): void {
    histogramOf(this.#evictions, isDone ? 'success' : 'error', EVICTION_EDGES).record(seconds);
  }

  /** A claim for resources that devices stand for was to be made. */
  claimMade(isDone: boolean): void {
    add(this.#claims, isDone ? 'success' : 'failure');
  }

  /** A pod has waited for its devices; `drivers` of all of them, `slow` those with conditions. */
  devicesAwaited(
    profile: string,
    drivers: { readonly all: readonly string[]; readonly slow: readonly string[] },
    status: DeviceWait,
    seconds: number,
  ): void {
    for (const driver of drivers.all) {
      const key = `${profile} ${driver} ${status}`;
      histogramOf(this.#deviceWaits, key, DEVICE_EDGES).record(seconds);
    }
    for (const driver of drivers.slow) add(this.#deviceUses, `${profile} ${driver} ${status}`);
  }

  write(out: Exposition): void {
    const tried = 'Decisions about pod groups.';
    out.family('scheduler_podgroup_schedule_attempts_total', 'counter', tried);
    for (const [key, { count }] of this.#groups) out.value(resultLabels(key), count);
    const took = 'From the decision about a pod group to the first of its bindings.';
    out.family('scheduler_podgroup_scheduling_attempt_duration_seconds', 'histogram', took);
    for (const [key, histogram] of this.#groups) out.histogram(resultLabels(key), histogram);
    const alone = 'Decision about a pod group.';
    out.family('scheduler_podgroup_scheduling_algorithm_duration_seconds', 'histogram', alone);
    out.histogram({}, this.#groupSeconds);
    out.family(
      'scheduler_preemption_goroutines_execution_total',
      'counter',
      'Rounds of evictions.',
    );
    for (const [result, { count }] of this.#evictions) out.value({ result }, count);
    const asked = 'Until all victims of a pod were asked to go.';
    out.family('scheduler_preemption_goroutines_duration_seconds', 'histogram', asked);
    for (const [result, histogram] of this.#evictions) out.histogram({ result }, histogram);
    out.family('scheduler_resourceclaim_creates_total', 'counter', 'Claims made for pods.');
    for (const [status, count] of this.#claims) out.value({ status }, count);
    const used = 'Devices that were made ready on demand.';
    out.family('scheduler_dra_bindingconditions_allocations_total', 'counter', used);
    for (const [key, count] of this.#deviceUses) out.value(deviceLabels(key), count);
    const awaited = 'Waits for devices to be made ready.';
    out.family('scheduler_dra_bindingconditions_wait_duration_seconds', 'histogram', awaited);
    for (const [key, histogram] of this.#deviceWaits) out.histogram(deviceLabels(key), histogram);
  }
}

function add(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function resultLabels(key: string): Readonly<Record<string, string>> {
  const [result = '', profile = ''] = key.split(' ');
  return { result, profile };
}

function deviceLabels(key: string): Readonly<Record<string, string>> {
  const [profile = '', driver = '', status = ''] = key.split(' ');
  return { profile, driver, status };
}
