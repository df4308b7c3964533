/** What autoscalers tell of their work, under upstream's names. */
import { exponential } from '@megaplane/client/bucket-histogram';
import type { Counter, Histogram, MetricsRegistry } from '../framework/metrics-registry.ts';

const SUBSYSTEM = 'horizontal_pod_autoscaler_controller';
const SECONDS: readonly number[] = exponential(0.001, 15);

export type ScalingAction = 'scale_up' | 'scale_down' | 'none';
/** Who is to blame where nothing can be said: what is written in the autoscaler, or the rest. */
export type ScalingError = 'spec' | 'internal' | 'none';

export class AutoscalerMetrics {
  readonly #looks: Counter;
  readonly #lookSeconds: Histogram;
  readonly #metrics: Counter;
  readonly #metricSeconds: Histogram;
  readonly #desired: Counter;

  constructor(board: MetricsRegistry, count: () => number) {
    const labels = ['action', 'error'];
    const of = (name: string): string => `${SUBSYSTEM}_${name}`;
    const looks = 'Number of reconciliations of HPA controller.';
    this.#looks = board.counter(of('reconciliations_total'), looks, labels);
    const took = 'The time(seconds) that the HPA controller takes to reconcile once.';
    this.#lookSeconds = board.histogram(
      of('reconciliation_duration_seconds'),
      took,
      SECONDS,
      labels,
    );
    const typed = [...labels, 'metric_type'];
    const computed = 'Number of metric computations.';
    this.#metrics = board.counter(of('metric_computation_total'), computed, typed);
    const each = 'The time(seconds) that the HPA controller takes to calculate one metric.';
    const name = of('metric_computation_duration_seconds');
    this.#metricSeconds = board.histogram(name, each, SECONDS, typed);
    const number = 'Current number of controlled HPA objects.';
    board.reading(of('num_horizontal_pod_autoscalers'), number, [], () => [[[], count()]]);
    const desired = 'Current desired replica count for HPA objects.';
    this.#desired = board.gauge(of('desired_replicas'), desired, ['namespace', 'hpa_name']);
  }

  looked(action: ScalingAction, error: ScalingError, seconds: number): void {
    this.#looks.add([action, error]);
    this.#lookSeconds.record(seconds, [action, error]);
  }

  computed(action: ScalingAction, error: ScalingError, type: string, seconds: number): void {
    this.#metrics.add([action, error, type]);
    this.#metricSeconds.record(seconds, [action, error, type]);
  }

  desired(key: string, replicas: number): void {
    this.#desired.set(key.split('/'), replicas);
  }

  forget(key: string): void {
    this.#desired.forget(key.split('/'));
  }
}

export function actionOf(before: number, after: number): ScalingAction {
  if (after === before) return 'none';
  return after > before ? 'scale_up' : 'scale_down';
}
