import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import fc from 'fast-check';
import {
  daemonStatus,
  planPlaces,
  planSurge,
  planUpdate,
  podTextOf,
  updateLimits,
  type DaemonPlace,
  type DaemonPod,
} from './daemon-set.ts';
import { DaemonFit, type DaemonNode } from './node-fit.ts';

const GOOD: DaemonPod = {
  row: 0,
  createdS: 1,
  isBound: true,
  isDeleting: false,
  isFailed: false,
  isSucceeded: false,
  isReady: true,
  isAvailable: true,
  isUpdated: true,
};

function place(node: number, pods: readonly Partial<DaemonPod>[], shouldRun = true): DaemonPlace {
  return { node, shouldRun, mayStay: shouldRun, pods: pods.map((pod) => ({ ...GOOD, ...pod })) };
}

function node(more: Partial<DaemonNode> = {}): DaemonNode {
  return { name: 'n', labels: { a: 'b' }, taints: [], ...more };
}

test('each node that fits gets one pod, and no other has any', () => {
  const places = [
    place(1, []),
    place(2, [{ row: 2 }]),
    place(3, [
      { row: 3, createdS: 5 },
      { row: 4, createdS: 4 },
    ]),
    place(5, [{ row: 5 }], false),
    place(6, [{ row: 6, isFailed: true, isReady: false }]),
    place(7, [{ row: 7, isDeleting: true }]),
  ];
  assert.deepEqual(planPlaces(places, false), {
    create: [1],
    remove: [3, 5, 6],
    failed: [[6, 6]],
    succeeded: [],
  });
});

test('a rolling update never has more nodes down than allowed', () => {
  const pod = fc.record({
    isAvailable: fc.boolean(),
    isUpdated: fc.boolean(),
    isDeleting: fc.boolean(),
  });
  const places = fc.array(fc.array(pod, { maxLength: 2 }), { maxLength: 8 }).map((all) =>
    all.map((pods, index) =>
      place(
        index,
        pods.map((one, at) => ({ ...one, row: index * 2 + at })),
      ),
    ),
  );
  fc.assert(
    fc.property(places, fc.nat({ max: 4 }), (all, unavailable) => {
      const removed = new Set(planUpdate(all, { surge: 0, unavailable }));
      const isUp = ({ pods }: DaemonPlace, isCounted: (row: number) => boolean): boolean =>
        pods.some((one) => one.isAvailable && !one.isDeleting && isCounted(one.row));
      const before = all.filter((one) => !isUp(one, () => true)).length;
      const after = all.filter((one) => !isUp(one, (row) => !removed.has(row))).length;
      assert(after <= Math.max(before, unavailable), `${before} -> ${after} of ${unavailable}`);
      for (const { pods } of all) {
        for (const one of pods) assert(!one.isUpdated || !removed.has(one.row), 'only old ones go');
      }
    }),
  );
});

test('a surge makes the new pod first, and deletes the old when the new is available', () => {
  const places = [
    place(1, [{ row: 1, isUpdated: false }]),
    place(2, [
      { row: 2, isUpdated: false },
      { row: 3, isAvailable: false },
    ]),
    place(3, [{ row: 4, isUpdated: false }, { row: 5 }]),
    place(4, [{ row: 6, isUpdated: false, isAvailable: false }]),
  ];
  assert.deepEqual(planSurge(places, { surge: 1, unavailable: 0 }), { create: [4], remove: [4] });
  assert.deepEqual(planSurge(places, { surge: 2, unavailable: 0 }).create, [4, 1]);
});

test('limits are shares of the wanted pods, and never both nothing', () => {
  const limits = (rollingUpdate: JsonObject): unknown =>
    updateLimits({ spec: { updateStrategy: { rollingUpdate } } }, 10);
  assert.deepEqual(limits({}), { surge: 0, unavailable: 1 });
  assert.deepEqual(limits({ maxSurge: 0, maxUnavailable: '25%' }), { surge: 0, unavailable: 3 });
  assert.deepEqual(limits({ maxSurge: 0, maxUnavailable: 0 }), { surge: 0, unavailable: 1 });
  assert.deepEqual(limits({ maxSurge: '10%', maxUnavailable: 0 }), { surge: 1, unavailable: 0 });
});

