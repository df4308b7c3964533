/** The plain HTTP paths beside gRPC: health, version, metrics. */
import type { Exchange, Handler } from '@megaplane/wire/exchange';
import { FAILURE } from '@megaplane/store/contract';
import type { EtcdContext } from './context.ts';
import { ETCD_VERSION, bytesInUse } from './maintenance.ts';
import type { WatchService } from './watch.ts';

const JSON_TYPE = 'application/json';
const TEXT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

function version(exchange: Exchange): void {
  const cluster = `${ETCD_VERSION.split('.').slice(0, 2).join('.')}.0`;
  const body = { etcdserver: ETCD_VERSION, etcdcluster: cluster, storage: cluster };
  exchange.respond(200, JSON_TYPE, JSON.stringify(body));
}

function health(context: EtcdContext, exchange: Exchange): void {
  const isFailed = context.store.admit(0) === FAILURE.logFailed;
  const reason = isFailed ? 'the log cannot be written' : '';
  const body = JSON.stringify({ health: isFailed ? 'false' : 'true', reason });
  exchange.respond(isFailed ? 503 : 200, JSON_TYPE, body);
}

interface Metric {
  readonly name: string;
  readonly type: 'counter' | 'gauge';
  readonly value: number;
}

function metrics(context: EtcdContext, watches: WatchService): readonly Metric[] {
  const { store } = context;
  const { leases, arenas, hub } = store;
  const counter = (name: string, value: number): Metric => ({ name, type: 'counter', value });
  const gauge = (name: string, value: number): Metric => ({ name, type: 'gauge', value });
  return [
    gauge('etcd_server_has_leader', 1),
    gauge('etcd_server_is_leader', 1),
    counter('etcd_server_leader_changes_seen_total', 0),
    counter('etcd_server_proposals_committed_total', store.publishedRevision),
    counter('etcd_server_proposals_applied_total', store.appliedRevision),
    gauge('etcd_server_proposals_pending', store.appliedRevision - store.publishedRevision),
    counter('etcd_server_proposals_failed_total', 0),
    gauge('etcd_server_quota_backend_bytes', context.limits.quotaBytes),
    gauge('etcd_mvcc_db_total_size_in_bytes', arenas.allocatedBytes),
    gauge('etcd_mvcc_db_total_size_in_use_in_bytes', bytesInUse(context)),
    counter('etcd_mvcc_put_total', store.puts),
    counter('etcd_mvcc_delete_total', store.deletes),
    gauge('etcd_debugging_mvcc_keys_total', store.live.size),
    gauge('etcd_debugging_mvcc_current_revision', store.publishedRevision),
    gauge('etcd_debugging_mvcc_compact_revision', Math.max(0, store.compactRevision)),
    gauge('etcd_debugging_mvcc_watcher_total', hub.size),
    gauge('etcd_debugging_mvcc_watch_stream_total', watches.streamCount),
    counter('etcd_debugging_lease_granted_total', leases.granted),
    counter('etcd_debugging_lease_revoked_total', leases.revoked),
    counter('etcd_debugging_lease_renewed_total', leases.renewed),
    counter('etcd_debugging_server_lease_expired_total', leases.expired),
  ];
}

function metricsText(context: EtcdContext, watches: WatchService): string {
  return metrics(context, watches)
    .map(({ name, type, value }) => `# TYPE ${name} ${type}\n${name} ${value}\n`)
    .join('');
}

/** Answers GET on /health, /version, /metrics, /livez and /readyz; 404 for the rest. */
export function httpHandler(context: EtcdContext, watches: WatchService): Handler {
  return (exchange) => {
    const path = exchange.path.split('?')[0];
    const isKnown = ['/health', '/version', '/metrics', '/livez', '/readyz'].includes(path ?? '');
    if (!isKnown) {
      exchange.respond(404, 'text/plain; charset=utf-8', '404 page not found\n');
    } else if (exchange.method !== 'GET') {
      exchange.respond(405, 'text/plain; charset=utf-8', 'Method Not Allowed\n', ['allow', 'GET']);
    } else if (path === '/version') version(exchange);
    else if (path === '/health') health(context, exchange);
    else if (path === '/metrics') exchange.respond(200, TEXT_TYPE, metricsText(context, watches));
    else exchange.respond(200, 'text/plain; charset=utf-8', 'ok\n');
  };
}
