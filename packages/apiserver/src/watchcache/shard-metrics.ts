/** Metrics of sharded watches, with the names that KEP-5866 gives them. */
import { printFamily } from '../metrics/metric-families.ts';
import type { WatchHub } from './watch-hub.ts';
import { allServed } from '../storage/served.ts';

/** Adds the lines of hubs that have, or had, a sharded watch. */
export function renderShards(hubs: ReadonlyMap<string, WatchHub>, lines: string[]): void {
  const labels = new Map<string, string>();
  for (const { stored, prefix, resource } of allServed()) {
    if (!stored || labels.has(prefix)) continue;
    labels.set(prefix, `group="${resource.group}",resource="${resource.resource}"`);
  }
  const sharded = [...hubs].filter(([, hub]) => hub.shards > 0 || hub.filtered > 0);
  printFamily(lines, 'apiserver_watch_shards_total');
  lines.push(
    ...sharded.map(
      ([prefix, hub]) => `apiserver_watch_shards_total{${labels.get(prefix)}} ${hub.shards}`,
    ),
  );
  printFamily(lines, 'apiserver_watch_filtered_events_total');
  lines.push(
    ...sharded.map(
      ([prefix, hub]) =>
        `apiserver_watch_filtered_events_total{${labels.get(prefix)}} ${hub.filtered}`,
    ),
  );
}
