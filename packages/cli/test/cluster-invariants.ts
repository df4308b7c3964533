/** What must hold in a simulated cluster: at rest, and at every step of a day without troubles. */
import assert from 'node:assert/strict';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { ClusterSimulation } from './cluster-simulation.ts';
import type { SimulatedFleet } from './simulated-fleet.ts';
import { KINDS, pathOf, QUOTA_PODS } from './simulated-users.ts';

async function list(cluster: ClusterSimulation, path: string): Promise<JsonObject[]> {
  const answer = await Promise.all([cluster.ask('GET', path), cluster.settle()]);
  const [{ ok }] = answer;
  assert(ok, path);
  const [found] = answer;
  return found.ok ? (listAt(found.object, 'items') as JsonObject[]) : [];
}

const nameOf = (object: JsonValue | undefined): string =>
  `${stringAt(object, 'metadata', 'namespace')}/${stringAt(object, 'metadata', 'name')}`;

function controllerOf(object: JsonObject): string {
  const owner = listAt(object, 'metadata', 'ownerReferences').find(
    (one) => objectAt({ one }, 'one')?.['controller'] === true,
  );
  return stringAt(owner, 'uid');
}

/** What is there, told so that it does not depend on names and times. */
export async function summaryOf(cluster: ClusterSimulation): Promise<readonly string[]> {
  const pods = await list(cluster, '/api/v1/pods');
  const sets = await list(cluster, pathOf({ ...KINDS.deployment, resource: 'replicasets' }, ''));
  const lines: string[] = [];
  const ofOwner = (uid: string): string => {
    const own = pods.filter((pod) => controllerOf(pod) === uid);
    const isReady = (pod: JsonObject): boolean =>
      listAt(pod, 'status', 'conditions').some(
        (one) => stringAt(one, 'type') === 'Ready' && stringAt(one, 'status') === 'True',
      );
    return `${own.filter(isReady).length}/${own.length} pods`;
  };
  for (const deployment of await list(cluster, pathOf(KINDS.deployment, ''))) {
    const uid = stringAt(deployment, 'metadata', 'uid');
    const wanted = numberAt(deployment, 'spec', 'replicas');
    const active = sets.filter(
      (set) => controllerOf(set) === uid && numberAt(set, 'spec', 'replicas') > 0,
    );
    const image = listAt(deployment, 'spec', 'template', 'spec', 'containers')[0];
    const shown = active.map((set) => ofOwner(stringAt(set, 'metadata', 'uid'))).join(', ');
    lines.push(`deployment ${nameOf(deployment)} ${stringAt(image, 'image')} ${wanted}: ${shown}`);
  }
  for (const kind of [KINDS.stateful, KINDS.daemon]) {
    for (const one of await list(cluster, pathOf(kind, ''))) {
      const wanted = numberAt(one, 'spec', 'replicas');
      const shown = ofOwner(stringAt(one, 'metadata', 'uid'));
      lines.push(`${kind.kind} ${nameOf(one)} ${wanted}: ${shown}`);
    }
  }
  for (const budget of await list(cluster, pathOf(KINDS.budget, ''))) {
    const [healthy, allowed] = ['currentHealthy', 'disruptionsAllowed'].map((one) =>
      numberAt(budget, 'status', one),
    );
    lines.push(`budget ${nameOf(budget)}: ${healthy} healthy, ${allowed} may go`);
  }
  for (const kind of [KINDS.job, KINDS.map, KINDS.service]) {
    for (const one of await list(cluster, pathOf(kind, '')))
      lines.push(`${kind.kind} ${nameOf(one)}`);
  }
  for (const namespace of await list(cluster, '/api/v1/namespaces')) {
    lines.push(`namespace ${nameOf(namespace)} ${stringAt(namespace, 'status', 'phase')}`);
  }
  return lines.toSorted();
}

