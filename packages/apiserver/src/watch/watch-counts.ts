/** What watches of one version of a resource were sent, under upstream's names. */
import { Histogram } from '../histogram.ts';
import { allServed } from '../served.ts';
import type { World } from '../world.ts';

const BOUNDS_BYTES = [1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072] as const;

export class WatchCounts {
  readonly sizes: Histogram = new Histogram(BOUNDS_BYTES);
  /** Objects that watches began with. */
  initial = 0;

  sent(bytes: number): void {
    this.sizes.observe(bytes);
  }

  began(bytes: number): void {
    this.initial++;
    this.sizes.observe(bytes);
  }
}

/** Appends the lines of all hubs. */
export function renderWatches(world: World, lines: string[]): void {
  const kinds = new Map(allServed().map(({ prefix, resource }) => [prefix, resource]));
  const sizes: string[] = [];
  const events: string[] = [];
  const initials: string[] = [];
  const received: string[] = [];
  for (const [prefix, hub] of world.hubs) {
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
  const add = (name: string, type: string, help: string, own: readonly string[]): void => {
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...own);
  };
  add('apiserver_watch_events_total', 'counter', 'Events sent to watches.', events);
  add('apiserver_watch_events_sizes', 'histogram', 'Bytes of events sent to watches.', sizes);
  add('apiserver_init_events_total', 'counter', 'Objects that watches began with.', initials);
  const name = 'apiserver_watch_cache_events_received_total';
  add(name, 'counter', 'Events of the store that watches were looked for.', received);
}
