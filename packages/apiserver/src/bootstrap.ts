/**
 * What a cluster has before anybody makes anything: namespaces, priority classes, the Service of
 * the API server itself. Made at each start where it is missing, and never changed back.
 */
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { applyDefaults } from '@megaplane/machinery/defaulting';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import { findKind } from '@megaplane/machinery/kinds';
import { timestamp } from './deletion.ts';
import { standardObjects } from './fairness/flow-objects.ts';
import { bootstrapPolicy } from './startup/bootstrap-policy.ts';
import { clusterObjects, serverObjects, type BootstrapFacts } from './startup/server-objects.ts';
import { trackOwn } from './managed/tracking.ts';
import { orderedMetadata } from './object-meta.ts';
import { keyOf, servedOf } from './served.ts';
import { emptyRow, EXPECT_ABSENT } from './storage.ts';
import type { World } from './world.ts';

const row = emptyRow();

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

/** Stores an object if there is none of its name; calls `done` with whether it was made. */
export function ensure(
  world: World,
  object: JsonObject,
  done: (isMade: boolean) => void = () => {},
): void {
  const resource = findKind(stringAt(object, 'apiVersion'), stringAt(object, 'kind'));
  if (resource === undefined) {
    done(false);
    return;
  }
  const served = servedOf(resource);
  const namespace = stringAt(object, 'metadata', 'namespace');
  const key = keyOf(served, namespace, stringAt(object, 'metadata', 'name'));
  if (world.storage.get(key, row)) {
    done(false);
    return;
  }
  const metadata = orderedMetadata({
    ...objectAt(object, 'metadata'),
    uid: world.edge.uuid(),
    creationTimestamp: timestamp(world.edge.nowMs()),
    generation: served.counted ? 1 : 0,
  });
  const { kind, apiVersion, metadata: _, ...rest } = object;
  const whole: JsonObject = { kind: kind ?? '', apiVersion: apiVersion ?? '', metadata, ...rest };
  applyDefaults(whole);
  trackOwn(served, whole, world.edge.nowMs());
  world.storage.put(key, encodeCanonical(whole), EXPECT_ABSENT, (outcome) => {
    done(outcome.kind === 'done');
  });
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
  return ['default', 'kube-system', 'kube-public', 'kube-node-lease'].map(namespace);
}

function namespace(name: string): JsonObject {
  return {
    kind: 'Namespace',
    apiVersion: 'v1',
    metadata: { name, labels: { 'kubernetes.io/metadata.name': name } },
    spec: { finalizers: ['kubernetes'] },
    status: { phase: 'Active' },
  };
}

function priorityClass(name: string, value: number, description: string): JsonObject {
  return {
    kind: 'PriorityClass',
    apiVersion: 'scheduling.k8s.io/v1',
    metadata: { name },
    value,
    description,
    preemptionPolicy: 'PreemptLowerPriority',
  };
}
