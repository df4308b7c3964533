/** What the scheduler counts, under upstream's names and in Prometheus' text format. */
import { BucketHistogram, exponential } from '@megaplane/client/bucket-histogram';
import { DEFAULT_GATES, type GateStates } from '../../config/schema/feature-gates.ts';
import { Exposition, type Labels } from '@megaplane/client/exposition';
import { PluginMetrics } from '../plugin-metrics.ts';
import { PLACE } from '../../cache/pod-table.ts';
import type { SchedulerCore } from '../../core/scheduler-core.ts';
import { WorkMetrics } from '../work-metrics.ts';

export type AttemptResult = 'scheduled' | 'unschedulable' | 'error';

/** Tries of a pod that are told apart in the SLI; more count as this many and over. */
const ATTEMPTS_SHOWN_MAX = 15;

export class SchedulerMetrics {
  readonly #attempts = new Map<string, number>();
  readonly #attemptSeconds = new Map<string, BucketHistogram>();
  readonly #algorithmSeconds = new BucketHistogram(exponential(0.001, 15));
  readonly #sliSeconds = new Map<string, BucketHistogram>();
  readonly #podAttempts = new BucketHistogram([1, 2, 4, 8, 16]);
  readonly #victims = new BucketHistogram(exponential(1, 7));
  /** Failed tries for which room was looked for, as upstream counts them. */
  preemptions = 0;
  bindFailures = 0;
  /** Pods that were bound after they had waited too long for an event. */
  boundAfterFlush = 0;
  /** Whether this process leads; null where nobody is elected. */
  leads: boolean | null = null;
  /** What is told of feature gates. */
  gates: GateStates = DEFAULT_GATES;
  readonly plugins: PluginMetrics;
  readonly work: WorkMetrics = new WorkMetrics();

  /** `seconds` since any fixed moment, finely. */
  constructor(seconds: () => number) {
    this.plugins = new PluginMetrics(seconds);
  }

  /** A try is over, its binding included. */
  attempted(result: AttemptResult, profile: string, seconds: number): void {
    const key = `${result} ${profile}`;
    this.#attempts.set(key, (this.#attempts.get(key) ?? 0) + 1);
    let histogram = this.#attemptSeconds.get(key);
    if (histogram === undefined) {
      histogram = new BucketHistogram(exponential(0.001, 15));
      this.#attemptSeconds.set(key, histogram);
    }
    histogram.record(seconds);
  }

  /** A node was found within so many seconds. */
  decided(seconds: number): void {
    this.#algorithmSeconds.record(seconds);
  }

  /** A pod was bound; `seconds` since it could first be tried. */
  scheduled(tries: number, seconds: number): void {
    this.#podAttempts.record(tries);
    const shown = tries >= ATTEMPTS_SHOWN_MAX ? `${ATTEMPTS_SHOWN_MAX}+` : String(tries);
    let histogram = this.#sliSeconds.get(shown);
    if (histogram === undefined) {
      histogram = new BucketHistogram(exponential(0.01, 20));
      this.#sliSeconds.set(shown, histogram);
    }
    histogram.record(seconds);
  }

  preempted(victims: number): void {
    this.#victims.record(victims);
  }

