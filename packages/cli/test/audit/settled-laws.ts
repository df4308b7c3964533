/** What follows from what is there, once nothing has happened for a while. */
import assert from 'node:assert/strict';
import { listAt, numberAt, stringAt } from '@megaplane/machinery/json';
import { activePods, allPods, type Audit } from './auditor.ts';
import type { Sight } from './cluster-record.ts';

/** A Job that ended goes after the minute that it is kept, and a moment. */
const KEPT_MS = 90_000;
const HISTORY = 2;

/** Asserts what controllers tell of what they look after. */
export function assertSettled(audit: Audit): void {
  const { record } = audit;
  for (const set of record.ofKind('ReplicaSet')) if (!set.isGoing) assertCounted(audit, set);
  for (const set of record.ofKind('StatefulSet')) if (!set.isGoing) assertCounted(audit, set);
  for (const one of record.ofKind('Deployment')) if (!one.isGoing) assertHistory(audit, one);
  for (const service of record.ofKind('Service')) assertEndpoints(audit, service);
  for (const job of record.ofKind('Job')) assertKept(audit, job);
  for (const quota of record.ofKind('ResourceQuota')) assertCharged(audit, quota);
  for (const namespace of record.ofKind('Namespace')) assertFurnished(audit, namespace);
}

const pods = (all: Iterable<Sight>): Sight[] =>
  [...all].filter(({ kind, isGoing, hasEnded }) => kind === 'Pod' && !isGoing && !hasEnded);

function assertCounted(audit: Audit, set: Sight): void {
  // A pod of a StatefulSet is its replica until it is gone.
  const own = set.kind === 'StatefulSet' ? allPods(audit, set.uid) : activePods(audit, set.uid);
  const { object } = set;
  const told = ['replicas', 'readyReplicas'].map((one) => numberAt(object, 'status', one));
  assert.deepEqual(told, [own.length, own.filter(({ isReady }) => isReady).length], set.title);
  const generations = [
    numberAt(object, 'status', 'observedGeneration'),
    numberAt(object, 'metadata', 'generation'),
  ];
  assert.equal(generations[0], generations[1], `generation of ${set.title}`);
}

function assertHistory(audit: Audit, deployment: Sight): void {
  const { record } = audit;
  const sets = [...record.ownedBy(deployment.uid)].filter(({ isGoing }) => !isGoing);
  const wanted = sets.reduce((sum, set) => sum + (set.wanted.at(-1)?.count ?? 0), 0);
  assert.equal(wanted, deployment.wanted.at(-1)?.count ?? 0, `sets of ${deployment.title}`);
  assert(sets.length <= HISTORY + 1, `${deployment.title} keeps ${sets.length} sets`);
  const counts = [0, 0];
  for (const pod of sets.flatMap(({ uid }) => activePods(audit, uid))) {
    counts[0] = (counts[0] ?? 0) + 1;
    if (pod.isReady) counts[1] = (counts[1] ?? 0) + 1;
  }
  const told = ['replicas', 'readyReplicas'].map((one) =>
    numberAt(deployment.object, 'status', one),
  );
  assert.deepEqual(told, counts, deployment.title);
}

/** Addresses of pods that are ready, and no others, are where a Service leads. */
function assertEndpoints({ record }: Audit, service: Sight): void {
  const app = stringAt(service.object, 'spec', 'selector', 'app');
  if (app === '' || record.namespace(service.namespace)?.isGoing !== false) return;
  const ready: string[] = [];
  for (const slice of record.inNamespace(service.namespace)) {
    const isOwn = slice.label('kubernetes.io/service-name') === service.name;
    if (slice.kind !== 'EndpointSlice' || !isOwn) continue;
    for (const one of listAt(slice.object, 'endpoints')) {
      const isReady = (one as { conditions?: { ready?: boolean } }).conditions?.ready === true;
      if (isReady)
        ready.push(...listAt(one, 'addresses').filter((each) => typeof each === 'string'));
    }
  }
  const all = pods(record.inNamespace(service.namespace)).filter(
    (pod) => pod.label('app') === app && pod.isReady,
  );
  const addresses = (some: readonly Sight[]): string[] =>
    some.map(({ object }) => stringAt(object, 'status', 'podIP')).toSorted();
  // Pods of a node that is gone are left out by whoever counts before they are collected.
  const lost = new Set(addresses(all.filter((pod) => record.node(pod.nodeName) === undefined)));
  const told = ready.filter((address) => !lost.has(address)).toSorted();
  const wanted = addresses(all).filter((address) => !lost.has(address));
  assert.deepEqual(told, wanted, `endpoints of ${service.title}`);
}

function assertKept(audit: Audit, job: Sight): void {
  const end = job.condition('Complete') ?? job.condition('Failed');
  if (end === undefined || job.isGoing) return;
  const keptMs = audit.nowMs - Date.parse(stringAt(end, 'lastTransitionTime'));
  assert(keptMs < KEPT_MS, `${job.title} is kept ${keptMs} ms after its end`);
}

function assertCharged({ record }: Audit, quota: Sight): void {
  if (record.namespace(quota.namespace)?.isGoing !== false) return;
  const used = Number(stringAt(quota.object, 'status', 'used', 'pods'));
  const all = [...record.inNamespace(quota.namespace)].filter(({ kind }) => kind === 'Pod');
  assert.equal(used, all.filter(({ hasEnded }) => !hasEnded).length, quota.title);
}

/** A namespace has the account and the certificate that its pods lean on. */
function assertFurnished({ record }: Audit, namespace: Sight): void {
  if (namespace.isGoing) return;
  const names = new Set(
    [...record.inNamespace(namespace.name)].map((one) => `${one.kind} ${one.name}`),
  );
  for (const one of ['ServiceAccount default', 'ConfigMap kube-root-ca.crt']) {
    assert(names.has(one), `${one} of ${namespace.title}`);
  }
}
