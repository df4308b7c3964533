/** How late renewals were between two looks at the metrics of a simulator. */

const BUCKET = /^megaplane_lease_renewal_lateness_seconds_bucket\{le="([^"]+)"\} (\d+)$/;

/** What the metrics said at one moment. */
export interface Look {
  readonly atMs: number;
  readonly renewals: number;
  readonly errors: number;
  readonly conflicts: number;
  /** Renewals that were late by at most so many seconds, by ascending bounds. */
  readonly buckets: readonly { readonly le: number; readonly count: number }[];
}

/** Reads Prometheus' text format. */
export function lookAt(text: string, atMs: number): Look {
  const lines = text.split('\n');
  const value = (name: string): number =>
    Number(lines.find((line) => line.startsWith(`${name} `))?.split(' ')[1] ?? NaN);
  const buckets = lines.flatMap((line) => {
    const [, le = '', count = ''] = BUCKET.exec(line) ?? [];
    if (count === '') return [];
    return { le: le === '+Inf' ? Infinity : Number(le), count: Number(count) };
  });
  return {
    atMs,
    renewals: value('megaplane_lease_renewals_total'),
    errors: value('megaplane_request_errors_total'),
    conflicts: value('megaplane_lease_conflicts_total'),
    buckets,
  };
}

/** In seconds; `max` is the bound that none exceeded. NaN where nothing was renewed. */
export function latenessBetween(first: Look, last: Look): { p99: number; max: number } {
  const counts = last.buckets.map(({ le, count }, index) => ({
    le,
    count: count - (first.buckets[index]?.count ?? 0),
  }));
  const total = counts.at(-1)?.count ?? 0;
  if (total <= 0) return { p99: NaN, max: NaN };
  const max = counts.find(({ count }) => count >= total)?.le ?? Infinity;
  const wanted = 0.99 * total;
  const at = counts.findIndex(({ count }) => count >= wanted);
  const above = counts[at] ?? { le: Infinity, count: total };
  const below = counts[at - 1] ?? { le: 0, count: 0 };
  if (above.le === Infinity) return { p99: Infinity, max };
  const part = (wanted - below.count) / Math.max(1, above.count - below.count);
  return { p99: below.le + (above.le - below.le) * part, max };
}
