/** Dashboards of the store and of the API server. */
import { now, PROCESS, quantiles, rate, sum, type Dashboard } from './panels.ts';

export const STORE: Dashboard = {
  name: 'store',
  title: 'Megaplane / Store',
  sign: 'etcd_debugging_mvcc_current_revision',
  rows: [
    {
      title: 'Requests',
      panels: [
        {
          title: 'Revisions per second',
          unit: 'ops',
          queries: { '{{instance}}': rate('etcd_debugging_mvcc_current_revision') },
        },
        {
          title: 'Calls by method',
          unit: 'ops',
          queries: { '{{grpc_method}}': sum('grpc_method', rate('grpc_server_started_total')) },
        },
        {
          title: 'Failed calls',
          unit: 'ops',
          queries: {
            '{{grpc_method}} {{grpc_code}}': sum(
              'grpc_method, grpc_code',
              rate('grpc_server_handled_total', 'grpc_code!="OK"'),
            ),
          },
        },
        {
          title: 'Puts, deletes, transactions, ranges',
          unit: 'ops',
          queries: {
            puts: rate('etcd_mvcc_put_total'),
            deletes: rate('etcd_mvcc_delete_total'),
            transactions: rate('etcd_mvcc_txn_total'),
            ranges: rate('etcd_mvcc_range_total'),
          },
        },
        {
          title: 'Time to apply',
          unit: 's',
          queries: quantiles('etcd_server_apply_duration_seconds', 'op'),
        },
        {
          title: 'Bytes of clients',
          unit: 'Bps',
          queries: {
            received: rate('etcd_network_client_grpc_received_bytes_total'),
            sent: rate('etcd_network_client_grpc_sent_bytes_total'),
          },
        },
      ],
    },
    {
      title: 'Watches and leases',
      panels: [
        {
          title: 'Watchers',
          unit: 'short',
          queries: {
            watchers: now('etcd_debugging_mvcc_watcher_total'),
            streams: now('etcd_debugging_mvcc_watch_stream_total'),
            slow: now('etcd_debugging_mvcc_slow_watcher_total'),
          },
        },
        {
          title: 'Events per second',
          unit: 'ops',
          queries: { events: rate('etcd_debugging_mvcc_events_total') },
        },
        {
          title: 'Events that wait',
          unit: 'short',
          queries: { events: now('etcd_debugging_mvcc_pending_events_total') },
        },
        {
          title: 'Leases',
          unit: 'ops',
          queries: {
            granted: rate('etcd_debugging_lease_granted_total'),
            renewed: rate('etcd_debugging_lease_renewed_total'),
            revoked: rate('etcd_debugging_lease_revoked_total'),
            expired: rate('etcd_debugging_server_lease_expired_total'),
          },
        },
      ],
    },
    {
      title: 'Memory, log, stalls',
      panels: [
        {
          title: 'Size',
          unit: 'bytes',
          queries: {
            taken: now('etcd_mvcc_db_total_size_in_bytes'),
            'in use': now('etcd_mvcc_db_total_size_in_use_in_bytes'),
          },
        },
        { title: 'Keys', unit: 'short', queries: { keys: now('etcd_debugging_mvcc_keys_total') } },
        {
          title: 'History by prefix',
          unit: 'bytes',
          queries: { '{{prefix}}': now('megaplane_store_history_bytes') },
        },
        {
          title: 'Flushes of the log',
          unit: 's',
          queries: quantiles('etcd_disk_wal_fsync_duration_seconds'),
          says: 'What a write with durability fsync waits for; many writes share one flush.',
        },
        {
          title: 'Longest stall of the main thread',
          unit: 's',
          queries: { '{{instance}}': now('megaplane_event_loop_stall_seconds') },
        },
        {
          title: 'Compaction',
          unit: 'ops',
          queries: { keys: rate('etcd_debugging_mvcc_db_compaction_keys_total') },
        },
        ...PROCESS,
      ],
    },
  ],
};

