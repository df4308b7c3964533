/** What webhooks among the authorizers were asked, under upstream's names. */
import { LabelledCounter, LabelledHistogram, labelsText } from '../metrics/labelled-metrics.ts';
import { ReloadMetrics } from '../request/reload-metrics.ts';

const CALL_BOUNDS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;
const MATCH_BOUNDS_S = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25] as const;
const PREFIX = 'apiserver_authorization_';

/** Lives as long as the server, whatever becomes of its configuration. */
export class AuthorizerMetrics {
  readonly #evaluations = new LabelledCounter(`${PREFIX}webhook_evaluations_total`);
  readonly #durations = new LabelledHistogram(`${PREFIX}webhook_duration_seconds`, CALL_BOUNDS_S);
  readonly #opened = new LabelledCounter(`${PREFIX}webhook_evaluations_fail_open_total`);
  readonly #matching = new LabelledHistogram(
    `${PREFIX}match_condition_evaluation_seconds`,
    MATCH_BOUNDS_S,
  );
  readonly #faults = new LabelledCounter(`${PREFIX}match_condition_evaluation_errors_total`);
  readonly #exclusions = new LabelledCounter(`${PREFIX}match_condition_exclusions_total`);
  /** Of the file that names them. */
  readonly reloads: ReloadMetrics = new ReloadMetrics('authorization');

  countCall(name: string, result: string, ms: number): void {
    const labels = labelsText({ name, result });
    this.#evaluations.add(labels);
    this.#durations.observe(labels, ms / 1000);
  }

  /** A webhook failed, and others were asked. */
  countOpened(name: string, result: string): void {
    this.#opened.add(labelsText({ name, result }));
  }

  countMatch(name: string, outcome: 'match' | 'skip' | 'failed', faults: number, ms: number): void {
    const labels = labelsText({ name, type: 'Webhook' });
    this.#matching.observe(labels, ms / 1000);
    if (faults > 0) this.#faults.add(labels, faults);
    if (outcome === 'skip') this.#exclusions.add(labels);
  }

  print(lines: string[]): void {
    const all = [this.#evaluations, this.#durations, this.#opened, this.#matching];
    for (const one of [...all, this.#faults, this.#exclusions]) one.print(lines);
    this.reloads.print(lines);
  }
}