  /** How many tries ended in a way, over all profiles. */
  attemptsOf(result: AttemptResult): number {
    let sum = 0;
    for (const [key, count] of this.#attempts) if (key.startsWith(`${result} `)) sum += count;
    return sum;
  }

  text(core: SchedulerCore, eventsDropped = 0): string {
    const out = new Exposition();
    const { queue } = core;
    out.family('scheduler_schedule_attempts_total', 'counter', 'Tries to schedule pods.');
    for (const [key, count] of this.#attempts) out.value(attemptLabels(key), count);
    out.family('scheduler_scheduling_attempt_duration_seconds', 'histogram', 'Decision and bind.');
    for (const [key, histogram] of this.#attemptSeconds) {
      out.histogram(attemptLabels(key), histogram);
    }
    out.family('scheduler_scheduling_algorithm_duration_seconds', 'histogram', 'Decision alone.');
    out.histogram({}, this.#algorithmSeconds);
    out.family('scheduler_pod_scheduling_sli_duration_seconds', 'histogram', 'First try to bound.');
    for (const [attempts, histogram] of this.#sliSeconds) out.histogram({ attempts }, histogram);
    out.family('scheduler_pod_scheduling_attempts', 'histogram', 'Tries until a pod was bound.');
    out.histogram({}, this.#podAttempts);
    out.family('scheduler_pending_pods', 'gauge', 'Pods by queue.');
    for (const [name, count] of Object.entries(queue.counts)) out.value({ queue: name }, count);
    out.family('scheduler_queue_incoming_pods_total', 'counter', 'Pods put into queues.');
    for (const [event, counts] of queue.incoming) {
      for (const [name, count] of Object.entries(counts)) {
        if (count > 0) out.value({ queue: name, event }, count);
      }
    }
    const afterFlush = 'scheduler_pod_scheduled_after_flush_total';
    out.family(afterFlush, 'counter', 'Pods bound after they had waited too long for an event.');
    out.value({}, this.boundAfterFlush);
    out.family('scheduler_preemption_attempts_total', 'counter', 'Preemptions.');
    out.value({}, this.preemptions);
    out.family(
      'scheduler_unschedulable_pods',
      'gauge',
      'Waiting pods by the plugins that said no.',
    );
    for (const [key, count] of unschedulable(core)) {
      const [plugin = '', profile = ''] = key.split(' ');
      out.value({ plugin, profile }, count);
    }
    out.family('scheduler_preemption_victims', 'histogram', 'Pods evicted at a time.');
    out.histogram({}, this.#victims);
    this.plugins.write(out);
    this.work.write(out);
    out.family('scheduler_inflight_events', 'gauge', 'Pods that are tried, until they are bound.');
    out.value({ event: 'PodPopped' }, core.assumed);
    out.family('scheduler_goroutines', 'gauge', 'Work under way.');
    out.value({ operation: 'binding' }, core.assumed);
    out.family('scheduler_cache_size', 'gauge', 'What the cache holds.');
    out.value({ type: 'nodes' }, core.nodes.count);
    out.value({ type: 'pods' }, core.pods.placed);
    out.value({ type: 'assumed_pods' }, core.assumed);
    if (this.leads !== null) {
      out.family('leader_election_master_status', 'gauge', 'Whether this process leads.');
      out.value({ name: 'kube-scheduler' }, this.leads ? 1 : 0);
    }
    this.#writeOwn(out, core, eventsDropped);
    return out.toString();
  }

  /** Gates, and what only this scheduler counts. */
  #writeOwn(out: Exposition, core: SchedulerCore, eventsDropped: number): void {
    const { placement } = core;
    out.family('kubernetes_feature_enabled', 'gauge', 'Feature gates by name and stage.');
    for (const { gate, isOn } of this.gates) {
      out.value({ name: gate.name, stage: gate.stage }, isOn ? 1 : 0);
    }
    out.family(
      'megaplane_scheduler_decisions_total',
      'counter',
      'Decisions by how they were made.',
    );
    const { indexed, searched, scanned, evaluated } = placement.metrics;
    for (const [way, count] of Object.entries({ indexed, searched, scanned, evaluated })) {
      out.value({ way }, count);
    }
    const { checked, mismatched } = placement.metrics;
    out.family('megaplane_scheduler_checked_total', 'counter', 'Decisions compared with the rule.');
    out.value({}, checked);
    out.family(
      'megaplane_scheduler_mismatched_total',
      'counter',
      'Compared decisions that differed.',
    );
    out.value({}, mismatched);
    out.family('megaplane_scheduler_indexes_built_total', 'counter', 'Ranked indexes of classes.');
    out.value({}, placement.indexes.built);
    out.family('megaplane_scheduler_table_bytes', 'gauge', 'Memory of tables and indexes.');
    out.value({}, core.nodes.memoryBytes + core.pods.memoryBytes + placement.indexBytes);
    out.family('megaplane_scheduler_bind_failures_total', 'counter', 'Bindings not taken.');
    out.value({}, this.bindFailures);
    out.family('megaplane_scheduler_events_dropped_total', 'counter', 'Events over the rate.');
    out.value({}, eventsDropped);
  }
}

/** Waiting pods by `plugin profile`; a pod counts for each plugin that rejected it. */
function unschedulable(core: SchedulerCore): ReadonlyMap<string, number> {
  const { queue, identities, pods, gatekeeper } = core;
  const counts = new Map<string, number>();
  const count = (plugin: string, schedulerName: string): void => {
    const key = `${plugin} ${schedulerName}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  };
  for (const [id, rejecters] of queue.waiting.rejections()) {
    const { schedulerName } = identities.classes.get(pods.podClass.get(id));
    for (const plugin of rejecters) count(plugin, schedulerName);
  }
  for (let id = 0, left = queue.counts.gated; left > 0 && id < pods.rowEnd; id++) {
    if (pods.place.get(id) !== PLACE.gated) continue;
    left--;
    const podClass = identities.classes.get(pods.podClass.get(id));
    const plugin = gatekeeper.holderOf(id, podClass);
    if (plugin !== '') count(plugin, podClass.schedulerName);
  }
  return counts;
}

function attemptLabels(key: string): Labels {
  const [result = '', profile = ''] = key.split(' ');
  return { result, profile };
}
