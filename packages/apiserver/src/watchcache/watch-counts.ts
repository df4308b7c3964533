/** What watches of one version of a resource were sent, under upstream's names. */
import type { Served } from '../storage/served.ts';
import type { WatchHub } from './watch-hub.ts';
import { printFamily } from '../metrics/metric-families.ts';

/** Appends the lines of all hubs. */
export function renderWatches(
  hubs: ReadonlyMap<string, WatchHub>,
  served: readonly Served[],
  lines: string[],
): void {
  const kinds = new Map(served.map(({ prefix, resource }) => [prefix, resource]));
  const sizes: string[] = [];
  const events: string[] = [];
  const initials: string[] = [];
  const received: string[] = [];
  for (const [prefix, hub] of hubs) {
    const { group = '', resource = '' } = kinds.get(prefix) ?? {};
    const common = `group="${group}",resource="${resource}"`;
    let initial = 0;
    for (const [version, counts] of hub.counts) {
      const labels = `${common},version="${version}"`;
      initial += counts.initial;
      events.push(`apiserver_watch_events_total{${labels}} ${counts.sizes.count}`);
      counts.sizes.print(sizes, 'apiserver_watch_events_sizes', labels);
    }
    if (initial > 0) initials.push(`apiserver_init_events_total{${common}} ${initial}`);
    received.push(`apiserver_watch_cache_events_received_total{${common}} ${hub.dispatched}`);
  }
  for (const [name, own] of [
    ['apiserver_watch_events_total', events],
    ['apiserver_watch_events_sizes', sizes],
    ['apiserver_init_events_total', initials],
    ['apiserver_watch_cache_events_received_total', received],
  ] as const) {
    printFamily(lines, name);
    lines.push(...own);
  }
}
