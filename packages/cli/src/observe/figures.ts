/**
 * What a cluster's curves show, from two looks at its programs. Names of figures are those of the
 * page and of reports; a figure that cannot be known now is left out.
 */
import type { Families, Span } from './exposition.ts';
import { labelOf, quantileBetween, rateOf, sumOf } from './exposition.ts';
import type { Look } from './sources.ts';

const NOTHING: Families = new Map();
const SECONDS_MIN = 0.001;
const NODE_LEASES = 'megaplane_lease_renewal_lateness_seconds';
const DURATION = 'apiserver_request_duration_seconds';
const WRITES: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE', 'APPLY']);
const READS: ReadonlySet<string> = new Set(['GET', 'LIST']);

/** The families that figures and views are made of; nothing else is read. */
export const WANTED_FAMILIES: ReadonlySet<string> = new Set([
  ...['megaplane_nodes', 'megaplane_nodes_ready', 'megaplane_pods_bound', 'megaplane_pods_running'],
  ...['megaplane_lease_renewals_total', 'megaplane_lease_conflicts_total'],
  ...['megaplane_request_errors_total', 'megaplane_leases_created_total'],
  ...['megaplane_nodes_created_total', `${NODE_LEASES}_bucket`],
  ...['apiserver_request_total', `${DURATION}_bucket`, 'apiserver_longrunning_requests'],
  ...['apiserver_watch_events_total', 'apiserver_watch_events_sizes_sum'],
  ...['apiserver_resource_objects', 'apiserver_storage_size_bytes'],
  ...['apiserver_watch_cache_resource_version', 'apiserver_current_inflight_requests'],
  ...['apiserver_current_inqueue_requests', 'apiserver_dropped_requests_total'],
  ...[
    'apiserver_flowcontrol_current_executing_seats',
    'apiserver_flowcontrol_rejected_requests_total',
  ],
  ...[
    'apiserver_flowcontrol_current_inqueue_requests',
    'apiserver_flowcontrol_current_limit_seats',
  ],
  ...['apiserver_flowcontrol_dispatched_requests_total'],
  ...['apiserver_storage_objects', 'process_cpu_seconds_total', 'process_resident_memory_bytes'],
  ...[
    'nodejs_heap_size_used_bytes',
    'nodejs_external_memory_bytes',
    'nodejs_gc_duration_seconds_sum',
  ],
  ...['nodejs_gc_duration_seconds_bucket', 'etcd_mvcc_put_total', 'etcd_mvcc_delete_total'],
  ...['etcd_mvcc_range_total', 'etcd_mvcc_txn_total', 'etcd_mvcc_db_total_size_in_bytes'],
  ...['etcd_debugging_mvcc_watcher_total', 'etcd_debugging_mvcc_events_total'],
  ...['etcd_debugging_mvcc_slow_watcher_total', 'etcd_debugging_mvcc_current_revision'],
  ...['etcd_debugging_mvcc_compact_revision', 'etcd_disk_wal_write_bytes_total'],
  ...['etcd_disk_wal_fsync_duration_seconds_bucket'],
  ...['scheduler_pending_pods', 'scheduler_schedule_attempts_total'],
  ...['scheduler_scheduling_attempt_duration_seconds_bucket', 'scheduler_unschedulable_pods'],
  ...[
    'scheduler_pod_scheduling_sli_duration_seconds_bucket',
    'scheduler_preemption_attempts_total',
  ],
  ...['megaplane_scheduler_decisions_total', 'scheduler_queue_incoming_pods_total'],
  ...['megaplane_scheduler_bind_failures_total', 'scheduler_cache_size'],
  ...['workqueue_depth', 'workqueue_adds_total', 'workqueue_retries_total'],
  ...['node_collector_evictions_total', 'node_collector_zone_size', 'node_collector_zone_health'],
  ...['node_collector_unhealthy_nodes_in_zone'],
]);

