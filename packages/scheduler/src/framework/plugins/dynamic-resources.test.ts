import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Cluster } from '../cluster.ts';
import { Evaluator } from '../../placement/evaluator.ts';
import type { KubeObject, PodObject } from '../../api/objects.ts';
import { PodInfo } from '../pod-info.ts';
import { createProfile } from '../runtime/profile.ts';

function messageFor(spec: PodObject['spec'], ...objects: readonly object[]): string {
  const cluster = new Cluster(true);
  const node = { kind: 'Node', metadata: { name: 'n' }, status: { allocatable: { pods: '9' } } };
  for (const object of [node, ...objects]) cluster.apply(object as KubeObject);
  cluster.refresh();
  const pod = new PodInfo({ metadata: { name: 'p', namespace: 'default' }, spec });
  const decision = new Evaluator().decide(pod, cluster, createProfile(), { on: () => [] });
  return decision.kind === 'failed' ? decision.message : '';
}

const CLAIM = {
  kind: 'ResourceClaim',
  metadata: { name: 'c', namespace: 'default' },
  spec: { devices: { requests: [{ name: 'g', exactly: { deviceClassName: 'nope' } }] } },
};
const resourceClaims = [{ name: 'r', resourceClaimName: 'c' }];

// Both recorded from kube-scheduler v1.35.4.
test('a class that is not there ends the cycle, and preemption is looked into all the same', () => {
  assert.equal(
    messageFor({ resourceClaims }, CLAIM),
    '0/1 nodes are available: request g: device class nope does not exist. ' +
      'no new claims to deallocate, preemption: 0/1 nodes are available: ' +
      '1 Preemption is not helpful for scheduling.',
  );
});

test('a plugin before it that ends the cycle leaves it with nothing to say', () => {
  const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'x' } }];
  assert.equal(
    messageFor({ volumes }),
    '0/1 nodes are available: persistentvolumeclaim "x" not found. not found',
  );
});
