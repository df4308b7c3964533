/**
 * `/metrics` under etcd's names, so that its stock alerts and dashboards work unchanged. What one
 * member without consensus cannot have (peers, elections) is there with the value that keeps the
 * alerts quiet. What is ours alone is called `megaplane_store_*`.
 */
import { BoundedHistogram } from '@megaplane/base/histogram';
import { DiskTimes } from '@megaplane/store/disk-times';
import { APPLIED, type CallTimes, doubled } from '../call/call-measures.ts';
import type { EtcdContext } from '../call/context.ts';
import { ETCD_VERSION, bytesInUse, bytesTaken } from '../maintenance/maintenance.ts';
import type { MethodCount, ServedMethods } from '../call/served-methods.ts';
import type { WatchService } from '../watch/watch.ts';
import { Exposition, type Labels, labelText } from './exposition.ts';
import type { Health } from './health.ts';
import type { ProcessStats } from './process-stats.ts';

export interface MetricSources {
  readonly context: EtcdContext;
  readonly watches: WatchService;
  readonly methods: ServedMethods;
  readonly health: Health;
  /** Null without a data directory. */
  readonly disk: DiskTimes | null;
  readonly process: () => ProcessStats;
  readonly authRevision: () => number;
  /** Scrapes answered before this one. */
  readonly scrapes: number;
}

const CODE_NAMES = [
  ...['OK', 'Canceled', 'Unknown', 'InvalidArgument', 'DeadlineExceeded', 'NotFound'],
  ...['AlreadyExists', 'PermissionDenied', 'ResourceExhausted', 'FailedPrecondition', 'Aborted'],
  ...['OutOfRange', 'Unimplemented', 'Internal', 'Unavailable', 'DataLoss', 'Unauthenticated'],
] as const;
/** Histograms of etcd that have nothing to measure here: name, first bound, number of bounds. */
const UNUSED: readonly (readonly [string, number, number])[] = [
  ['etcd_debugging_disk_backend_commit_rebalance_duration_seconds', 0.001, 14],
  ['etcd_debugging_disk_backend_commit_spill_duration_seconds', 0.001, 14],
  ['etcd_debugging_disk_backend_commit_write_duration_seconds', 0.001, 14],
  ['etcd_debugging_mvcc_index_compaction_pause_duration_milliseconds', 0.5, 14],
  ['etcd_debugging_snap_save_marshalling_duration_seconds', 0.001, 14],
  ['etcd_debugging_snap_save_total_duration_seconds', 0.001, 14],
  ['etcd_network_peer_round_trip_time_seconds', 0.0001, 16],
  ['etcd_snap_db_fsync_duration_seconds', 0.001, 14],
  ['etcd_snap_db_save_total_duration_seconds', 0.1, 10],
  ['etcd_snap_fsync_duration_seconds', 0.001, 14],
];
/** etcd's feature gates: leases are always checkpointed here, the rest is another store's. */
const FEATURES = [
  ...['CompactHashCheck', 'InitialCorruptCheck', 'LeaseCheckpoint', 'LeaseCheckpointPersist'],
  ...['SetMemberLocalAddr', 'StopGRPCServiceOnDefrag', 'TxnModeWriteWithSharedBuffer'],
];
/** Methods whose series of codes, seventeen each, are one part. */
const METHODS_PER_PART = 16;
const NO_TIMES = new DiskTimes();
const DURABILITIES = ['none', 'buffered', 'fsync'] as const;

/** The text, in parts of some tenths of a millisecond. */
export function* metricsText(sources: MetricSources): Generator<void, string> {
  const out = new Exposition();
  const stats = sources.process();
  yield;
  server(out, sources);
  sources.health.expose(out);
  mvcc(out, sources);
  yield;
  compactions(out, sources, stats.startSeconds);
  leases(out, sources);
  applied(out, sources);
  yield;
  disk(out, sources);
  yield;
  network(out, sources);
  yield;
  yield* grpc(out, sources);
  own(out, sources);
  processOf(out, stats);
  runtimeOf(out, sources, stats);
  scrapesOf(out, sources.scrapes);
  yield;
  return out.text();
}