test('labels, affinity and taints decide about a node', () => {
  const fits = (spec: JsonObject, one: DaemonNode): string => {
    const { shouldRun, mayStay } = new DaemonFit(spec).of(one);
    return shouldRun ? 'run' : mayStay ? 'stay' : 'no';
  };
  assert.equal(fits({}, node()), 'run');
  assert.equal(fits({ nodeSelector: { a: 'c' } }, node()), 'no');
  assert.equal(fits({ nodeName: 'other' }, node()), 'no');
  const cordoned = { key: 'node.kubernetes.io/unschedulable', value: '', effect: 'NoSchedule' };
  assert.equal(fits({}, node({ taints: [cordoned] })), 'run');
  const own = { key: 'k', value: 'v', effect: 'NoSchedule' };
  assert.equal(fits({}, node({ taints: [own] })), 'stay');
  assert.equal(fits({}, node({ taints: [{ ...own, effect: 'NoExecute' }] })), 'no');
  assert.equal(fits({ tolerations: [{ operator: 'Exists' }] }, node({ taints: [own] })), 'run');
  const required = (nodeSelectorTerms: JsonObject[]): JsonObject => ({
    affinity: {
      nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } },
    },
  });
  const wanted = { matchExpressions: [{ key: 'a', operator: 'NotIn', values: ['b'] }] };
  assert.equal(fits(required([wanted]), node()), 'no');
  assert.equal(
    fits(required([wanted, { matchExpressions: [{ key: 'a', operator: 'Exists' }] }]), node()),
    'run',
  );
  const named = { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n'] }] };
  assert.equal(fits(required([named]), node()), 'run');
  assert.equal(fits(required([{}]), node()), 'no');
});

test('the pod of a node asks for that node, and bears what nodes have', () => {
  const set = {
    metadata: { name: 'd', annotations: { 'deprecated.daemonset.template.generation': '2' } },
    spec: { template: { metadata: { labels: { a: 'b' } }, spec: { containers: [] } } },
  };
  const owner = { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace: 'x', name: 'd', uid: 'u' };
  const pod = JSON.parse(podTextOf(set, owner, 'hash')('node-7')) as JsonObject;
  assert.match(
    JSON.stringify(pod),
    /"matchFields":\[\{"key":"metadata.name","operator":"In","values":\["node-7"\]/,
  );
  assert.deepEqual((pod['metadata'] as JsonObject)['labels'], {
    a: 'b',
    'pod-template-generation': '2',
    'controller-revision-hash': 'hash',
  });
});

test('the status counts nodes, not pods', () => {
  const places = [
    place(1, [{ row: 1 }, { row: 2, createdS: 9 }]),
    place(2, [{ row: 3, isReady: false, isAvailable: false, isUpdated: false }]),
    place(3, []),
    place(4, [{ row: 5 }], false),
  ];
  assert.deepEqual(daemonStatus({ metadata: { generation: 3 } }, places, 0), {
    currentNumberScheduled: 2,
    numberMisscheduled: 1,
    desiredNumberScheduled: 3,
    numberReady: 1,
    observedGeneration: 3,
    updatedNumberScheduled: 1,
    numberAvailable: 1,
    numberUnavailable: 2,
  });
});

test('pods that only may stay where they are take part in an update', () => {
  const stays = (one: number, pod: Partial<DaemonPod>): DaemonPlace => {
    return { ...place(one, [{ row: one, isUpdated: false, ...pod }], false), mayStay: true };
  };
  const broken = { isAvailable: false, isReady: false };
  assert.deepEqual(planUpdate([stays(1, {})], { surge: 0, unavailable: 1 }), [1]);
  assert.deepEqual(
    planUpdate([place(1, [broken]), stays(2, {})], { surge: 0, unavailable: 1 }),
    [],
  );
  const surge = { surge: 1, unavailable: 0 };
  const remove = (...places: DaemonPlace[]): readonly number[] => planSurge(places, surge).remove;
  assert.deepEqual(remove(stays(1, broken)), [1]);
  assert.deepEqual(remove(stays(1, {}), place(2, [{ row: 2 }])), [1]);
  assert.deepEqual(remove(stays(1, {}), place(2, [{ row: 2, ...broken }])), []);
});

test('what is on its way out does not hold a surge up', () => {
  const going = { row: 1, isUpdated: false, isDeleting: true };
  const old = { row: 3, isUpdated: false };
  const places = [place(1, [going, { row: 2, isAvailable: true }]), place(2, [old])];
  assert.deepEqual(planSurge(places, { surge: 1, unavailable: 0 }), { create: [2], remove: [] });
  assert.deepEqual(planPlaces([place(1, [going])], true).create, [1]);
  assert.deepEqual(planPlaces([place(1, [going])], false).create, []);
});

test('an old pod that is not ready goes as soon as the new one is there', () => {
  const pods = (isReady: boolean): Partial<DaemonPod>[] => [
    { row: 1, isUpdated: false, isReady, isAvailable: isReady },
    { row: 2, isReady: false, isAvailable: false },
  ];
  assert.deepEqual(planPlaces([place(1, pods(false))], true).remove, [1]);
  assert.deepEqual(planPlaces([place(1, pods(true))], true).remove, []);
});
