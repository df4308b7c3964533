/** What the views of the page show beside curves, from two looks at the programs. */
import type { Bars, Cells, Grid, Unit, View, ViewData } from '@megaplane/dashboard/protocol';
import type { Span } from './exposition.ts';
import { bucketsOf, labelOf, quantileOf, ratesOf } from './exposition.ts';
import { spanOf } from './figures.ts';
import type { Look } from './sources.ts';

/** Rows of one table; the busiest come first, and what is beyond is left out. */
export const GRID_ROWS_MAX = 60;

const ATTEMPTS = 'scheduler_schedule_attempts_total';
const LATENESS = 'megaplane_lease_renewal_lateness_seconds';

/** Tables and histograms of a view. */
export function viewBetween(view: View, before: Look, now: Look): ViewData {
  const server = spanOf(before, now, 'apiserver');
  switch (view) {
    case 'cluster':
      return { view, grids: [processGrid(before, now)], bars: [] };
    case 'store':
      return { view, grids: [storeGrid(server, spanOf(before, now, 'store'))], bars: [] };
    case 'apiserver':
      return {
        view,
        grids: [requestGrid(server), fairnessGrid(server), watchGrid(server)],
        bars: [],
      };
    case 'scheduler':
      return { view, grids: schedulerGrids(spanOf(before, now, 'scheduler')), bars: [] };
    case 'nodes': {
      const controllers = spanOf(before, now, 'controllers');
      const bars = latenessBars(spanOf(before, now, 'nodes'));
      return { view, grids: [zoneGrid(controllers), queueGrid(controllers)], bars };
    }
    case 'fleet':
    case 'browse':
      return { view, grids: [], bars: [] };
  }
}

function grid(
  title: string,
  none: string,
  head: readonly (readonly [string, Unit])[],
  rows: readonly Cells[],
): Grid {
  const columns = head.map(([name, unit]) => ({ name, unit }));
  return { title, none, head: columns, rows: rows.slice(0, GRID_ROWS_MAX) };
}

function known(value: number | undefined): number | null {
  return value === undefined || !Number.isFinite(value) ? null : value;
}

function processGrid(before: Look, now: Look): Grid {
  const rows = [...now.seen.values()].map((seen): Cells => {
    const { seconds } = spanOf(before, now, seen.name);
    const used = seen.cpuSeconds - (before.seen.get(seen.name)?.cpuSeconds ?? NaN);
    return [
      seen.name,
      known(used / seconds),
      known(seen.cpuSeconds),
      known(seen.rssMib * 2 ** 20),
      known(seen.rssPeakMib * 2 ** 20),
    ];
  });
  return grid(
    'Processes',
    'No process of this machine is known.',
    [
      ...([
        ['process', 'text'],
        ['of a core', 'percent'],
        ['processor', 'seconds'],
      ] as const),
      ...([
        ['memory', 'bytes'],
        ['at most', 'bytes'],
      ] as const),
    ],
    rows.toSorted((a, b) => Number(b[2]) - Number(a[2])),
  );
}

/** A label's values by name of a family that only says how much there is now. */
function gaugesOf(span: Span, family: string, label: string): Map<string, number> {
  const values = new Map<string, number>();
  for (const [labels, value] of span.now.get(family) ?? []) {
    const name = labelOf(labels, label);
    values.set(name, (values.get(name) ?? 0) + value);
  }
  return values;
}

const resourceOf = (labels: string): string => labelOf(labels, 'resource');
const isWrite = (labels: string): boolean =>
  /^(?:POST|PUT|PATCH|DELETE|APPLY)$/.test(labelOf(labels, 'verb'));