function server(out: Exposition, { context, authRevision }: MetricSources): void {
  const { store } = context;
  const minor = `${ETCD_VERSION.split('.').slice(0, 2).join('.')}`;
  const memberId = context.memberId.toString('hex').replace(/^0+/, '');
  const gauge = (name: string, help: string, value: number, labels: Labels = {}): void =>
    out.gauge(`etcd_server_${name}`, help, value, labels);
  const counter = (name: string, help: string, value: number): void =>
    out.counter(`etcd_server_${name}`, help, value);
  out.gauge('etcd_cluster_version', 'The cluster version, 1 for the one running.', 1, {
    cluster_version: minor,
  });
  out.gauge('etcd_server_version', 'The version, 1 for the one running.', 1, {
    server_version: ETCD_VERSION,
  });
  out.gauge('etcd_server_id', 'The member id in hexadecimal, 1.', 1, { server_id: memberId });
  out.gauge('etcd_server_go_version', 'Not written in Go.', 1, { server_go_version: 'none' });
  for (const name of FEATURES) {
    const stage = name.startsWith('Txn') ? 'BETA' : 'ALPHA';
    const value = name.startsWith('Lease') ? 1 : 0;
    gauge('feature_enabled', 'Gates of etcd, 1 where it is so here.', value, { name, stage });
  }
  const { group } = context;
  gauge('has_leader', '1 if there is a leader.', group?.hasLeader === false ? 0 : 1);
  gauge('is_leader', '1 if this member leads.', group?.isLeader === false ? 0 : 1);
  gauge('is_learner', 'A store of one member never learns.', 0);
  counter('leader_changes_seen_total', 'Leader changes seen.', group?.leaderChanges ?? 1);
  counter('heartbeat_send_failures_total', 'Heartbeats that could not be sent.', 0);
  counter('slow_apply_total', 'Applies that took too long.', 0);
  counter('slow_read_indexes_total', 'Reads that waited too long for consensus.', 0);
  counter('read_indexes_failed_total', 'Reads that failed for lack of consensus.', 0);
  counter('learner_promote_successes', 'Learners promoted.', 0);
  gauge('snapshot_apply_in_progress_total', 'Snapshots being applied.', 0);
  gauge('proposals_committed_total', 'Revisions as durable as promised.', store.publishedRevision);
  gauge('proposals_applied_total', 'Revisions applied.', store.appliedRevision);
  const pending = store.appliedRevision - store.publishedRevision;
  gauge('proposals_pending', 'Revisions that wait for the log.', pending);
  counter('proposals_failed_total', 'Writes that failed in the log.', 0);
  out.gauge('etcd_debugging_auth_revision', 'Revision of users and roles.', authRevision());
  gauge('quota_backend_bytes', 'Space quota in bytes, 0 for none.', context.limits.quotaBytes);
}

function mvcc(out: Exposition, { context, watches, methods }: MetricSources): void {
  const { store } = context;
  const { hub } = store;
  const total = bytesTaken(context);
  const used = bytesInUse(context);
  const served = (path: string): number =>
    methods.counts.find((count) => `${count.service}/${count.method}` === path)?.handled[0] ?? 0;
  out.gauge('etcd_mvcc_db_total_size_in_bytes', 'Bytes of memory taken.', total);
  out.gauge('etcd_mvcc_db_total_size_in_use_in_bytes', 'Bytes of memory in use.', used);
  out.gauge('etcd_mvcc_db_open_read_transactions', 'Reads under way; they never block.', 0);
  const calls = [
    ['put', 'Puts.', store.puts],
    ['delete', 'Deletes.', store.deletes],
    ['txn', 'Transactions.', served('etcdserverpb.KV/Txn')],
    ['range', 'Ranges.', served('etcdserverpb.KV/Range')],
  ] as const;
  // Dashboards of etcd 3.4 and before ask for the second name.
  for (const prefix of ['etcd_mvcc', 'etcd_debugging_mvcc']) {
    for (const [name, help, value] of calls) out.counter(`${prefix}_${name}_total`, help, value);
  }
  const debug = (name: string, help: string, value: number): void =>
    out.gauge(`etcd_debugging_mvcc_${name}`, help, value);
  debug('db_total_size_in_bytes', 'Bytes of memory taken.', total);
  debug('keys_total', 'Keys alive.', store.live.size);
  debug('current_revision', 'The current revision.', store.publishedRevision);
  debug('compact_revision', 'The last compaction.', Math.max(0, store.compactRevision));
  debug('watcher_total', 'Watches.', hub.size);
  debug('watch_stream_total', 'Streams of watches.', watches.streamCount);
  debug('slow_watcher_total', 'Watches whose client does not keep up.', watches.slowCount);
  debug('pending_events_total', 'Events queued; watches are cursors and queue none.', 0);
  out.counter('etcd_debugging_mvcc_events_total', 'Events sent.', watches.eventCount);
  debug('total_put_size_in_bytes', 'Bytes of keys and values put so far.', store.putBytes);
}

