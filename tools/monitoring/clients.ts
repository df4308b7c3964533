/** Dashboards of those that work for a cluster: scheduler, controllers, nodes, fleet. */
import { now, PROCESS, quantiles, rate, sum, type Dashboard, type Row } from './panels.ts';

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

export const SCHEDULER: Dashboard = {
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

export const CONTROLLERS: Dashboard = {
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

export const NODES: Dashboard = {
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

export const FLEET: Dashboard = {
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
