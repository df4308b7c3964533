/** What the simulator counts, and how it is told in Prometheus' text format. */
import { BoundedHistogram, LatencyHistogram } from '@megaplane/base/histogram';

/** Upper bounds of the histogram of lateness, in seconds. */
const LATENESS_SECONDS = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 4,
  5, 7, 10, 15, 20, 30, 40, 60,
];

export class SimulatorMetrics {
  nodes = 0;
  nodesReady = 0;
  nodesCreated = 0;
  podsBound = 0;
  podsRunning = 0;
  leasesCreated = 0;
  renewals = 0;
  conflicts = 0;
  errors = 0;
  /** Watches of kubelets, with `--fidelity kubelet`. */
  watchesOpen = 0;
  watchesStarted = 0;
  watchesLeftOut = 0;
  watchBytes = 0;
  readonly #calls: Map<string, number> = new Map();
  readonly latenessMs: LatencyHistogram = new LatencyHistogram();
  readonly #lateness: BoundedHistogram = new BoundedHistogram(LATENESS_SECONDS);

  /** What is there now is counted anew. */
  forgetObjects(): void {
    this.nodes = 0;
    this.nodesReady = 0;
    this.podsBound = 0;
    this.podsRunning = 0;
  }

  /** A call of a real kubelet was made. */
  called(call: string): void {
    this.#calls.set(call, (this.#calls.get(call) ?? 0) + 1);
  }

  /** A lease was renewed so many milliseconds after its plan. */
  renewed(latenessMs: number): void {
    this.renewals++;
    this.latenessMs.record(Math.max(0, latenessMs));
    this.#lateness.record(Math.max(0, latenessMs) / 1000);
  }

  /** Prometheus' text format. */
  text(): string {
    const lateness = this.latenessMs;
    const quantiles = [0.5, 0.9, 0.99, 1].map(
      (quantile) =>
        `megaplane_lease_lateness_seconds{quantile="${quantile}"} ` +
        `${lateness.quantile(quantile) / 1000}\n`,
    );
    return (
      gauge('megaplane_nodes', 'Nodes that are simulated.', this.nodes) +
      gauge(
        'megaplane_nodes_ready',
        'Simulated nodes whose Ready condition is True.',
        this.nodesReady,
      ) +
      gauge('megaplane_pods_bound', 'Pods bound to simulated nodes.', this.podsBound) +
      gauge(
        'megaplane_pods_running',
        'Pods of simulated nodes in phase Running.',
        this.podsRunning,
      ) +
      counter(
        'megaplane_nodes_created_total',
        'Nodes that this process registered.',
        this.nodesCreated,
      ) +
      counter('megaplane_leases_created_total', 'Leases that were made.', this.leasesCreated) +
      counter('megaplane_lease_renewals_total', 'Leases renewed.', this.renewals) +
      counter(
        'megaplane_lease_conflicts_total',
        'Renewals answered with a conflict.',
        this.conflicts,
      ) +
      counter('megaplane_request_errors_total', 'Requests that failed otherwise.', this.errors) +
      this.#traffic() +
      '# HELP megaplane_lease_lateness_seconds From the planned renewal to its answer.\n' +
      '# TYPE megaplane_lease_lateness_seconds summary\n' +
      quantiles.join('') +
      `megaplane_lease_lateness_seconds_count ${lateness.count}\n` +
      `megaplane_lease_lateness_seconds_sum ${lateness.sum / 1000}\n` +
      this.#latenessBuckets()
    );
  }

  /** The same as a histogram, so that a span of time can be looked at. */
  #latenessBuckets(): string {
    const name = 'megaplane_lease_renewal_lateness_seconds';
    const { bounds, count, sum } = this.#lateness;
    const buckets = [...bounds, Infinity].map((bound, index) => {
      const le = bound === Infinity ? '+Inf' : String(bound);
      return `${name}_bucket{le="${le}"} ${this.#lateness.cumulative(index)}\n`;
    });
    return (
      `# HELP ${name} From the planned renewal to its answer.\n# TYPE ${name} histogram\n` +
      `${buckets.join('')}${name}_sum ${sum}\n${name}_count ${count}\n`
    );
  }

  #traffic(): string {
    if (this.watchesStarted === 0 && this.#calls.size === 0) return '';
    const name = 'megaplane_kubelet_calls_total';
    const calls = [...this.#calls].map(([call, count]) => `${name}{call="${call}"} ${count}\n`);
    return (
      gauge('megaplane_kubelet_watches', 'Watches of simulated kubelets.', this.watchesOpen) +
      counter('megaplane_kubelet_watches_started_total', 'Watches begun.', this.watchesStarted) +
      counter('megaplane_kubelet_watches_left_out_total', 'Above the limit.', this.watchesLeftOut) +
      counter('megaplane_kubelet_watch_bytes_total', 'Bytes that watches told.', this.watchBytes) +
      `# HELP ${name} Requests that only real kubelets make.\n# TYPE ${name} counter\n` +
      calls.join('')
    );
  }
}

function gauge(name: string, help: string, value: number): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${name} ${value}\n`;
}

function counter(name: string, help: string, value: number): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} counter\n${name} ${value}\n`;
}
