/** Families of metrics: upstream's names, types and explanations (v1.36.1). */
import { ownMember } from '@megaplane/base/members';

type Type = 'counter' | 'gauge' | 'histogram';

const FAMILIES: Readonly<Record<string, readonly [type: Type, help: string]>> = {
  aggregator_unavailable_apiservice: [
    'gauge',
    '[ALPHA] Gauge of APIServices which are marked as unavailable broken ' +
      'down by APIService name.',
  ],
  aggregator_unavailable_apiservice_total: [
    'counter',
    '[ALPHA] Counter of APIServices which are marked as unavailable broken ' +
      'down by APIService name and reason.',
  ],
  apiserver_admission_controller_admission_duration_seconds: [
    'histogram',
    '[STABLE] Admission controller latency histogram in seconds, identified ' +
      'by name and broken out for each operation and API resource and type ' +
      '(validate or admit).',
  ],
  apiserver_admission_match_condition_evaluation_errors_total: [
    'counter',
    '[ALPHA] Admission match condition evaluation errors count, identified by ' +
      'name of resource containing the match condition and broken out for each ' +
      'kind containing matchConditions (webhook or policy), operation and ' +
      'admission type (validate or admit).',
  ],
  apiserver_admission_match_condition_evaluation_seconds: [
    'histogram',
    '[ALPHA] Admission match condition evaluation time in seconds, identified ' +
      'by name and broken out for each kind containing matchConditions (webhook ' +
      'or policy), operation and type (validate or admit).',
  ],
  apiserver_admission_match_condition_exclusions_total: [
    'counter',
    '[ALPHA] Admission match condition evaluation exclusions count, ' +
      'identified by name of resource containing the match condition and broken ' +
      'out for each kind containing matchConditions (webhook or policy), ' +
      'operation and admission type (validate or admit).',
  ],
  apiserver_admission_step_admission_duration_seconds: [
    'histogram',
    '[STABLE] Admission sub-step latency histogram in seconds, broken out ' +
      'for each operation and API resource and step type (validate or admit).',
  ],
  apiserver_admission_webhook_admission_duration_seconds: [
    'histogram',
    '[STABLE] Admission webhook latency histogram in seconds, identified by ' +
      'name and broken out for each operation and API resource and type ' +
      '(validate or admit).',
  ],
  apiserver_admission_webhook_fail_open_count: [
    'counter',
    '[ALPHA] Admission webhook fail open count, identified by name and ' +
      'broken out for each admission type (validating or admit).',
  ],
  apiserver_admission_webhook_rejection_count: [
    'counter',
    '[ALPHA] Admission webhook rejection count, identified by name and ' +
      'broken out for each admission type (validating or admit) and operation. ' +
      'Additional labels specify an error type (calling_webhook_error or ' +
      'apiserver_internal_error if an error occurred; no_error otherwise) and ' +
      'optionally a non-zero rejection code if the webhook rejects the request ' +
      'with an HTTP status code (honored by the apiserver when the code is ' +
      'greater or equal to 400). Codes greater than 600 are truncated to 600, ' +
      'to keep the metrics cardinality bounded.',
  ],
  apiserver_admission_webhook_request_total: [
    'counter',
    '[ALPHA] Admission webhook request total, identified by name and broken ' +
      'out for each admission type (validating or admit) and operation. ' +
      'Additional labels specify whether the request was rejected or not and ' +
      'an HTTP status code. Codes greater than 600 are truncated to 600, to ' +
      'keep the metrics cardinality bounded.',
  ],
  apiserver_audit_error_total: [
    'counter',
    '[ALPHA] Counter of audit events that failed to be audited properly. ' +
      'Plugin identifies the plugin affected by the error.',
  ],
  apiserver_audit_event_total: [
    'counter',
    '[ALPHA] Counter of audit events generated and sent to the audit backend.',
  ],
  apiserver_audit_level_total: [
    'counter',
    '[ALPHA] Counter of policy levels for audit events (1 per request).',
  ],
  apiserver_audit_requests_rejected_total: [
    'counter',
    '[ALPHA] Counter of apiserver requests rejected due to an error in audit ' + 'logging backend.',
  ],
  apiserver_cache_list_fetched_objects_total: [
    'counter',
    '[ALPHA] Number of objects read from watch cache in the course of ' + 'serving a LIST request',
  ],
  apiserver_cache_list_returned_objects_total: [
    'counter',
    '[ALPHA] Number of objects returned for a LIST request from watch cache',
  ],
  apiserver_cache_list_total: [
    'counter',
    '[ALPHA] Number of LIST requests served from watch cache',
  ],
  apiserver_client_certificate_expiration_seconds: [
    'histogram',
    '[ALPHA] Distribution of the remaining lifetime on the certificate used ' +
      'to authenticate a request.',
  ],
  apiserver_conversion_webhook_duration_seconds: [
    'histogram',
    '[ALPHA] Conversion webhook request latency',
  ],
  apiserver_conversion_webhook_request_total: [
    'counter',
    '[ALPHA] Counter for conversion webhook requests with success/failure and failure error type',
  ],
  apiserver_crd_conversion_webhook_duration_seconds: [
    'histogram',
    '[ALPHA] CRD webhook conversion duration in seconds',
  ],
  apiserver_current_inqueue_requests: [
    'gauge',
    '[ALPHA] Maximal number of queued requests in this apiserver per request kind in last second.',
  ],
  apiserver_current_inflight_requests: [
    'gauge',
    '[STABLE] Maximal number of currently used inflight request limit of ' +
      'this apiserver per request kind in last second.',
  ],
  apiserver_init_events_total: [
    'counter',
    '[ALPHA] Counter of init events processed in watch cache broken by ' + 'resource type.',
  ],
  apiserver_longrunning_requests: [
    'gauge',
    '[STABLE] Gauge of all active long-running apiserver requests broken out ' +
      'by verb, group, version, resource, scope and component. Not all ' +
      'requests are tracked this way.',
  ],
  apiserver_mutating_admission_policy_check_duration_seconds: [
    'histogram',
    '[ALPHA] Mutation admission latency for individual mutation expressions ' +
      'in seconds, labeled by policy and binding.',
  ],
  apiserver_mutating_admission_policy_check_total: [
    'counter',
    '[ALPHA] Mutation admission policy check total, labeled by policy and ' +
      'further identified by binding.',
  ],
  apiserver_request_body_size_bytes: [
    'histogram',
    '[ALPHA] Apiserver request body size in bytes broken out by resource and verb.',
  ],
  apiserver_request_duration_seconds: [
    'histogram',
    '[STABLE] Response latency distribution in seconds for each verb, dry ' +
      'run value, group, version, resource, subresource, scope and component.',
  ],
  apiserver_request_sli_duration_seconds: [
    'histogram',
    '[ALPHA] Response latency distribution (not counting webhook duration ' +
      'and priority & fairness queue wait times) in seconds for each verb, ' +
      'group, version, resource, subresource, scope and component.',
  ],
  apiserver_request_terminations_total: [
    'counter',
    '[ALPHA] Number of requests which apiserver terminated in self-defense.',
  ],
  apiserver_request_total: [
    'counter',
    '[STABLE] Counter of apiserver requests broken out for each verb, dry ' +
      'run value, group, version, resource, scope, component, and HTTP ' +
      'response code.',
  ],
  apiserver_requested_deprecated_apis: [
    'gauge',
    '[STABLE] Gauge of deprecated APIs that have been requested, broken out ' +
      'by API group, version, resource, subresource, and removed_release.',
  ],
  apiserver_resource_objects: [
    'gauge',
    '[ALPHA] Number of stored objects at the time of last check split by ' +
      'kind. In case of a fetching error, the value will be -1.',
  ],
  apiserver_response_sizes: [
    'histogram',
    '[STABLE] Response size distribution in bytes for each group, version, ' +
      'verb, resource, subresource, scope and component.',
  ],
  apiserver_storage_size_bytes: [
    'gauge',
    '[STABLE] Size of the storage database file physically allocated in bytes.',
  ],
  apiserver_storage_objects: [
    'gauge',
    '[STABLE] (Deprecated since 1.34.0) [DEPRECATED, consider using ' +
      'apiserver_resource_objects instead] Number of stored objects at the ' +
      'time of last check split by kind. In case of a fetching error, the ' +
      'value will be -1.',
  ],
  apiserver_validating_admission_policy_check_duration_seconds: [
    'histogram',
    '[BETA] Validation admission latency for individual validation ' +
      'expressions in seconds, labeled by policy and further including binding ' +
      'and enforcement action taken.',
  ],
  apiserver_validating_admission_policy_check_total: [
    'counter',
    '[BETA] Validation admission policy check total, labeled by policy and ' +
      'further identified by binding and enforcement action taken.',
  ],
  apiserver_watch_cache_events_dispatched_total: [
    'counter',
    '[ALPHA] Counter of events dispatched in watch cache broken by resource ' + 'type.',
  ],
  apiserver_watch_cache_events_received_total: [
    'counter',
    '[ALPHA] Counter of events received in watch cache broken by resource ' + 'type.',
  ],
  apiserver_watch_cache_resource_version: [
    'gauge',
    '[ALPHA] Current resource version of watch cache broken by resource ' +
      'type. This is truncated to the 15 least significant digits.',
  ],
  apiserver_watch_events_sizes: ['histogram', '[ALPHA] Watch event size distribution in bytes'],
  apiserver_watch_events_total: ['counter', '[ALPHA] Number of events sent in watch clients'],
  apiserver_watch_filtered_events_total: [
    'counter',
    '[ALPHA] States that shards kept from watches.',
  ],
  apiserver_watch_shards_total: ['gauge', '[ALPHA] Open watches with a shard selector.'],
  authenticated_user_requests: [
    'counter',
    '[ALPHA] Counter of authenticated requests broken out by username.',
  ],
  authentication_attempts: ['counter', '[ALPHA] Counter of authenticated attempts.'],
  authentication_duration_seconds: [
    'histogram',
    '[ALPHA] Authentication duration in seconds broken out by result.',
  ],
  apiserver_authentication_config_controller_automatic_reload_last_timestamp_seconds: [
    'gauge',
    '[BETA] Timestamp of the last automatic reload of authentication configuration split by ' +
      'status and apiserver identity.',
  ],
  apiserver_authentication_config_controller_automatic_reloads_total: [
    'counter',
    '[BETA] Total number of automatic reloads of authentication configuration split by status ' +
      'and apiserver identity.',
  ],
  apiserver_authentication_config_controller_last_config_info: [
    'gauge',
    '[ALPHA] Information about the last applied authentication configuration with hash as label, ' +
      'split by apiserver identity.',
  ],
  apiserver_authorization_config_controller_automatic_reload_last_timestamp_seconds: [
    'gauge',
    '[BETA] Timestamp of the last automatic reload of authorization configuration split by ' +
      'status and apiserver identity.',
  ],
  apiserver_authorization_config_controller_automatic_reloads_total: [
    'counter',
    '[BETA] Total number of automatic reloads of authorization configuration split by status ' +
      'and apiserver identity.',
  ],
  apiserver_authorization_config_controller_last_config_info: [
    'gauge',
    '[ALPHA] Information about the last applied authorization configuration with hash as label, ' +
      'split by apiserver identity.',
  ],
  apiserver_authorization_decisions_total: [
    'counter',
    '[ALPHA] Total number of terminal decisions made by an authorizer split by authorizer type, ' +
      'name, and decision.',
  ],
  apiserver_authorization_match_condition_evaluation_errors_total: [
    'counter',
    '[ALPHA] Total number of errors when an authorization webhook encounters a match condition ' +
      'error split by authorizer type and name.',
  ],
  apiserver_authorization_match_condition_evaluation_seconds: [
    'histogram',
    '[ALPHA] Authorization match condition evaluation time in seconds, split by authorizer type ' +
      'and name.',
  ],
  apiserver_authorization_match_condition_exclusions_total: [
    'counter',
    '[ALPHA] Total number of exclusions when an authorization webhook is skipped because match ' +
      'conditions exclude it.',
  ],
  apiserver_authorization_webhook_duration_seconds: [
    'histogram',
    '[ALPHA] Request latency in seconds.',
  ],
  apiserver_authorization_webhook_evaluations_fail_open_total: [
    'counter',
    '[ALPHA] NoOpinion results due to webhook timeout or error.',
  ],
  apiserver_authorization_webhook_evaluations_total: [
    'counter',
    '[ALPHA] Round-trips to authorization webhooks.',
  ],
  authorization_attempts_total: [
    'counter',
    '[ALPHA] Counter of authorization attempts broken down by result. It can ' +
      "be either 'allowed', 'denied', 'no-opinion' or 'error'.",
  ],
  authorization_duration_seconds: [
    'histogram',
    '[ALPHA] Authorization duration in seconds broken out by result.',
  ],
  etcd_request_duration_seconds: [
    'histogram',
    '[ALPHA] Etcd request latency in seconds for each operation and object ' + 'type.',
  ],
  etcd_request_errors_total: [
    'counter',
    '[ALPHA] Etcd failed request counts for each operation and object type.',
  ],
  etcd_requests_total: [
    'counter',
    '[ALPHA] Etcd request counts for each operation and object type.',
  ],
  kube_apiserver_clusterip_allocator_allocated_ips: [
    'gauge',
    '[ALPHA] Gauge measuring the number of allocated IPs for Services',
  ],
  kube_apiserver_clusterip_allocator_available_ips: [
    'gauge',
    '[ALPHA] Gauge measuring the number of available IPs for Services',
  ],
  kube_apiserver_nodeport_allocator_allocated_ports: [
    'gauge',
    '[ALPHA] Gauge measuring the number of allocated NodePorts for Services',
  ],
  kube_apiserver_nodeport_allocator_available_ports: [
    'gauge',
    '[ALPHA] Gauge measuring the number of available NodePorts for Services',
  ],
  authentication_token_cache_fetch_total: ['counter', '[ALPHA] '],
  authentication_token_cache_request_total: ['counter', '[ALPHA] '],
  kube_apiserver_clusterip_allocator_allocation_total: [
    'counter',
    '[ALPHA] Number of Cluster IPs allocations',
  ],
  kube_apiserver_clusterip_allocator_allocation_errors_total: [
    'counter',
    '[ALPHA] Number of errors trying to allocate Cluster IPs',
  ],
  kube_apiserver_nodeport_allocator_allocation_total: [
    'counter',
    '[ALPHA] Number of NodePort allocations',
  ],
  kube_apiserver_nodeport_allocator_allocation_errors_total: [
    'counter',
    '[ALPHA] Number of errors trying to allocate NodePort',
  ],
  pod_security_evaluations_total: [
    'counter',
    '[ALPHA] Number of policy evaluations that occurred, not counting ignored or exempt requests.',
  ],
  pod_security_exemptions_total: [
    'counter',
    '[ALPHA] Number of exempt requests, not counting ignored or out of scope requests.',
  ],
  pod_security_errors_total: [
    'counter',
    '[ALPHA] Number of errors preventing normal evaluation. Non-fatal errors may result in the ' +
      'latest restricted profile being used for evaluation.',
  ],
  serviceaccount_legacy_auto_token_uses_total: [
    'counter',
    '[ALPHA] Cumulative auto-generated legacy tokens used',
  ],
  serviceaccount_legacy_manual_token_uses_total: [
    'counter',
    '[ALPHA] Cumulative manually created legacy tokens used',
  ],
  serviceaccount_legacy_tokens_total: [
    'counter',
    '[ALPHA] Cumulative legacy service account tokens used',
  ],
  serviceaccount_stale_tokens_total: [
    'counter',
    '[ALPHA] Cumulative stale projected service account tokens used',
  ],
  serviceaccount_valid_tokens_total: [
    'counter',
    '[ALPHA] Cumulative valid projected service account tokens used',
  ],
  go_goroutines: ['gauge', 'What the event loop waits for: sockets, timers, files.'],
  go_memstats_alloc_bytes: ['gauge', 'Bytes of the heap of V8 that objects take.'],
  go_memstats_heap_inuse_bytes: ['gauge', 'Bytes of the heap of V8 that are committed.'],
  kubernetes_build_info: [
    'gauge',
    "[BETA] A metric with a constant '1' value labeled by major, minor, git " +
      'version, git commit, git tree state, build date, Go version, and ' +
      'compiler from which Kubernetes was built, and platform on which it is ' +
      'running.',
  ],
  process_cpu_seconds_total: ['counter', 'Total user and system CPU time spent in seconds.'],
  process_max_fds: ['gauge', 'Maximum number of open file descriptors.'],
  process_network_receive_bytes_total: [
    'counter',
    'Number of bytes received by the process over the network.',
  ],
  process_network_transmit_bytes_total: [
    'counter',
    'Number of bytes sent by the process over the network.',
  ],
  process_open_fds: ['gauge', 'Number of open file descriptors.'],
  process_resident_memory_bytes: ['gauge', 'Resident memory size in bytes.'],
  process_start_time_seconds: ['gauge', 'Start time of the process since unix epoch in seconds.'],
  process_virtual_memory_bytes: ['gauge', 'Virtual memory size in bytes.'],
  process_virtual_memory_max_bytes: [
    'gauge',
    'Maximum amount of virtual memory available in bytes.',
  ],
  version_info: [
    'gauge',
    '[ALPHA] Provides the compatibility version info of the component. The component label is ' +
      'the name of the component, usually kube, but is relevant for aggregated-apiservers.',
  ],
  rest_client_request_duration_seconds: [
    'histogram',
    '[ALPHA] Request latency in seconds. Broken down by verb, and host.',
  ],
  rest_client_requests_total: [
    'counter',
    '[ALPHA] Number of HTTP requests, partitioned by status code, method, ' + 'and host.',
  ],
};

/** Appends the two lines that stand before the samples of a family. */
export function printFamily(lines: string[], name: string): void {
  const [type, help] = ownMember(FAMILIES, name) ?? ['gauge', ''];
  lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
}