function compactions(out: Exposition, { context }: MetricSources, startSeconds: number): void {
  const { compactions: whole, slices, compactedMs, dropped } = context.store.sweep;
  const name = 'etcd_debugging_mvcc_db_compaction';
  const lastSeconds = compactedMs < 0 ? 0 : startSeconds + compactedMs / 1000;
  out.gauge(`${name}_last`, 'When the last one was done, seconds since 1970.', lastSeconds);
  out.counter(`${name}_keys_total`, 'Versions dropped.', dropped);
  out.histogram(`${name}_pause_duration_milliseconds`, 'Slices of compactions.', slices);
  const total = 'Compactions, until all memory behind them is given back.';
  out.histogram(`${name}_total_duration_milliseconds`, total, whole);
}

function leases(out: Exposition, { context }: MetricSources): void {
  const { leases: table } = context.store;
  const counter = (name: string, help: string, value: number): void =>
    out.counter(`etcd_debugging_${name}`, help, value);
  const ttls = 'Seconds to live of the leases granted.';
  out.histogram('etcd_debugging_lease_ttl_total', ttls, context.measures.leaseTtls);
  counter('lease_granted_total', 'Leases granted.', table.granted);
  counter('lease_revoked_total', 'Leases revoked.', table.revoked);
  counter('lease_renewed_total', 'Leases renewed.', table.renewed);
  counter('server_lease_expired_total', 'Leases expired.', table.expired);
}

/** What changed something, by operation, and reads; failures once there are some, as in Go. */
function applied(out: Exposition, { context }: MetricSources): void {
  const { measures } = context;
  const show = (name: string, times: CallTimes, labels: Labels): void => {
    const help = 'Calls, one in eight of them timed for all.';
    const { failed, done } = times;
    if (failed.count > 0) out.histogram(name, help, failed, { ...labels, success: 'false' });
    out.histogram(name, help, done, { ...labels, success: 'true' });
  };
  for (const [index, times] of measures.applied.entries()) {
    const labels = { version: 'v3', op: APPLIED[index] ?? '' };
    show('etcd_server_apply_duration_seconds', times, labels);
  }
  show('etcd_server_range_duration_seconds', measures.ranges, {});
}

function disk(out: Exposition, { disk: found, context }: MetricSources): void {
  const times = found ?? NO_TIMES;
  const { hashes, revisionHashes, defragments, defragmenting } = context.measures;
  const name = (what: string): string => `etcd_disk_${what}_duration_seconds`;
  out.histogram(name('wal_fsync'), 'Flushes that answers wait for.', times.flushes);
  out.histogram(name('wal_write'), 'Writes of the log.', times.writes);
  out.gauge('etcd_disk_wal_write_bytes_total', 'Bytes logged.', times.writtenBytes);
  // There is no backend beside the log: its commit is the log's flush.
  out.histogram(name('backend_commit'), 'Commits, here the flushes of the log.', times.flushes);
  out.histogram(name('backend_snapshot'), 'Snapshots of the log.', times.snapshots);
  const inflight = defragmenting > 0 ? 1 : 0;
  out.gauge('etcd_disk_defrag_inflight', '1 while defragmenting; it does not block.', inflight);
  out.histogram(name('backend_defrag'), 'Defragmentations.', defragments);
  out.histogram('etcd_mvcc_hash_duration_seconds', 'Hashes of everything.', hashes);
  out.histogram('etcd_mvcc_hash_rev_duration_seconds', 'HashKV.', revisionHashes);
  for (const [unused, first, count] of UNUSED) {
    const none = new BoundedHistogram(doubled(first, count));
    out.histogram(unused, 'Not measured: nothing here does it.', none);
  }
}

