import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import fc from 'fast-check';
import { revisionData, revisionHash } from '../framework/controller-revisions.ts';
import {
  claimsOfOrdinal,
  nextSteps,
  podOfOrdinal,
  statefulStatus,
  type StatefulPod,
  type StatefulStep,
  unnamedPods,
} from './stateful-set.ts';

const OWNER = { apiVersion: 'apps/v1', kind: 'StatefulSet', namespace: 'd', name: 'web', uid: 'u' };

function pod(ordinal: number, more: Partial<StatefulPod> = {}): StatefulPod {
  return {
    ordinal,
    name: `web-${ordinal}`,
    revision: 'new',
    isDeleting: false,
    isPending: false,
    isFailed: false,
    isSucceeded: false,
    isReady: true,
    isAvailable: true,
    isNamed: true,
    ...more,
  };
}

function steps(spec: JsonObject, pods: readonly StatefulPod[]): readonly string[] {
  const view = { set: { metadata: { name: 'web' }, spec }, pods, current: 'old', update: 'new' };
  const text = (step: StatefulStep): string => {
    if (step.kind === 'create') return `create ${step.ordinal} ${step.isUpdate ? 'new' : 'old'}`;
    return `${step.kind} ${step.pod.ordinal}`;
  };
  return nextSteps(view).map(text);
}

test('pods come one after the other, each when the one before is available', () => {
  assert.deepEqual(steps({ replicas: 3 }, []), ['create 0 new']);
  assert.deepEqual(steps({ replicas: 3 }, [pod(0, { isReady: false })]), []);
  assert.deepEqual(steps({ replicas: 3 }, [pod(0, { isAvailable: false })]), []);
  assert.deepEqual(steps({ replicas: 3 }, [pod(0)]), ['create 1 new']);
  assert.deepEqual(steps({ replicas: 2, ordinals: { start: 5 } }, [pod(5)]), ['create 6 new']);
  assert.deepEqual(steps({ replicas: 2, podManagementPolicy: 'Parallel' }, []), [
    'create 0 new',
    'create 1 new',
  ]);
});

test('pods go from the last, and failed ones are made anew', () => {
  assert.deepEqual(steps({ replicas: 1 }, [pod(0), pod(1), pod(2)]), ['delete 2']);
  assert.deepEqual(steps({ replicas: 1 }, [pod(0), pod(1), pod(2, { isDeleting: true })]), []);
  assert.deepEqual(steps({ replicas: 2 }, [pod(0, { isFailed: true }), pod(1)]), ['recreate 0']);
});

test('an update goes from the last ordinal down to the partition, one pod at a time', () => {
  const old = { revision: 'old' };
  const all = [pod(0, old), pod(1, old), pod(2, old)];
  assert.deepEqual(steps({ replicas: 3 }, all), ['delete 2']);
  assert.deepEqual(steps({ replicas: 3 }, [pod(0, old), pod(1, old), pod(2)]), ['delete 1']);
  const broken = [pod(0, old), pod(1, old), pod(2, { isReady: false })];
  assert.deepEqual(steps({ replicas: 3, podManagementPolicy: 'Parallel' }, broken), []);
  const partition = { rollingUpdate: { partition: 2 } };
  assert.deepEqual(
    steps({ replicas: 3, updateStrategy: partition }, [pod(0, old), pod(1, old), pod(2)]),
    [],
  );
  assert.deepEqual(steps({ replicas: 3, updateStrategy: partition }, [pod(0, old)]), [
    'create 1 old',
  ]);
  assert.deepEqual(steps({ replicas: 3, updateStrategy: { type: 'OnDelete' } }, all), []);
});

test('in order there is never more than one step, and none past a pod that is not well', () => {
  const one = fc.record({
    isReady: fc.boolean(),
    isDeleting: fc.boolean(),
    isFailed: fc.boolean(),
    revision: fc.constantFrom('old', 'new'),
  });
  fc.assert(
    fc.property(fc.array(one, { maxLength: 6 }), fc.nat({ max: 6 }), (made, replicas) => {
      const pods = made.map((more, ordinal) =>
        pod(ordinal, { ...more, isAvailable: more.isReady }),
      );
      const taken = steps({ replicas }, pods);
      assert(taken.length <= 1);
      const [step = ''] = taken;
      const ordinal = Number(step.split(' ')[1]);
      if (!step.startsWith('create')) return;
      for (const before of pods.slice(0, ordinal)) {
        assert(before.isReady && !before.isDeleting && !before.isFailed);
      }
    }),
  );
});