/** What must hold at rest, whatever happened. */
export async function assertAtRest(
  cluster: ClusterSimulation,
  fleet: SimulatedFleet,
): Promise<void> {
  const pods = await list(cluster, '/api/v1/pods');
  const nodes = await list(cluster, '/api/v1/nodes');
  const owners = new Set<string>();
  for (const kind of [KINDS.deployment, KINDS.stateful, KINDS.daemon, KINDS.job, KINDS.map]) {
    for (const one of await list(cluster, pathOf(kind, ''))) owners.add(uidOf(one));
  }
  const sets = await list(cluster, pathOf({ ...KINDS.deployment, resource: 'replicasets' }, ''));
  for (const set of sets) owners.add(uidOf(set));
  for (const one of [...pods, ...sets]) {
    assert(owners.has(controllerOf(one)), `${nameOf(one)} is an orphan: ${JSON.stringify(one)}`);
  }
  for (const pod of pods) {
    const node = stringAt(pod, 'spec', 'nodeName');
    assert(fleet.nodes.has(node), `${nameOf(pod)} is on "${node}", which is not there`);
    assert.equal(stringAt(pod, 'metadata', 'deletionTimestamp'), '', `${nameOf(pod)} never goes`);
  }
  assert.equal(nodes.length, fleet.nodes.size);
  for (const node of nodes) {
    assert.deepEqual(listAt(node, 'spec', 'taints'), [], `${nameOf(node)} has taints`);
  }
  for (const set of sets) {
    const wanted = numberAt(set, 'spec', 'replicas');
    const own = pods.filter((pod) => controllerOf(pod) === uidOf(set));
    const isHeld = nameOf(set).startsWith('passing-');
    const most = isHeld ? Math.min(wanted, QUOTA_PODS) : wanted;
    assert.equal(own.length, most, `${nameOf(set)} has ${own.length}`);
  }
  for (const map of await list(cluster, pathOf(KINDS.map, ''))) {
    assert.equal(listAt(map, 'metadata', 'ownerReferences').length, 0, `${nameOf(map)} is left`);
  }
}

function uidOf(object: JsonObject): string {
  return stringAt(object, 'metadata', 'uid');
}

/** A node that was removed so long ago holds no pod any more: quarantine and two rounds. */
const GONE_MS = 120_000;

const isGoing = (object: JsonObject): boolean =>
  stringAt(object, 'metadata', 'deletionTimestamp') !== '';

const isReady = (pod: JsonObject): boolean =>
  listAt(pod, 'status', 'conditions').some(
    (one) => stringAt(one, 'type') === 'Ready' && stringAt(one, 'status') === 'True',
  );

