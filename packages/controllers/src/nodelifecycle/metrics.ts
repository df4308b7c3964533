/** What node lifecycle, taint eviction and pod garbage collection count, under upstream's names. */
import { exponential } from '@megaplane/client/bucket-histogram';
import type { Counter, Histogram, MetricsRegistry } from '../framework/metrics-registry.ts';

/** Of taint evictions, of nodes and of devices. */
export const EVICTION_SECONDS: readonly number[] = [
  0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240,
];

export type CollectedPod = 'terminated' | 'out-of-service' | 'orphaned' | 'unscheduled';

export class NodeControllerMetrics {
  readonly #evictions: Counter;
  readonly #evictionSeconds: Histogram;
  readonly #allSeconds: Histogram;
  readonly #collected: Counter;
  readonly #failed: Counter;

  constructor(board: MetricsRegistry) {
    const eviction = 'taint_eviction_controller_pod_deletion';
    const evicted = 'Total number of Pods deleted by TaintEvictionController since its start.';
    this.#evictions = board.counter(`${eviction}s_total`, evicted);
    this.#evictionSeconds = board.histogram(
      `${eviction}_duration_seconds`,
      'Latency, in seconds, between the time when a taint took effect for the Pod and its deletion',
      EVICTION_SECONDS,
    );
    this.#allSeconds = board.histogram(
      'node_collector_update_all_nodes_health_duration_seconds',
      'Duration in seconds for NodeController to update the health of all nodes.',
      exponential(0.01, 8, 4),
    );
    const labels = ['namespace', 'reason'];
    const collected = 'Number of pods that are being forcefully deleted since the start.';
    this.#collected = board.counter('pod_gc_collector_force_delete_pods_total', collected, labels);
    const failed = 'Number of errors when forcefully deleting pods since the start.';
    const name = 'pod_gc_collector_force_delete_pod_errors_total';
    this.#failed = board.counter(name, failed, labels);
  }

  evicted(lateMs: number): void {
    this.#evictions.add();
    this.#evictionSeconds.record(Math.max(0, lateMs) / 1000);
  }

  passed(tookMs: number): void {
    this.#allSeconds.record(tookMs / 1000);
  }

  collected(namespace: string, why: CollectedPod, isWell: boolean): void {
    (isWell ? this.#collected : this.#failed).add([namespace, why]);
  }
}