test('revisions have the names that upstream gives them', () => {
  const spec = {
    containers: [
      {
        name: 'c',
        image: 'img:1',
        resources: {},
        terminationMessagePath: '/dev/termination-log',
        terminationMessagePolicy: 'File',
        imagePullPolicy: 'IfNotPresent',
      },
    ],
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 30,
    dnsPolicy: 'ClusterFirst',
    securityContext: {},
    schedulerName: 'default-scheduler',
  };
  const data = revisionData({ metadata: { labels: { app: 'web' } }, spec });
  assert.match(
    JSON.stringify(data),
    /^\{"spec":\{"template":\{"\$patch":"replace","metadata":\{"labels":\{"app":"web"\}\},"spec":/,
  );
  // recorded with v1.31, which wrote a time of creation that nobody set
  const metadata = { creationTimestamp: null, labels: { app: 'web' } };
  const recorded = { spec: { template: { $patch: 'replace', metadata, spec } } };
  assert.equal(revisionHash(recorded, 0), '664874858');
  assert.notEqual(revisionHash(recorded, 1), '664874858');
  assert.equal(revisionHash(data, 0), '664874858');
});

test('a pod has its name, its host name and its claims', () => {
  const set = {
    metadata: { name: 'web' },
    spec: {
      serviceName: 'svc',
      selector: { matchLabels: { app: 'web' } },
      volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: { x: 1 } }],
    },
  };
  const made = podOfOrdinal(set, { spec: { volumes: [{ name: 'other' }] } }, OWNER, 3, 'web-x');
  const spec = made['spec'] as JsonObject;
  assert.equal((made['metadata'] as JsonObject)['generateName'], 'web-');
  assert.deepEqual([spec['hostname'], spec['subdomain']], ['web-3', 'svc']);
  assert.deepEqual(spec['volumes'], [
    { name: 'data', persistentVolumeClaim: { claimName: 'data-web-3' } },
    { name: 'other' },
  ]);
  const [claim] = claimsOfOrdinal(set, OWNER, 3);
  assert(claim);
  assert.deepEqual(claim['metadata'], {
    name: 'data-web-3',
    namespace: 'd',
    labels: { app: 'web' },
  });
});

test('the status tells of a finished update', () => {
  const set = { metadata: { generation: 2 }, spec: { replicas: 2 } };
  const view = { set, pods: [pod(0), pod(1)], current: 'old', update: 'new' };
  const done = statefulStatus(view, 0);
  assert.deepEqual([done['currentRevision'], done['currentReplicas']], ['new', 2]);
  const underWay = statefulStatus({ ...view, pods: [pod(0, { revision: 'old' }), pod(1)] }, 0);
  assert.deepEqual([underWay['currentRevision'], underWay['currentReplicas']], ['old', 1]);
});

test('pods get the labels that they lack in their turn', () => {
  const named = (spec: JsonObject, pods: readonly StatefulPod[]): readonly number[] => {
    const view = { set: { spec }, pods, current: 'new', update: 'new' };
    return unnamedPods(view).map(({ ordinal }) => ordinal);
  };
  const lacks = { isNamed: false };
  const spec = { replicas: 3 };
  assert.deepEqual(named(spec, [pod(0), pod(1, lacks), pod(2, lacks)]), [1, 2]);
  assert.deepEqual(named(spec, [pod(1, lacks)]), []);
  assert.deepEqual(named(spec, [pod(0, { ...lacks, isReady: false }), pod(1, lacks)]), []);
  const parallel = { replicas: 2, podManagementPolicy: 'Parallel' };
  assert.deepEqual(named(parallel, [pod(1, { ...lacks, isReady: false }), pod(2, lacks)]), [1]);
});

test('in parallel, too, an update waits for as long as a pod must be ready', () => {
  const pods = [pod(0, { revision: 'old' }), pod(1, { isAvailable: false })];
  assert.deepEqual(steps({ replicas: 2, podManagementPolicy: 'Parallel' }, pods), []);
  assert.deepEqual(steps({ replicas: 2 }, pods), []);
});
