/**
 * The dashboards of each part, as data: what each panel asks, and in which unit it answers. They
 * ask what the founding experiment's dashboard asked. `tools/dashboards.ts` writes them for Grafana.
 */

export interface Panel {
  readonly title: string;
  /** Query by legend; `$job`, `$instance` and the rate's interval are put in. */
  readonly queries: Readonly<Record<string, string>>;
  readonly unit: Unit;
  /** What somebody learns from it. */
  readonly says?: string;
}

export type Unit = 'short' | 'ops' | 's' | 'bytes' | 'Bps' | 'percentunit';

export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

export interface Dashboard {
  readonly name: Part;
  readonly title: string;
  /** A metric that this part alone has: where instances are looked for. */
  readonly sign: string;
  readonly rows: readonly Row[];
}

export type Part = 'store' | 'apiserver' | 'scheduler' | 'controllers' | 'nodes' | 'fleet';

const OF = 'instance=~"$instance"';
const rate = (metric: string, more = ''): string =>
  `rate(${metric}{${[OF, more].filter((one) => one !== '').join(',')}}[$__rate_interval])`;

/** Three quantiles of a histogram, by further labels where they are named. */
function quantiles(histogram: string, by = '', more = ''): Readonly<Record<string, string>> {
  const labels = by === '' ? 'le' : `le, ${by}`;
  const legend = by === '' ? '' : ` {{${by}}}`;
  return Object.fromEntries(
    [0.5, 0.95, 0.99].map((quantile) => [
      `p${quantile * 100}${legend}`,
      `histogram_quantile(${quantile}, sum by (${labels}) (${rate(`${histogram}_bucket`, more)}))`,
    ]),
  );
}

const sum = (by: string, query: string): string => `sum by (${by}) (${query})`;
const now = (metric: string, more = ''): string =>
  `${metric}{${[OF, more].filter((one) => one !== '').join(',')}}`;

const PROCESS: readonly Panel[] = [
  {
    title: 'Processor',
    unit: 'percentunit',
    queries: { '{{instance}}': rate('process_cpu_seconds_total') },
    says: 'A main thread is full at 100 %; threads for the log and for TLS come on top.',
  },
  {
    title: 'Memory',
    unit: 'bytes',
    queries: { '{{instance}}': now('process_resident_memory_bytes') },
  },
  { title: 'Descriptors', unit: 'short', queries: { '{{instance}}': now('process_open_fds') } },
];