/** What holds at every step of a quiet day, once everything has followed from what was done. */
export async function assertAtStep(
  cluster: ClusterSimulation,
  fleet: SimulatedFleet,
): Promise<void> {
  const pods = await list(cluster, '/api/v1/pods');
  const nowMs = cluster.timers.nowMs();
  const owned = new Map<string, JsonObject[]>();
  for (const pod of pods) {
    const node = stringAt(pod, 'spec', 'nodeName');
    const isThere = node === '' || fleet.nodes.has(node);
    const goneMs = nowMs - (fleet.removedMs.get(node) ?? 0);
    assert(isThere || goneMs < GONE_MS, `${nameOf(pod)} is on "${node}", gone for ${goneMs} ms`);
    if (isGoing(pod)) continue;
    const controller = controllerOf(pod);
    owned.set(controller, [...(owned.get(controller) ?? []), pod]);
  }
  const known = new Set<string>();
  const sets = await list(cluster, pathOf({ ...KINDS.deployment, resource: 'replicasets' }, ''));
  for (const set of sets) {
    known.add(uidOf(set));
    if (isGoing(set)) continue;
    const wanted = numberAt(set, 'spec', 'replicas');
    const count = (owned.get(uidOf(set)) ?? []).length;
    // Pods that cannot end count for the quota, and what it refuses is tried again later.
    if (nameOf(set).startsWith('passing-')) assert(count <= Math.min(wanted, QUOTA_PODS));
    else assert.equal(count, wanted, `${nameOf(set)} has ${count} of ${wanted}`);
  }
  for (const set of await list(cluster, pathOf(KINDS.stateful, ''))) {
    known.add(uidOf(set));
    const names = (owned.get(uidOf(set)) ?? []).map(nameOf);
    // The others go one after the other, and wait for what a silent node cannot end.
    const isHeld = pods.some(
      (pod) => controllerOf(pod) === uidOf(set) && isGoing(pod) && isFrozenOn(pod, fleet),
    );
    const most = numberAt(set, 'spec', 'replicas');
    assert(isHeld || names.length <= most, `${nameOf(set)}: ${names.join()}, not ${most}`);
  }
  for (const set of await list(cluster, pathOf(KINDS.daemon, ''))) {
    known.add(uidOf(set));
    const own = pods.filter((pod) => controllerOf(pod) === uidOf(set));
    const served = own.filter((pod) => !isGoing(pod) || isFrozenOn(pod, fleet));
    const nodes = new Set(served.map((pod) => stringAt(pod, 'spec', 'nodeName')));
    const missing = [...fleet.nodes.keys()].filter((node) => !nodes.has(node));
    assert.deepEqual(missing, [], `nodes without a pod of ${nameOf(set)}`);
    // Where a node is silent, the pod of an update stays beside the one before.
    const surplus = served.filter((pod) => isOn(pod, fleet) && !isFrozenOn(pod, fleet));
    const living = [...fleet.nodes.values()].filter(({ isFrozen }) => !isFrozen);
    assert.equal(surplus.length, living.length, nameOf(set));
  }
  for (const job of await list(cluster, pathOf(KINDS.job, ''))) known.add(uidOf(job));
  for (const [uid, [pod]] of owned) assert(known.has(uid), `${nameOf(pod)} is an orphan`);
  for (const budget of await list(cluster, pathOf(KINDS.budget, ''))) assertBudget(budget, pods);
}

/** What a silent node has to end stays, and nothing comes in its place. */
function isFrozenOn(pod: JsonObject, fleet: SimulatedFleet): boolean {
  return fleet.nodes.get(stringAt(pod, 'spec', 'nodeName'))?.isFrozen === true;
}

function isOn(pod: JsonObject, fleet: SimulatedFleet): boolean {
  return fleet.nodes.has(stringAt(pod, 'spec', 'nodeName'));
}

/** The pods of a budget that count for it: ready, and not on their way out. */
export function healthyOf(budget: JsonObject, pods: readonly JsonObject[]): JsonObject[] {
  const namespace = stringAt(budget, 'metadata', 'namespace');
  const app = stringAt(budget, 'spec', 'selector', 'matchLabels', 'app');
  return pods.filter(
    (pod) =>
      stringAt(pod, 'metadata', 'namespace') === namespace &&
      stringAt(pod, 'metadata', 'labels', 'app') === app &&
      !isGoing(pod) &&
      isReady(pod),
  );
}

function assertBudget(budget: JsonObject, pods: readonly JsonObject[]): void {
  const allowed = numberAt(budget, 'status', 'disruptionsAllowed');
  const isUncounted = listAt(budget, 'status', 'conditions').some(
    (one) => stringAt(one, 'reason') === 'SyncFailed',
  );
  // As upstream: pods that cannot end, of an owner that is gone, keep a budget from being counted.
  if (isUncounted) return assert.equal(allowed, 0, `disruptions of ${nameOf(budget)}`);
  const healthy = healthyOf(budget, pods).length;
  const least = numberAt(budget, 'status', 'desiredHealthy');
  assert.equal(
    numberAt(budget, 'status', 'currentHealthy'),
    healthy,
    `healthy of ${nameOf(budget)}`,
  );
  const most = numberAt(budget, 'status', 'expectedPods') > 0 ? Math.max(0, healthy - least) : 0;
  assert.equal(allowed, most, `disruptions of ${nameOf(budget)}`);
}
