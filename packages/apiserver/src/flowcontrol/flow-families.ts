/** The families of metrics of priority and fairness: upstream's names, types and explanations. */
type Family = readonly [name: string, type: 'counter' | 'gauge' | 'histogram', help: string];

export const FLOW_FAMILIES: readonly Family[] = [
  [
    'current_executing_requests',
    'gauge',
    '[BETA] Number of requests in initial (for a WATCH) or any (for a non-WATCH) ' +
      'execution stage in the API Priority and Fairness subsystem',
  ],
  [
    'current_executing_seats',
    'gauge',
    '[BETA] Concurrency (number of seats) occupied by the currently executing (initial ' +
      'stage for a WATCH, any stage otherwise) requests in the API Priority and Fairness ' +
      'subsystem',
  ],
  [
    'current_inqueue_requests',
    'gauge',
    '[BETA] Number of requests currently pending in queues of the API Priority and ' +
      'Fairness subsystem',
  ],
  [
    'current_inqueue_seats',
    'gauge',
    '[ALPHA] Number of seats currently pending in queues of the API Priority and ' +
      'Fairness subsystem',
  ],
  [
    'current_limit_seats',
    'gauge',
    '[ALPHA] current derived number of execution seats available to each priority level',
  ],
  ['current_r', 'gauge', '[ALPHA] R(time of last change)'],
  [
    'demand_seats',
    'histogram',
    'EXPERIMENTAL: [ALPHA] Observations, at the end of every nanosecond, of (the number ' +
      'of seats each priority level could use) / (nominal number of seats for that level)',
  ],
  [
    'demand_seats_average',
    'gauge',
    '[ALPHA] Time-weighted average, over last adjustment period, of demand_seats',
  ],
  [
    'demand_seats_high_watermark',
    'gauge',
    '[ALPHA] High watermark, over last adjustment period, of demand_seats',
  ],
  ['demand_seats_smoothed', 'gauge', '[ALPHA] Smoothed seat demands'],
  [
    'demand_seats_stdev',
    'gauge',
    '[ALPHA] Time-weighted standard deviation, over last adjustment period, of ' + 'demand_seats',
  ],
  ['dispatch_r', 'gauge', '[ALPHA] R(time of last dispatch)'],
  [
    'dispatched_requests_total',
    'counter',
    '[BETA] Number of requests executed by API Priority and Fairness subsystem',
  ],
  ['latest_s', 'gauge', '[ALPHA] S(most recently dispatched request)'],
  [
    'lower_limit_seats',
    'gauge',
    '[ALPHA] Configured lower bound on number of execution seats available to each ' +
      'priority level',
  ],
  [
    'next_discounted_s_bounds',
    'gauge',
    '[ALPHA] min and max, over queues, of S(oldest waiting request in queue) - estimated ' +
      'work in progress',
  ],
  [
    'next_s_bounds',
    'gauge',
    '[ALPHA] min and max, over queues, of S(oldest waiting request in queue)',
  ],
  [
    'nominal_limit_seats',
    'gauge',
    '[BETA] Nominal number of execution seats configured for each priority level',
  ],
  [
    'priority_level_request_utilization',
    'histogram',
    'EXPERIMENTAL: [ALPHA] Observations, at the end of every nanosecond, of number of ' +
      'requests (as a fraction of the relevant limit) waiting or in any stage of execution ' +
      '(but only initial stage for WATCHes)',
  ],
  [
    'priority_level_seat_utilization',
    'histogram',
    'EXPERIMENTAL: [ALPHA] Observations, at the end of every nanosecond, of utilization ' +
      'of seats for any stage of execution (but only initial stage for WATCHes)',
  ],
  [
    'read_vs_write_current_requests',
    'histogram',
    'EXPERIMENTAL: [ALPHA] Observations, at the end of every nanosecond, of the number ' +
      'of requests (as a fraction of the relevant limit) waiting or in regular stage of ' +
      'execution',
  ],
  [
    'rejected_requests_total',
    'counter',
    '[BETA] Number of requests rejected by API Priority and Fairness subsystem',
  ],
  [
    'request_dispatch_no_accommodation_total',
    'counter',
    '[ALPHA] Number of times a dispatch attempt resulted in a non accommodation due to ' +
      'lack of available seats',
  ],
  [
    'request_execution_seconds',
    'histogram',
    '[ALPHA] Duration of initial stage (for a WATCH) or any (for a non-WATCH) stage of ' +
      'request execution in the API Priority and Fairness subsystem',
  ],
  [
    'request_queue_length_after_enqueue',
    'histogram',
    '[ALPHA] Length of queue in the API Priority and Fairness subsystem, as seen by each ' +
      'request after it is enqueued',
  ],
  [
    'request_wait_duration_seconds',
    'histogram',
    '[BETA] Length of time a request spent waiting in its queue',
  ],
  [
    'seat_fair_frac',
    'gauge',
    "[ALPHA] Fair fraction of server's concurrency to allocate to each priority level " +
      'that can use it',
  ],
  ['target_seats', 'gauge', '[ALPHA] Seat allocation targets'],
  [
    'upper_limit_seats',
    'gauge',
    '[ALPHA] Configured upper bound on number of execution seats available to each ' +
      'priority level',
  ],
  [
    'watch_count_samples',
    'histogram',
    '[ALPHA] count of watchers for mutating requests in API Priority and Fairness',
  ],
  [
    'work_estimated_seats',
    'histogram',
    '[ALPHA] Number of estimated seats (maximum of initial and final seats) associated ' +
      'with requests in API Priority and Fairness',
  ],
];
