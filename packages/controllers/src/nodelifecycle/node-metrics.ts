/** What the node lifecycle tells of its zones: names of upstream's nodelifecycle/metrics. */
import { ownMember } from '@megaplane/base/members';
import type { Zone } from './zones.ts';

const NAMES = {
  node_collector_evictions_total: 'counter',
  node_collector_unhealthy_nodes_in_zone: 'gauge',
  node_collector_zone_health: 'gauge',
  node_collector_zone_size: 'gauge',
} as const;

/** In Prometheus' text format. Zones without nodes that never lost one are left out. */
export function zoneLines(zones: readonly Zone[]): string[] {
  const lines: string[] = [];
  for (const [name, type] of Object.entries(NAMES)) {
    lines.push(`# TYPE ${name} ${type}`);
    for (const zone of zones) {
      const size = zone.ready + zone.notReady;
      if (size === 0 && zone.evictions === 0) continue;
      const values: Record<keyof typeof NAMES, number> = {
        node_collector_evictions_total: zone.evictions,
        node_collector_unhealthy_nodes_in_zone: zone.notReady,
        // Upstream's share of nodes that are ready, in percent; an empty zone is well.
        node_collector_zone_health: size === 0 ? 100 : (100 * zone.ready) / size,
        node_collector_zone_size: size,
      };
      lines.push(
        `${name}{zone=${label(zone.name)}} ${ownMember(values, name as keyof typeof NAMES)}`,
      );
    }
  }
  return lines;
}

/** Upstream's name of a zone: its region, a colon, a zero, a colon, and itself. */
function label(name: string): string {
  const colon = name.indexOf(':');
  const key = name === ':' ? '' : `${name.slice(0, colon)}:\0:${name.slice(colon + 1)}`;
  return `"${key.replaceAll(/[\\"]/g, '\\$&')}"`;
}
