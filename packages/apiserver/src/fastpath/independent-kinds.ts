/**
 * Kinds of which no object bears on how a write that may be repeated is made. A cluster writes them
 * in masses, or each time that one of its workloads makes a pod; whatever else changes may matter.
 *
 * Quotas do bear on writes, but each use of a template is charged by itself.
 */
import { followChanges } from '../storage/follow.ts';
import { allServed } from '../storage/served.ts';
import type { Storage } from '../storage/storage.ts';

const KINDS: ReadonlySet<string> = new Set([
  'configmaps',
  'events',
  'leases.coordination.k8s.io',
  'nodes',
  'pods',
  'endpoints',
  'endpointslices.discovery.k8s.io',
  'controllerrevisions.apps',
  'daemonsets.apps',
  'deployments.apps',
  'replicasets.apps',
  'statefulsets.apps',
  'cronjobs.batch',
  'jobs.batch',
  'horizontalpodautoscalers.autoscaling',
  'poddisruptionbudgets.policy',
  'replicationcontrollers',
  'resourcequotas',
  'persistentvolumeclaims',
  'persistentvolumes',
  'volumeattachments.storage.k8s.io',
]);

/** Calls `onChange` whenever an object has changed that is of none of these kinds. */
export function followOthers(storage: Storage, onChange: () => void): void {
  const prefixes = allServed()
    .filter(({ resource }) => KINDS.has(resource.storage.name))
    .map(({ prefix }) => prefix);
  let from = '/registry/';
  for (const prefix of [...new Set(prefixes).values()].toSorted().concat('/registry0')) {
    followChanges(storage, { start: Buffer.from(from), end: Buffer.from(prefix) }, onChange);
    from = `${prefix.slice(0, -1)}0`;
  }
}

/** Whether a key is that of a quota. */
export function isQuotaKey(key: Buffer): boolean {
  return key.toString('utf8', 0, QUOTAS.length) === QUOTAS;
}

const QUOTAS = '/registry/resourcequotas/';
