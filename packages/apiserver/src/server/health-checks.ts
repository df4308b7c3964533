/**
 * The checks that upstream's health endpoints name, in its order. Most are of what a server starts
 * once it listens; here that has been started before the first request is answered.
 */
import type { Health, HealthCheck } from './health.ts';

/** Upstream's hooks of the generic server, of extensions, of the core and of the aggregator. */
const HOOKS: readonly string[] = [
  'start-apiserver-admission-initializer',
  'generic-apiserver-start-informers',
  'priority-and-fairness-config-consumer',
  'priority-and-fairness-filter',
  'storage-object-count-tracker-hook',
  'start-apiextensions-informers',
  'start-apiextensions-controllers',
  'crd-informer-synced',
  'start-system-namespaces-controller',
  'peer-endpoint-reconciler-controller',
  'start-cluster-authentication-info-controller',
  'start-kube-apiserver-identity-lease-controller',
  'start-kube-apiserver-identity-lease-garbage-collector',
  'storage-readiness',
  'start-legacy-token-tracking-controller',
  'start-service-ip-repair-controllers',
  'rbac/bootstrap-roles',
  'scheduling/bootstrap-system-priority-classes',
  'priority-and-fairness-config-producer',
  'bootstrap-controller',
  'start-kubernetes-service-cidr-controller',
  'start-kube-aggregator-informers',
  'apiservice-status-local-available-controller',
  'apiservice-status-remote-available-controller',
  'apiservice-registration-controller',
  'apiservice-discovery-controller',
  'kube-apiserver-autoregistration',
];
const LATE_HOOKS: readonly string[] = [
  'apiservice-openapi-controller',
  'apiservice-openapiv3-controller',
];

const started: HealthCheck = () => null;

/** Adds all checks but that of the end; `storageFault` says what is wrong with the storage. */
export function addChecks(health: Health, storageFault: HealthCheck): void {
  health.add('ping', started);
  health.add('log', started);
  health.add('loopback-serving-certificate', started, 'life');
  health.add('etcd', storageFault);
  health.add('etcd-readiness', storageFault, 'readiness');
  health.add('informer-sync', started, 'readiness');
  for (const hook of HOOKS) health.add(`poststarthook/${hook}`, started);
  health.add('autoregister-completion', started);
  for (const hook of LATE_HOOKS) health.add(`poststarthook/${hook}`, started);
}