function network(out: Exposition, { methods }: MetricSources): void {
  const { receivedBytes, sentBytes } = methods;
  const bytes = 'etcd_network_client_grpc_';
  out.gauge('etcd_network_known_peers', 'Peers; a store of one member has none.', 0);
  out.gauge('etcd_network_active_peers', 'Peers; a store of one member has none.', 0);
  for (const what of ['received', 'sent']) {
    out.counter(`etcd_network_peer_${what}_bytes_total`, 'Bytes of peers.', 0);
    out.counter(`etcd_network_peer_${what}_failures_total`, 'Failures of peers.', 0);
  }
  out.counter(`${bytes}received_bytes_total`, 'Bytes of messages from clients.', receivedBytes);
  out.counter(`${bytes}sent_bytes_total`, 'Bytes of messages to clients.', sentBytes);
  for (const count of methods.counts) {
    if (count.type === 'unary') continue;
    const labels = { Type: 'send', API: streamName(count.method) };
    const name = 'etcd_network_server_stream_failures_total';
    out.counter(name, 'Streams that broke.', count.broken, labels);
  }
  const labels = methods.clientLabels.entries();
  for (const [index, { type, version }] of labels) {
    out.counter(
      'etcd_server_client_requests_total',
      'Requests by version of the client.',
      methods.clientCalls[index] ?? 0,
      { type, client_api_version: version },
    );
  }
}

/** A method as etcd's failures of streams are labelled. */
function streamName(method: string): string {
  return method === 'LeaseKeepAlive' ? 'lease-keepalive' : method.toLowerCase();
}

/** A method's labels, alone and with each code, as text. */
interface MethodLabels {
  readonly all: string;
  readonly codes: readonly string[];
}

/** Made once: they are half of a scrape's work. */
const methodLabels: WeakMap<MethodCount, MethodLabels> = new WeakMap();

function labelsOf(count: MethodCount): MethodLabels {
  const known = methodLabels.get(count);
  if (known !== undefined) return known;
  const labels = {
    grpc_method: count.method,
    grpc_service: count.service,
    grpc_type: count.type,
  };
  const codes = CODE_NAMES.map((name) => labelText({ grpc_code: name, ...labels }));
  const made = { all: labelText(labels), codes };
  methodLabels.set(count, made);
  return made;
}

function* grpc(out: Exposition, { methods }: MetricSources): Generator<void> {
  const { counts } = methods;
  const total = (count: MethodCount): number => count.handled.reduce((sum, one) => sum + one, 0);
  for (const count of counts) {
    out.counter('grpc_server_started_total', 'Calls started.', count.started, labelsOf(count).all);
  }
  yield;
  for (const [index, count] of counts.entries()) {
    for (const [code, labels] of labelsOf(count).codes.entries()) {
      // Zeros as well, as Go's middleware does: a rate needs a value before the first failure.
      const handled = count.handled[code] ?? 0;
      out.counter('grpc_server_handled_total', 'Calls ended, by code.', handled, labels);
    }
    if (index % METHODS_PER_PART === 0) yield;
  }
  for (const count of counts) {
    const received = count.type === 'unary' ? count.started : count.received;
    const labels = labelsOf(count).all;
    out.counter('grpc_server_msg_received_total', 'Messages received.', received, labels);
  }
  for (const count of counts) {
    const sent = count.type === 'unary' ? total(count) : count.sent;
    out.counter('grpc_server_msg_sent_total', 'Messages sent.', sent, labelsOf(count).all);
  }
  yield;
  for (const count of counts) {
    if (count.seconds === null) continue;
    const { method, service, type, seconds } = count;
    const labels = { grpc_method: method, grpc_service: service, grpc_type: type };
    out.histogram('grpc_server_handling_seconds', 'Time per call.', seconds, labels);
    yield;
  }
}

