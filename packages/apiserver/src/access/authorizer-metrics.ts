/** What webhooks among the authorizers were asked, under upstream's names. */
import { LabelledCounter, LabelledHistogram, labelsText } from '../labelled-metrics.ts';
import { printFamily } from '../metric-families.ts';

const CALL_BOUNDS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;
const MATCH_BOUNDS_S = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25] as const;
const PREFIX = 'apiserver_authorization_';

type Reload = 'success' | 'failure';

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
  readonly #reloads = new LabelledCounter(`${PREFIX}config_controller_automatic_reloads_total`);
  readonly #reloaded = new Map<Reload, number>();
  #hash = '';

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

  /** The configuration in use, by the hash of its text. */
  setConfiguration(hash: string): void {
    this.#hash = hash;
  }

  countReload(status: Reload, nowMs: number): void {
    this.#reloads.add(labelsText({ status }));
    this.#reloaded.set(status, nowMs / 1000);
  }

  print(lines: string[]): void {
    const all = [this.#evaluations, this.#durations, this.#opened, this.#matching];
    for (const one of [...all, this.#faults, this.#exclusions, this.#reloads]) one.print(lines);
    if (this.#hash === '') return;
    const controller = `${PREFIX}config_controller_`;
    const since = `${controller}automatic_reload_last_timestamp_seconds`;
    printFamily(lines, since);
    for (const [status, seconds] of this.#reloaded) {
      lines.push(`${since}{status="${status}"} ${seconds}`);
    }
    const info = `${controller}last_config_info`;
    printFamily(lines, info);
    lines.push(`${info}{${labelsText({ hash: this.#hash })}} 1`);
  }
}