/** The time between two looks, as one program saw it. */
export function spanOf(before: Look, now: Look, name: string): Span {
  return {
    before: before.seen.get(name)?.families ?? NOTHING,
    now: now.seen.get(name)?.families ?? NOTHING,
    seconds: Math.max(SECONDS_MIN, (now.steadyMs - before.steadyMs) / 1000),
  };
}

/** All figures between two looks. */
export function figuresBetween(before: Look, now: Look): Map<string, number> {
  const figures = new Map<string, number>();
  const put = (name: string, value: number): void => {
    if (Number.isFinite(value)) figures.set(name, value);
  };
  nodeFigures(spanOf(before, now, 'nodes'), put);
  serverFigures(spanOf(before, now, 'apiserver'), put);
  storeFigures(spanOf(before, now, 'apiserver'), spanOf(before, now, 'store'), put);
  schedulerFigures(spanOf(before, now, 'scheduler'), put);
  processFigures(before, now, put);
  return figures;
}

type Put = (name: string, value: number) => void;

function nodeFigures(span: Span, put: Put): void {
  put('nodes', sumOf(span.now, 'megaplane_nodes'));
  put('nodesReady', sumOf(span.now, 'megaplane_nodes_ready'));
  put('podsBound', sumOf(span.now, 'megaplane_pods_bound'));
  put('podsRunning', sumOf(span.now, 'megaplane_pods_running'));
  const running = sumOf(span.now, 'megaplane_pods_running');
  const ranBefore = sumOf(span.before, 'megaplane_pods_running');
  put('podsRunningPerS', Math.max(0, running - ranBefore) / span.seconds);
  put('renewalsPerS', rateOf(span, 'megaplane_lease_renewals_total'));
  put('latenessP50', quantileBetween(span, NODE_LEASES, 0.5));
  put('latenessP99', quantileBetween(span, NODE_LEASES, 0.99));
}

const verbOf = (labels: string): string => labelOf(labels, 'verb');
const isOf =
  (resource: string, subresource = '') =>
  (labels: string): boolean =>
    labelOf(labels, 'resource') === resource && labelOf(labels, 'subresource') === subresource;
const isGood = (labels: string): boolean => labelOf(labels, 'code').startsWith('2');

function serverFigures(span: Span, put: Put): void {
  const total = 'apiserver_request_total';
  const rate = (isMeant: (labels: string) => boolean): number => rateOf(span, total, isMeant);
  put(
    'readsPerS',
    rate((labels) => READS.has(verbOf(labels))),
  );
  put(
    'writesPerS',
    rate((labels) => WRITES.has(verbOf(labels))),
  );
  put(
    'leaseWritesPerS',
    rate((labels) => isOf('leases')(labels) && WRITES.has(verbOf(labels))),
  );
  put(
    'errorsPerS',
    rate((labels) => /^[45]/.test(labelOf(labels, 'code'))),
  );
  const isCreated = (labels: string): boolean => verbOf(labels) === 'POST' && isGood(labels);
  put(
    'nodesCreatedPerS',
    rate((labels) => isOf('nodes')(labels) && isCreated(labels)),
  );
  put(
    'podsCreatedPerS',
    rate((labels) => isOf('pods')(labels) && isCreated(labels)),
  );
  put(
    'podsBoundPerS',
    rate((labels) => isOf('pods', 'binding')(labels) && isCreated(labels)),
  );
  put(
    'podStatusPerS',
    rate((labels) => isOf('pods', 'status')(labels) && WRITES.has(verbOf(labels))),
  );
  for (const [name, verbs] of [
    ['write', WRITES],
    ['read', READS],
  ] as const) {
    const isMeant = (labels: string): boolean => verbs.has(verbOf(labels));
    for (const part of [0.5, 0.99]) {
      put(`${name}P${part * 100}`, quantileBetween(span, DURATION, part, isMeant));
    }
  }
  put('watches', sumOf(span.now, 'apiserver_longrunning_requests'));
  put('watchEventsPerS', rateOf(span, 'apiserver_watch_events_total'));
  put('watchBytesPerS', rateOf(span, 'apiserver_watch_events_sizes_sum'));
  put('inflight', sumOf(span.now, 'apiserver_current_inflight_requests'));
  put('inqueue', sumOf(span.now, 'apiserver_flowcontrol_current_inqueue_requests'));
  put('shedPerS', rateOf(span, 'apiserver_flowcontrol_rejected_requests_total'));
  put('heapBytes', sumOf(span.now, 'nodejs_heap_size_used_bytes'));
  put('externalBytes', sumOf(span.now, 'nodejs_external_memory_bytes'));
  put('gcSecondsPerS', rateOf(span, 'nodejs_gc_duration_seconds_sum'));
}

