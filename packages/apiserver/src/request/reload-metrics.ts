/** What became of a configuration whose file is followed, under upstream's names. */
import { LabelledCounter, labelsText } from '../metrics/labelled-metrics.ts';
import { printFamily } from '../metrics/metric-families.ts';

type Reload = 'success' | 'failure';

export class ReloadMetrics {
  readonly #prefix: string;
  readonly #reloads: LabelledCounter;
  readonly #reloaded = new Map<Reload, number>();
  #hash = '';

  constructor(of: 'authentication' | 'authorization') {
    this.#prefix = `apiserver_${of}_config_controller_`;
    this.#reloads = new LabelledCounter(`${this.#prefix}automatic_reloads_total`);
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
    this.#reloads.print(lines);
    if (this.#hash === '') return;
    const since = `${this.#prefix}automatic_reload_last_timestamp_seconds`;
    printFamily(lines, since);
    for (const [status, seconds] of this.#reloaded) {
      lines.push(`${since}{status="${status}"} ${seconds}`);
    }
    const info = `${this.#prefix}last_config_info`;
    printFamily(lines, info);
    lines.push(`${info}{${labelsText({ hash: this.#hash })}} 1`);
  }
}