function storeGrid(server: Span, store: Span): Grid {
  const objects = gaugesOf(server, 'apiserver_resource_objects', 'resource');
  const puts = ratesOf(server, 'apiserver_request_total', (labels) =>
    isWrite(labels) && labelOf(labels, 'code').startsWith('2') ? resourceOf(labels) : null,
  );
  const watchers = gaugesOf(server, 'apiserver_longrunning_requests', 'resource');
  const events = ratesOf(server, 'apiserver_watch_events_total', resourceOf);
  const prefixes = ratesOf(store, 'etcd_mvcc_put_total', (labels) => labelOf(labels, 'prefix'));
  const names = new Set([...objects.keys(), ...puts.keys()]);
  const rows = [...names].map((name): Cells => [
    name,
    known(objects.get(name)),
    known(puts.get(name) ?? prefixes.get(name) ?? 0),
    known(watchers.get(name) ?? 0),
    known(events.get(name) ?? 0),
  ]);
  return grid(
    'By resource',
    'The API server tells no objects.',
    [
      ...([
        ['resource', 'text'],
        ['objects', 'count'],
        ['puts', 'rate'],
      ] as const),
      ...([
        ['watchers', 'count'],
        ['events', 'rate'],
      ] as const),
    ],
    rows.toSorted((a, b) => Number(b[2]) - Number(a[2]) || Number(b[1]) - Number(a[1])),
  );
}

function requestGrid(span: Span): Grid {
  const groupOf = (labels: string): string => {
    const sub = labelOf(labels, 'subresource');
    const resource = `${resourceOf(labels)}${sub === '' ? '' : `/${sub}`}`;
    return `${labelOf(labels, 'verb')} ${resource}`;
  };
  const rates = ratesOf(span, 'apiserver_request_total', groupOf);
  const failed = ratesOf(span, 'apiserver_request_total', (labels) =>
    /^[45]/.test(labelOf(labels, 'code')) ? groupOf(labels) : null,
  );
  const buckets = bucketsOf(span, 'apiserver_request_duration_seconds', groupOf);
  const rows = [...rates].map(([group, rate]): Cells => {
    const [verb = '', resource = ''] = group.split(' ');
    const counted = buckets.get(group);
    const quantile = (part: number): number | null =>
      counted === undefined ? null : known(quantileOf(counted, part));
    const errors = known(failed.get(group) ?? 0);
    return [verb, resource, rate, errors, quantile(0.5), quantile(0.95), quantile(0.99)];
  });
  return grid(
    'Requests',
    'No request since the last look.',
    [
      ...([
        ['verb', 'text'],
        ['resource', 'text'],
        ['requests', 'rate'],
      ] as const),
      ...([
        ['failed', 'rate'],
        ['p50', 'seconds'],
        ['p95', 'seconds'],
      ] as const),
      ['p99', 'seconds'],
    ],
    rows.filter((row) => Number(row[2]) > 0).toSorted((a, b) => Number(b[2]) - Number(a[2])),
  );
}

function fairnessGrid(span: Span): Grid {
  const label = 'priority_level';
  const prefix = 'apiserver_flowcontrol_';
  const limits = gaugesOf(span, `${prefix}current_limit_seats`, label);
  const seats = gaugesOf(span, `${prefix}current_executing_seats`, label);
  const queued = gaugesOf(span, `${prefix}current_inqueue_requests`, label);
  const levelOf = (labels: string): string => labelOf(labels, label);
  const done = ratesOf(span, `${prefix}dispatched_requests_total`, levelOf);
  const shed = ratesOf(span, `${prefix}rejected_requests_total`, levelOf);
  const rows = [...limits].map(([level, limit]): Cells => [
    level,
    limit,
    seats.get(level) ?? 0,
    queued.get(level) ?? 0,
    done.get(level) ?? 0,
    shed.get(level) ?? 0,
  ]);
  return grid(
    'Fairness',
    'Priority and fairness is off, or not told.',
    [
      ...([
        ['level', 'text'],
        ['seats', 'count'],
        ['taken', 'count'],
      ] as const),
      ...([
        ['queued', 'count'],
        ['served', 'rate'],
        ['shed', 'rate'],
      ] as const),
    ],
    rows.toSorted((a, b) => Number(b[4]) - Number(a[4])),
  );
}