function revisionOf(families: Families): number {
  let revision = NaN;
  for (const value of families.get('apiserver_watch_cache_resource_version')?.values() ?? []) {
    if (!(value <= revision)) revision = value;
  }
  return revision;
}

function storeFigures(server: Span, store: Span, put: Put): void {
  const isGoodWrite = (labels: string): boolean => WRITES.has(verbOf(labels)) && isGood(labels);
  const grown = revisionOf(server.now) - revisionOf(server.before);
  put('revision', revisionOf(server.now));
  put('revisionsPerS', grown >= 0 ? grown / server.seconds : NaN);
  put('putsPerS', rateOf(server, 'apiserver_request_total', isGoodWrite));
  put(
    'objects',
    sumOf(server.now, 'apiserver_resource_objects', (labels) => labels !== ''),
  );
  put('storeBytes', sumOf(server.now, 'apiserver_storage_size_bytes'));
  const puts = rateOf(store, 'etcd_mvcc_put_total');
  if (Number.isNaN(puts)) return;
  put('putsPerS', puts);
  put('storeBytes', sumOf(store.now, 'etcd_mvcc_db_total_size_in_bytes'));
  put('storeWatchers', sumOf(store.now, 'etcd_debugging_mvcc_watcher_total'));
  put('storeEventsPerS', rateOf(store, 'etcd_debugging_mvcc_events_total'));
  put('logBytesPerS', rateOf(store, 'etcd_disk_wal_write_bytes_total'));
  put('fsyncP99', quantileBetween(store, 'etcd_disk_wal_fsync_duration_seconds', 0.99));
}

function schedulerFigures(span: Span, put: Put): void {
  const attempts = 'scheduler_schedule_attempts_total';
  const isScheduled = (labels: string): boolean => labelOf(labels, 'result') === 'scheduled';
  put('pending', sumOf(span.now, 'scheduler_pending_pods'));
  put('scheduledPerS', rateOf(span, attempts, isScheduled));
  put('attemptsPerS', rateOf(span, attempts));
  put('attemptP50', quantileBetween(span, 'scheduler_scheduling_attempt_duration_seconds', 0.5));
  put('attemptP99', quantileBetween(span, 'scheduler_scheduling_attempt_duration_seconds', 0.99));
  put('podE2eP50', quantileBetween(span, 'scheduler_pod_scheduling_sli_duration_seconds', 0.5));
  put('podE2eP99', quantileBetween(span, 'scheduler_pod_scheduling_sli_duration_seconds', 0.99));
}

/** Of a program elsewhere, what it says of itself. */
function processFigures(before: Look, now: Look, put: Put): void {
  for (const [name, seen] of now.seen) {
    const span = spanOf(before, now, name);
    const old = before.seen.get(name);
    const isLocal = Number.isFinite(seen.cpuSeconds);
    const used = seen.cpuSeconds - (old?.cpuSeconds ?? NaN);
    put(
      `cpu.${name}`,
      isLocal ? Math.max(0, used) / span.seconds : rateOf(span, 'process_cpu_seconds_total'),
    );
    const told = sumOf(span.now, 'process_resident_memory_bytes');
    put(`rss.${name}`, isLocal ? seen.rssMib * 2 ** 20 : told);
  }
}