const STORE: Dashboard = {
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

const APISERVER: Dashboard = {
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

const PROCESS_ROW: Row = {
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
  ],
};

const CALLS: Row = {
  title: 'Calls to the API server',
  panels: [
    {
      title: 'By method and code',
      unit: 'ops',
      queries: { '{{method}} {{code}}': sum('method, code', rate('rest_client_requests_total')) },
    },
    {
      title: 'Time',
      unit: 's',
      queries: quantiles('rest_client_request_duration_seconds', 'verb'),
    },
  ],
};

const SCHEDULER: Dashboard = {
  name: 'scheduler',
  title: 'Megaplane / Scheduler',
  sign: 'scheduler_pending_pods',
  rows: [
    {
      title: 'Pods',
      panels: [
        {
          title: 'Scheduled per second',
          unit: 'ops',
          queries: {
            scheduled: sum(
              'result',
              rate('scheduler_schedule_attempts_total', 'result="scheduled"'),
            ),
          },
        },
        {
          title: 'Attempts by result',
          unit: 'ops',
          queries: { '{{result}}': sum('result', rate('scheduler_schedule_attempts_total')) },
        },
        {
          title: 'Pending by queue',
          unit: 'short',
          queries: { '{{queue}}': sum('queue', now('scheduler_pending_pods')) },
        },
        {
          title: 'Unschedulable by plug-in',
          unit: 'short',
          queries: { '{{plugin}}': sum('plugin', now('scheduler_unschedulable_pods')) },
        },
        {
          title: 'From creation to binding',
          unit: 's',
          queries: quantiles('scheduler_pod_scheduling_sli_duration_seconds'),
        },
        {
          title: 'Preemptions',
          unit: 'ops',
          queries: { attempts: rate('scheduler_preemption_attempts_total') },
        },
      ],
    },
    {
      title: 'Decisions',
      panels: [
        {
          title: 'Ways of deciding',
          unit: 'ops',
          queries: { '{{way}}': sum('way', rate('megaplane_scheduler_decisions_total')) },
          says: 'An index answers in microseconds, full evaluation looks at each node.',
        },
        {
          title: 'Time of an attempt',
          unit: 's',
          queries: quantiles('scheduler_scheduling_attempt_duration_seconds', 'result'),
        },
        {
          title: 'Time by extension point',
          unit: 's',
          queries: quantiles(
            'scheduler_framework_extension_point_duration_seconds',
            'extension_point',
          ),
        },
        {
          title: 'Decisions that full evaluation does not share',
          unit: 'short',
          queries: { mismatched: now('megaplane_scheduler_mismatched_total') },
          says: 'Counted with --check-every. It must stay 0.',
        },
        {
          title: 'Bindings that failed',
          unit: 'ops',
          queries: { failed: rate('megaplane_scheduler_bind_failures_total') },
        },
        {
          title: 'Nodes and pods known',
          unit: 'short',
          queries: { '{{type}}': now('scheduler_cache_size') },
        },
        {
          title: 'Memory of tables',
          unit: 'bytes',
          queries: { tables: now('megaplane_scheduler_table_bytes') },
        },
      ],
    },
    CALLS,
    PROCESS_ROW,
  ],
};

const CONTROLLERS: Dashboard = {
  name: 'controllers',
  title: 'Megaplane / Controllers',
  sign: 'workqueue_depth',
  rows: [
    {
      title: 'Queues',
      panels: [
        { title: 'Depth', unit: 'short', queries: { '{{name}}': now('workqueue_depth') } },
        { title: 'Added', unit: 'ops', queries: { '{{name}}': rate('workqueue_adds_total') } },
        { title: 'Retried', unit: 'ops', queries: { '{{name}}': rate('workqueue_retries_total') } },
        {
          title: 'Waiting',
          unit: 's',
          queries: quantiles('workqueue_queue_duration_seconds', 'name'),
        },
        {
          title: 'Working',
          unit: 's',
          queries: quantiles('workqueue_work_duration_seconds', 'name'),
        },
        {
          title: 'Longest work that goes on',
          unit: 's',
          queries: { '{{name}}': now('workqueue_longest_running_processor_seconds') },
        },
      ],
    },
    {
      title: 'Nodes and garbage',
      panels: [
        {
          title: 'Nodes that are not healthy',
          unit: 'short',
          queries: { '{{zone}}': now('node_collector_unhealthy_nodes_in_zone') },
        },
        {
          title: 'Evictions',
          unit: 'ops',
          queries: { '{{zone}}': rate('node_collector_evictions_total') },
        },
        {
          title: 'Own stalls and distrusts',
          unit: 'short',
          queries: {
            stalls: now('megaplane_node_lifecycle_stalls_total'),
            distrusts: now('megaplane_node_lifecycle_distrusts_total'),
          },
          says: 'A stall of our own evicts nobody: it is noticed and waited out.',
        },
        {
          title: 'Garbage',
          unit: 'short',
          queries: {
            pending: now('megaplane_garbage_pending'),
            references: now('megaplane_garbage_references'),
          },
        },
        {
          title: 'Garbage deleted',
          unit: 'ops',
          queries: { deleted: rate('megaplane_garbage_deletions_total') },
        },
      ],
    },
    CALLS,
    PROCESS_ROW,
  ],
};

const NODES: Dashboard = {
  name: 'nodes',
  title: 'Megaplane / Simulated nodes',
  sign: 'megaplane_nodes',
  rows: [
    {
      title: 'Nodes and pods',
      panels: [
        {
          title: 'Nodes',
          unit: 'short',
          queries: { all: now('megaplane_nodes'), ready: now('megaplane_nodes_ready') },
        },
        {
          title: 'Pods',
          unit: 'short',
          queries: { bound: now('megaplane_pods_bound'), running: now('megaplane_pods_running') },
        },
        {
          title: 'Pods that begin to run',
          unit: 'ops',
          queries: { running: `deriv(${now('megaplane_pods_running')}[5m])` },
        },
        {
          title: 'Nodes created',
          unit: 'ops',
          queries: { nodes: rate('megaplane_nodes_created_total') },
        },
      ],
    },
    {
      title: 'Leases',
      panels: [
        {
          title: 'Renewals',
          unit: 'ops',
          queries: {
            renewed: rate('megaplane_lease_renewals_total'),
            conflicts: rate('megaplane_lease_conflicts_total'),
            created: rate('megaplane_leases_created_total'),
          },
        },
        {
          title: 'Lateness',
          unit: 's',
          queries: quantiles('megaplane_lease_renewal_lateness_seconds'),
          says: 'From the planned time to the answer. At 40 s a node is taken for lost.',
        },
        {
          title: 'Requests that failed',
          unit: 'ops',
          queries: { failed: rate('megaplane_request_errors_total') },
        },
      ],
    },
    PROCESS_ROW,
  ],
};

const FLEET: Dashboard = {
  name: 'fleet',
  title: 'Megaplane / Fleet shard',
  sign: 'bigfleet_shard_active_sessions',
  rows: [
    {
      title: 'Machines and needs',
      panels: [
        {
          title: 'Machines by state',
          unit: 'short',
          queries: { '{{state}}': sum('state', now('bigfleet_shard_inventory_machines')) },
        },
        {
          title: 'Machines by type',
          unit: 'short',
          queries: {
            '{{capacity_type}}': sum('capacity_type', now('bigfleet_shard_inventory_machines')),
          },
        },
        { title: 'Shortfalls', unit: 'short', queries: { all: now('bigfleet_shard_shortfalls') } },
        {
          title: 'Shortfalls by age in seconds',
          unit: 'short',
          queries: { '{{bucket}}': now('bigfleet_shard_shortfalls_aged') },
        },
        {
          title: 'Clusters in session',
          unit: 'short',
          queries: { sessions: now('bigfleet_shard_active_sessions') },
        },
      ],
    },
    {
      title: 'Cycles and actions',
      panels: [
        {
          title: 'Time of a cycle',
          unit: 's',
          queries: quantiles('bigfleet_shard_cycle_duration_seconds'),
        },
        {
          title: 'Actions that wait',
          unit: 'short',
          queries: {
            queued: now('bigfleet_shard_action_queue_depth'),
            'being done': now('bigfleet_shard_execute_inflight'),
          },
        },
        {
          title: 'Actions held back',
          unit: 'ops',
          queries: {
            deferred: rate('bigfleet_shard_actions_deferred_total'),
            dropped: rate('bigfleet_shard_actions_dropped_total'),
            'reclaims capped': rate('bigfleet_shard_reclaims_capped_total'),
          },
        },
        {
          title: 'From Create to ready',
          unit: 's',
          queries: quantiles('bigfleet_shard_configure_phase_seconds'),
        },
        {
          title: 'Idle machines given back',
          unit: 'ops',
          queries: { released: rate('bigfleet_shard_idle_releases_total') },
        },
      ],
    },
    PROCESS_ROW,
  ],
};

export const DASHBOARDS: readonly Dashboard[] = [
  ...[STORE, APISERVER, SCHEDULER, CONTROLLERS, NODES, FLEET],
];
