/** `/metrics/slis`: how often each health check was asked, and what it said last. */
import { Exposition } from '../metrics/exposition.ts';

export class HealthCounts {
  readonly #last: Map<string, boolean> = new Map();
  readonly #totals: Map<string, number> = new Map();

  /** The check `name` of the page `type` was asked. */
  asked(name: string, type: string, isWell: boolean): void {
    this.#last.set(keyOf(name, type), isWell);
    const key = keyOf(name, type, isWell ? 'success' : 'error');
    this.#totals.set(key, (this.#totals.get(key) ?? 0) + 1);
  }

  text(startedSeconds: number): string {
    const out = new Exposition();
    if (this.#last.size > 0) {
      out.family('kubernetes_healthcheck', 'gauge', 'What single health checks said last.');
      for (const [key, isWell] of sorted(this.#last)) out.value(labelsOf(key), isWell ? 1 : 0);
      out.family('kubernetes_healthchecks_total', 'counter', 'Answers of health checks.');
      for (const [key, count] of sorted(this.#totals)) out.value(labelsOf(key), count);
    }
    out.family('process_start_time_seconds', 'gauge', 'When the process began.');
    out.value({}, startedSeconds);
    return out.toString();
  }
}

function keyOf(name: string, type: string, status = ''): string {
  return `${name} ${status} ${type}`;
}

function labelsOf(key: string): Record<string, string> {
  const [name = '', status = '', type = ''] = key.split(' ');
  return status === '' ? { name, type } : { name, status, type };
}

function sorted<Value>(map: ReadonlyMap<string, Value>): [string, Value][] {
  return [...map].toSorted(([left], [right]) => (left < right ? -1 : 1));
}
