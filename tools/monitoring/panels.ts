/** What dashboards are made of: panels with queries, and the queries that many of them ask. */

export interface Panel {
  readonly title: string;
  /** Query by legend; `$job`, `$instance` and the rate's interval are put in. */
  readonly queries: Readonly<Record<string, string>>;
  readonly unit: Unit;
  /** What somebody learns from it. */
  readonly says?: string;
}

export type Unit = 'short' | 'ops' | 's' | 'bytes' | 'Bps' | 'percentunit';

export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

export interface Dashboard {
  readonly name: Part;
  readonly title: string;
  /** A metric that this part alone has: where instances are looked for. */
  readonly sign: string;
  readonly rows: readonly Row[];
}

export type Part = 'store' | 'apiserver' | 'scheduler' | 'controllers' | 'nodes' | 'fleet';

const OF = 'instance=~"$instance"';
export const rate = (metric: string, more = ''): string =>
  `rate(${metric}{${[OF, more].filter((one) => one !== '').join(',')}}[$__rate_interval])`;

/** Three quantiles of a histogram, by further labels where they are named. */
export function quantiles(histogram: string, by = '', more = ''): Readonly<Record<string, string>> {
  const labels = by === '' ? 'le' : `le, ${by}`;
  const legend = by === '' ? '' : ` {{${by}}}`;
  return Object.fromEntries(
    [0.5, 0.95, 0.99].map((quantile) => [
      `p${quantile * 100}${legend}`,
      `histogram_quantile(${quantile}, sum by (${labels}) (${rate(`${histogram}_bucket`, more)}))`,
    ]),
  );
}

export const sum = (by: string, query: string): string => `sum by (${by}) (${query})`;
export const now = (metric: string, more = ''): string =>
  `${metric}{${[OF, more].filter((one) => one !== '').join(',')}}`;

export const PROCESS: readonly Panel[] = [
  {
    title: 'Processor',
    unit: 'percentunit',
    queries: { '{{instance}}': rate('process_cpu_seconds_total') },
    says: 'A main thread is full at 100 %; threads for the log and for TLS come on top.',
  },
  {
    title: 'Memory',
    unit: 'bytes',
    queries: { '{{instance}}': now('process_resident_memory_bytes') },
  },
  { title: 'Descriptors', unit: 'short', queries: { '{{instance}}': now('process_open_fds') } },
];
