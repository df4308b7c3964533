/** `/healthz`, `/livez`, `/readyz`: named checks, alone, together, or told one by one. */
import type { Call } from '../request/call.ts';

/** A check says what is wrong, or nothing. */
export type HealthCheck = () => string | null;

/** What a check counts for: `readyz` alone, all but that, or everything. */
type Reach = 'all' | 'life' | 'readiness';

const LAST_HELP = '[STABLE] This metric records the result of a single healthcheck.';
const TOTAL_HELP = '[STABLE] This metric records the results of all healthcheck.';
const START_HELP = '[ALPHA] Start time of the process since unix epoch in seconds.';

export class Health {
  readonly #checks = new Map<string, HealthCheck>();
  readonly #reaches = new Map<string, Reach>();
  /** Checks that are named only while something is wrong: upstream has none of them. */
  readonly #quiet = new Set<string>();
  /** How checks ended by their labels, as `/metrics/slis` tells it. */
  readonly #last = new Map<string, number>();
  readonly #totals = new Map<string, number>();

  add(name: string, check: HealthCheck, reach: Reach = 'all'): void {
    this.#checks.set(name, check);
    this.#reaches.set(name, reach);
  }

  /** A check of readiness that upstream does not have: nobody sees it before it fails. */
  addQuiet(name: string, check: HealthCheck): void {
    this.add(name, check, 'readiness');
    this.#quiet.add(name);
  }

  /** Every path that is answered. */
  paths(): string[] {
    return ['healthz', 'livez', 'readyz'].flatMap((kind) => [
      `/${kind}`,
      ...this.#names(kind).map((name) => `/${kind}/${name}`),
    ]);
  }

  #names(kind: string): string[] {
    const other: Reach = kind === 'readyz' ? 'life' : 'readiness';
    return [...this.#checks.keys()].filter((one) => {
      if (this.#reaches.get(one) === other) return false;
      return !this.#quiet.has(one) || (this.#checks.get(one)?.() ?? null) !== null;
    });
  }

  /** Answers `path`, which begins with one of the three. Null where there is no such check. */
  answer(call: Call, path: string): boolean {
    const [, kind = '', ...steps] = path.split('/');
    const name = steps.join('/');
    const names = this.#names(kind);
    if (name !== '') {
      if (!names.includes(name)) return false;
      const fault = this.#checks.get(name)?.() ?? null;
      if (fault === null) call.send(200, 'text/plain; charset=utf-8', 'ok');
      else call.sendText(500, `${name} failed`);
      return true;
    }
    const excluded = new Set(call.query.all('exclude'));
    const unknown = [...excluded].filter((one) => !names.includes(one)).toSorted();
    const lines: string[] = [];
    let failures = 0;
    for (const one of names) {
      if (excluded.has(one)) {
        lines.push(`[+]${one} excluded: ok`);
      } else if (this.#observe(kind, one)) {
        lines.push(`[+]${one} ok`);
      } else {
        failures++;
        lines.push(`[-]${one} failed: reason withheld`);
      }
    }
    if (unknown.length > 0) {
      const list = unknown.map((one) => JSON.stringify(one)).join(',');
      lines.push(`warn: some health checks cannot be excluded: no matches for ${list}`);
    }
    const verdict = `${kind} check ${failures === 0 ? 'passed' : 'failed'}`;
    const isTold = failures > 0 || call.query.has('verbose');
    call.sendText(failures === 0 ? 200 : 500, isTold ? `${lines.join('\n')}\n${verdict}\n` : 'ok');
    return true;
  }

  /** Looks at one check among others, and counts how it ended. */
  #observe(kind: string, name: string): boolean {
    const isWell = (this.#checks.get(name)?.() ?? null) === null;
    const labels = `name="${name}"`;
    const total = `${labels},status="${isWell ? 'success' : 'error'}",type="${kind}"`;
    this.#last.set(`${labels},type="${kind}"`, isWell ? 1 : 0);
    this.#totals.set(total, (this.#totals.get(total) ?? 0) + 1);
    return isWell;
  }

  /** `/metrics/slis`: nothing but how checks ended, for who measures what a service promises. */
  render(startedMs: number): string {
    const lines: string[] = [];
    for (const [name, kind, help, values] of [
      ['kubernetes_healthcheck', 'gauge', LAST_HELP, this.#last],
      ['kubernetes_healthchecks_total', 'counter', TOTAL_HELP, this.#totals],
      ['process_start_time_seconds', 'gauge', START_HELP, new Map([['', startedMs / 1000]])],
    ] as const) {
      if (values.size === 0) continue;
      lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`);
      for (const [labels, value] of [...values].toSorted(([one], [two]) => (one < two ? -1 : 1))) {
        lines.push(labels === '' ? `${name} ${value}` : `${name}{${labels}} ${value}`);
      }
    }
    return `${lines.join('\n')}\n`;
  }
}