function watchGrid(span: Span): Grid {
  const watches = gaugesOf(span, 'apiserver_longrunning_requests', 'resource');
  const events = ratesOf(span, 'apiserver_watch_events_total', resourceOf);
  const bytes = ratesOf(span, 'apiserver_watch_events_sizes_sum', resourceOf);
  const rows = [...watches].map(([name, count]): Cells => [
    name,
    count,
    events.get(name) ?? 0,
    bytes.get(name) ?? 0,
  ]);
  return grid(
    'Watches',
    'Nobody watches.',
    [
      ...([
        ['resource', 'text'],
        ['watches', 'count'],
        ['events', 'rate'],
      ] as const),
      ['bytes a second', 'bytes'],
    ],
    rows
      .filter((row) => Number(row[1]) > 0)
      .toSorted((a, b) => Number(b[2]) - Number(a[2]) || Number(b[1]) - Number(a[1])),
  );
}

function schedulerGrids(span: Span): Grid[] {
  const gauges = (family: string, label: string): Cells[] =>
    [...gaugesOf(span, family, label)].filter(([, value]) => value > 0);
  const rates = (family: string, label: string): Cells[] =>
    [...ratesOf(span, family, (labels) => labelOf(labels, label))].filter(([, rate]) => rate > 0);
  return [
    grid(
      'Pending by queue',
      'No pod is pending.',
      [
        ['queue', 'text'],
        ['pods', 'count'],
      ],
      gauges('scheduler_pending_pods', 'queue'),
    ),
    grid(
      'Unschedulable by plugin',
      'No pod is unschedulable.',
      [
        ['plugin', 'text'],
        ['pods', 'count'],
      ],
      gauges('scheduler_unschedulable_pods', 'plugin'),
    ),
    grid(
      'Attempts by result',
      'No attempt since the last look.',
      [
        ['result', 'text'],
        ['attempts', 'rate'],
      ],
      rates(ATTEMPTS, 'result'),
    ),
    grid(
      'Ways of deciding',
      'No decision since the last look.',
      [
        ['way', 'text'],
        ['decisions', 'rate'],
      ],
      rates('megaplane_scheduler_decisions_total', 'way'),
    ),
  ];
}

function zoneGrid(span: Span): Grid {
  const sizes = gaugesOf(span, 'node_collector_zone_size', 'zone');
  const health = gaugesOf(span, 'node_collector_zone_health', 'zone');
  const sick = gaugesOf(span, 'node_collector_unhealthy_nodes_in_zone', 'zone');
  const evictions = ratesOf(span, 'node_collector_evictions_total', (labels) =>
    labelOf(labels, 'zone'),
  );
  const rows = [...sizes].map(([zone, size]): Cells => [
    zone.replace(/:[ \0]:/, ' / ').replace(/^:/, '') || 'no zone',
    size,
    sick.get(zone) ?? 0,
    known((health.get(zone) ?? NaN) / 100),
    evictions.get(zone) ?? 0,
  ]);
  return grid(
    'Zones',
    'The controllers tell no zone.',
    [
      ...([
        ['zone', 'text'],
        ['nodes', 'count'],
        ['not ready', 'count'],
      ] as const),
      ...([
        ['healthy', 'percent'],
        ['evictions', 'rate'],
      ] as const),
    ],
    rows,
  );
}

function queueGrid(span: Span): Grid {
  const depth = gaugesOf(span, 'workqueue_depth', 'name');
  const nameOf = (labels: string): string => labelOf(labels, 'name');
  const adds = ratesOf(span, 'workqueue_adds_total', nameOf);
  const retries = ratesOf(span, 'workqueue_retries_total', nameOf);
  const rows = [...depth].map(([name, waiting]): Cells => [
    name,
    waiting,
    adds.get(name) ?? 0,
    retries.get(name) ?? 0,
  ]);
  return grid(
    "Controllers' queues",
    'No queue has had work since the last look.',
    [
      ...([
        ['queue', 'text'],
        ['waiting', 'count'],
        ['added', 'rate'],
      ] as const),
      ['tried again', 'rate'],
    ],
    rows
      .filter((row) => Number(row[1]) + Number(row[2]) > 0)
      .toSorted((a, b) => Number(b[2]) - Number(a[2])),
  );
}

function latenessBars(span: Span): Bars[] {
  const buckets = bucketsOf(span, LATENESS).get('');
  if (buckets === undefined) return [];
  const { bounds, counts } = buckets;
  const finite = bounds.map((bound) => (bound === Infinity ? -1 : bound));
  return [{ title: 'Lateness of leases since the last look', bounds: finite, counts }];
}
