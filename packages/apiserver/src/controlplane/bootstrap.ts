/**
 * What a cluster has before anybody makes anything: namespaces, priority classes, the Service of
 * the API server itself. Made at each start where it is missing, and never changed back.
 */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { standardObjects } from '../flowcontrol/flow-objects.ts';
import { bootstrapPolicy } from './bootstrap-policy.ts';
import { ensure } from '../registry/rest/missing-objects.ts';
import { clusterObjects, serverObjects, type BootstrapFacts } from './server-objects.ts';
import type { World } from '../lister/world.ts';
import { newNamespace } from '../lister/stored-namespaces.ts';

/** Makes what is missing; calls `done` with how many objects that were. */
export function bootstrap(
  world: World,
  facts: BootstrapFacts,
  done?: (made: number) => void,
): void {
  const objects = bootstrapObjects(facts);
  let left = objects.length;
  let made = 0;
  for (const object of objects) {
    ensure(world, object, (isMade) => {
      if (isMade) made++;
      left--;
      if (left === 0) done?.(made);
    });
  }
}

function bootstrapObjects(facts: BootstrapFacts): JsonObject[] {
  return [
    ...systemNamespaces(),
    priorityClass(
      'system-cluster-critical',
      2_000_000_000,
      'Used for system critical pods that must run in the cluster, but can be moved to ' +
        'another node if necessary.',
    ),
    priorityClass(
      'system-node-critical',
      2_000_001_000,
      'Used for system critical pods that must not be moved from their current node.',
    ),
    ...serverObjects(facts),
    ...clusterObjects(facts),
    ...bootstrapPolicy(),
    ...standardObjects().map(({ object }) => object),
  ];
}

/** Namespaces that come back when somebody deletes them. */
export function systemNamespaces(): JsonObject[] {
  return ['default', 'kube-system', 'kube-public', 'kube-node-lease'].map(newNamespace);
}

function priorityClass(name: string, value: number, description: string): JsonObject {
  return {
    kind: 'PriorityClass',
    apiVersion: 'scheduling.k8s.io/v1',
    metadata: { name, generation: 1 },
    value,
    description,
    preemptionPolicy: 'PreemptLowerPriority',
  };
}