export const APISERVER: Dashboard = {
  name: 'apiserver',
  title: 'Megaplane / API server',
  sign: 'apiserver_current_inflight_requests',
  rows: [
    {
      title: 'Requests',
      panels: [
        {
          title: 'By verb',
          unit: 'ops',
          queries: { '{{verb}}': sum('verb', rate('apiserver_request_total')) },
        },
        {
          title: 'By resource',
          unit: 'ops',
          queries: {
            '{{resource}}': `topk(10, ${sum('resource', rate('apiserver_request_total'))})`,
          },
        },
        {
          title: 'By code',
          unit: 'ops',
          queries: { '{{code}}': sum('code', rate('apiserver_request_total')) },
        },
        {
          title: 'Time by verb, but watches',
          unit: 's',
          queries: quantiles('apiserver_request_duration_seconds', 'verb', 'verb!~"WATCH|CONNECT"'),
        },
        {
          title: 'Time of lists by resource',
          unit: 's',
          queries: quantiles('apiserver_request_duration_seconds', 'resource', 'verb="LIST"'),
        },
        {
          title: 'Bytes of answers',
          unit: 'Bps',
          queries: { '{{verb}}': sum('verb', rate('apiserver_response_sizes_sum')) },
        },
        {
          title: 'In flight',
          unit: 'short',
          queries: { '{{request_kind}}': now('apiserver_current_inflight_requests') },
        },
        {
          title: 'Dropped',
          unit: 'ops',
          queries: { dropped: rate('apiserver_dropped_requests_total') },
        },
      ],
    },
    {
      title: 'Watches and objects',
      panels: [
        {
          title: 'Watches by resource',
          unit: 'short',
          queries: {
            '{{resource}}': sum('resource', now('apiserver_longrunning_requests', 'verb="WATCH"')),
          },
        },
        {
          title: 'Events by resource',
          unit: 'ops',
          queries: { '{{resource}}': sum('resource', rate('apiserver_watch_events_total')) },
        },
        {
          title: 'Bytes of events',
          unit: 'Bps',
          queries: { '{{resource}}': sum('resource', rate('apiserver_watch_events_sizes_sum')) },
        },
        {
          title: 'Objects',
          unit: 'short',
          queries: { '{{resource}}': `topk(10, ${now('apiserver_storage_objects')})` },
        },
        {
          title: 'Size of the storage',
          unit: 'bytes',
          queries: { '{{storage_cluster_id}}': now('apiserver_storage_size_bytes') },
        },
      ],
    },
    {
      title: 'Fairness and admission',
      panels: [
        {
          title: 'Seats in use',
          unit: 'short',
          queries: {
            '{{priority_level}}': sum(
              'priority_level',
              now('apiserver_flowcontrol_current_executing_seats'),
            ),
          },
        },
        {
          title: 'Requests that wait',
          unit: 'short',
          queries: {
            '{{priority_level}}': sum(
              'priority_level',
              now('apiserver_flowcontrol_current_inqueue_requests'),
            ),
          },
        },
        {
          title: 'Waiting for a seat',
          unit: 's',
          queries: quantiles(
            'apiserver_flowcontrol_request_wait_duration_seconds',
            'priority_level',
          ),
        },
        {
          title: 'Admission by plug-in',
          unit: 's',
          queries: quantiles('apiserver_admission_controller_admission_duration_seconds', 'name'),
        },
      ],
    },
    {
      title: 'Process',
      panels: [
        ...PROCESS,
        {
          title: 'Heap',
          unit: 'bytes',
          queries: {
            total: now('nodejs_heap_size_total_bytes'),
            used: now('nodejs_heap_size_used_bytes'),
            'outside of it': now('nodejs_external_memory_bytes'),
          },
        },
        {
          title: 'Network',
          unit: 'Bps',
          queries: {
            received: rate('process_network_receive_bytes_total'),
            sent: rate('process_network_transmit_bytes_total'),
          },
        },
      ],
    },
  ],
};
