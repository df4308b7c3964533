import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SchedulerCore } from './scheduler-core.ts';
import type { KubeObject } from './objects.ts';

/** A machine with two nodes, a storage class that waits, and a pod that wants the claim. */
function decide(claim: object): string {
  const core = new SchedulerCore({ seed: 1, keyOf: () => 'default/p' });
  const objects: object[] = [
    {
      kind: 'StorageClass',
      metadata: { name: 'slow' },
      provisioner: 'csi.example',
      volumeBindingMode: 'WaitForFirstConsumer',
    },
    {
      kind: 'PersistentVolume',
      metadata: { name: 'v' },
      spec: {
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [
              { matchExpressions: [{ key: 'zone', operator: 'In', values: ['b'] }] },
            ],
          },
        },
      },
    },
    { kind: 'PersistentVolumeClaim', metadata: { name: 'c', namespace: 'default' }, ...claim },
  ];
  for (const object of objects as KubeObject[]) core.objectSeen(object.kind ?? '', object, 0);
  for (const zone of ['a', 'b']) {
    const metadata = { name: `n${zone}`, labels: { zone } };
    core.nodeSeen({ metadata, status: { allocatable: { pods: '9' } } }, 0);
  }
  const volumes = [{ name: 'd', persistentVolumeClaim: { claimName: 'c' } }];
  const pod = { metadata: { name: 'p', namespace: 'default' }, spec: { volumes } };
  const bytes = Buffer.from(JSON.stringify(pod));
  core.podSeen(0, true, bytes, 0, bytes.length, 0);
  const attempt = core.attempt(0);
  assert(attempt !== null);
  return attempt.kind === 'bind' ? core.nodes.nameOf(attempt.node) : attempt.failure.message;
}

test('a pod goes where its bound volume is', () => {
  const annotations = { 'pv.kubernetes.io/bind-completed': 'yes' };
  const metadata = { name: 'c', namespace: 'default', annotations };
  assert.equal(decide({ metadata, spec: { volumeName: 'v', storageClassName: 'slow' } }), 'nb');
});

test('a claim that only its consumer can bind is refused by name', () => {
  const spec = { storageClassName: 'slow', resources: { requests: { storage: '1Gi' } } };
  assert.match(decide({ spec }), /WaitForFirstConsumer/);
});

test('a claim that nobody bound keeps the pod waiting', () => {
  assert.match(decide({ spec: { storageClassName: 'fast' } }), /unbound immediate/);
});