function own(out: Exposition, { context }: MetricSources): void {
  const { classes } = context.store;
  for (const klass of classes.all) {
    for (const durability of DURABILITIES) {
      const labels = { prefix: klass.prefix.toString(), durability };
      const value = klass.durability === durability ? 1 : 0;
      const help = 'The promise made for a prefix of keys.';
      out.gauge('megaplane_store_durability', help, value, labels);
    }
  }
  for (const klass of classes.all) {
    const labels = { prefix: klass.prefix.toString() };
    const help = 'Bytes of superseded versions.';
    out.gauge('megaplane_store_history_bytes', help, klass.historyBytes, labels);
  }
}

function processOf(out: Exposition, stats: ProcessStats): void {
  out.counter('process_cpu_seconds_total', 'CPU seconds used.', stats.cpuSeconds);
  out.gauge('process_resident_memory_bytes', 'Resident memory.', stats.residentBytes);
  out.gauge('process_virtual_memory_bytes', 'Virtual memory.', stats.virtualBytes);
  out.gauge('process_virtual_memory_max_bytes', 'Limit of it.', stats.virtualBytesMax);
  out.gauge('process_start_time_seconds', 'Start, seconds since 1970.', stats.startSeconds);
  out.gauge('process_open_fds', 'Open files.', stats.openFds);
  out.gauge('process_max_fds', 'Limit of open files.', stats.maxFds);
  const stall = 'Longest that the event loop was late since this was last read.';
  out.gauge('megaplane_event_loop_stall_seconds', stall, stats.stallSeconds);
  out.gauge('os_fd_used', 'Open files.', stats.openFds);
  out.gauge('os_fd_limit', 'Limit of open files.', stats.maxFds);
}

/** What Prometheus' handler in Go tells of itself; this scrape is under way. */
function scrapesOf(out: Exposition, scrapes: number): void {
  const name = 'promhttp_metric_handler_requests';
  out.gauge(`${name}_in_flight`, 'Scrapes under way.', 1);
  for (const code of ['200', '500', '503']) {
    const value = code === '200' ? scrapes : 0;
    out.counter(`${name}_total`, 'Scrapes by status.', value, { code });
  }
}

/**
 * What dashboards of Go programs ask for, with what comes nearest in this one. Memory that is not
 * the JavaScript heap's, where records lie, counts as used.
 */
function runtimeOf(out: Exposition, { methods }: MetricSources, stats: ProcessStats): void {
  const { heap, pauses } = stats;
  let underWay = 0;
  for (const { started, handled } of methods.counts) {
    underWay += handled.reduce((left, one) => left - one, started);
  }
  out.gauge('go_goroutines', 'Calls and streams under way.', Math.max(0, underWay));
  out.gauge('go_threads', 'Threads of the process.', stats.threads);
  out.gauge('go_info', 'Not written in Go.', 1, { version: 'none' });
  out.summary('go_gc_duration_seconds', 'Pauses to collect garbage.', pauses);
  const memory = (name: string, help: string, bytes: number): void =>
    out.gauge(`go_memstats_${name}_bytes`, help, bytes);
  memory('alloc', 'Memory in use, of the heap and beside it.', heap.used + heap.beside);
  memory('sys', 'Memory taken, of the heap and beside it.', heap.total + heap.beside);
  memory('heap_alloc', 'Memory in use, of the heap and beside it.', heap.used + heap.beside);
  memory('heap_inuse', 'Memory in use, of the heap and beside it.', heap.used + heap.beside);
  memory('heap_idle', 'Memory of the heap that is not in use.', heap.total - heap.used);
  memory('heap_sys', 'Memory taken, of the heap and beside it.', heap.total + heap.beside);
  const last = 'When garbage was last collected, seconds since 1970.';
  out.gauge('go_memstats_last_gc_time_seconds', last, stats.collectedSeconds);
}
