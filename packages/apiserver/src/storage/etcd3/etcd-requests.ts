/** What is asked of etcd and how long that takes, under the names of upstream's `etcd3/metrics`. */
import { Histogram } from '../../metrics/histogram.ts';
import { printFamily } from '../../metrics/metric-families.ts';
import { allServed } from '../served.ts';

/** Upstream's words; its `list` is not here, as everything is listed at once. */
export type EtcdOperation = 'create' | 'update' | 'delete' | 'get';

const SECONDS = [
  0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45,
  60,
] as const;
/** Resources are few; keys that are nobody's must not make series without end. */
const SERIES_MAX = 4096;
const SLASH = 0x2f;
const DOT = 0x2e;

interface Series {
  readonly operation: EtcdOperation;
  readonly prefix: string;
  readonly durations: Histogram;
  failures: number;
}

export class EtcdRequests {
  readonly #series = new Map<string, Series>();

  count(operation: EtcdOperation, key: Buffer, ms: number, isDone: boolean): void {
    const prefix = prefixOf(key);
    const name = `${operation} ${prefix}`;
    let series = this.#series.get(name);
    if (series === undefined) {
      if (this.#series.size >= SERIES_MAX) return;
      series = { operation, prefix, durations: new Histogram(SECONDS), failures: 0 };
      this.#series.set(name, series);
    }
    series.durations.observe(ms / 1000);
    if (!isDone) series.failures++;
  }

  print(lines: string[]): void {
    const names = new Map(allServed().map(({ prefix, resource }) => [prefix, resource]));
    const durations: string[] = [];
    const totals: string[] = [];
    const failures: string[] = [];
    for (const { operation, prefix, durations: own, failures: failed } of this.#series.values()) {
      const { group = '', resource = prefix } = names.get(prefix) ?? {};
      const labels = `group="${group}",operation="${operation}",resource="${resource}"`;
      own.print(durations, 'etcd_request_duration_seconds', labels);
      totals.push(`etcd_requests_total{${labels}} ${own.count}`);
      if (failed > 0) failures.push(`etcd_request_errors_total{${labels}} ${failed}`);
    }
    for (const [name, own] of [
      ['etcd_request_duration_seconds', durations],
      ['etcd_requests_total', totals],
      ['etcd_request_errors_total', failures],
    ] as const) {
      printFamily(lines, name);
      lines.push(...own);
    }
  }
}

/** `/registry/pods/` of `/registry/pods/a/b`: two parts where the first names a group. */
function prefixOf(key: Buffer): string {
  const root = key.indexOf(SLASH, 1);
  const first = key.indexOf(SLASH, root + 1);
  if (root < 0 || first < 0) return '';
  const dot = key.indexOf(DOT, root);
  const isGroup = dot > 0 && dot < first;
  const isService = key.toString('utf8', root + 1, first) === 'services';
  const end = isGroup || isService ? key.indexOf(SLASH, first + 1) : first;
  return end < 0 ? '' : key.toString('utf8', 0, end + 1);
}
