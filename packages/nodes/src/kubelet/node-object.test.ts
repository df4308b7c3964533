import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leaseBody, microTime, secondTime } from '../lease/lease-object.ts';
import { DEFAULT_TEMPLATE, NodeBodies } from './node-object.ts';

test('a body is the template with the marks of one node', () => {
  const bodies = new NodeBodies({ template: DEFAULT_TEMPLATE, zones: ['a', 'b'] });
  const node = JSON.parse(bodies.body(300, '2026-01-02T03:04:05Z'));
  assert.equal(node.metadata.name, 'node-300');
  assert.equal(node.metadata.labels['kubernetes.io/hostname'], 'node-300');
  assert.equal(node.metadata.labels['topology.kubernetes.io/zone'], 'a');
  assert.deepEqual(node.status.addresses[0], { type: 'InternalIP', address: '10.128.1.45' });
  assert.equal(node.status.allocatable.cpu, '32');
  const ready = node.status.conditions.find(({ type }: { type: string }) => type === 'Ready');
  assert.equal(ready.lastTransitionTime, '2026-01-02T03:04:05Z');
});

test('text of a template that looks like a mark stays as it is', () => {
  const template = { metadata: { annotations: { note: 'name zone "now" \\u0001name\\u0001' } } };
  const node = JSON.parse(new NodeBodies({ template, zones: ['a'] }).body(1, 'x'));
  assert.equal(node.metadata.annotations.note, 'name zone "now" \\u0001name\\u0001');
});

test('a lease body is what a kubelet sends', () => {
  const lease = JSON.parse(leaseBody('node-1', 'u-1', 42, 40, microTime(1_767_323_045_678)));
  assert.deepEqual(lease, {
    kind: 'Lease',
    apiVersion: 'coordination.k8s.io/v1',
    metadata: {
      name: 'node-1',
      namespace: 'kube-node-lease',
      resourceVersion: '42',
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'node-1', uid: 'u-1' }],
    },
    spec: {
      holderIdentity: 'node-1',
      leaseDurationSeconds: 40,
      renewTime: '2026-01-02T03:04:05.678000Z',
    },
  });
  const fresh = JSON.parse(leaseBody('node-1', 'u-1', 0, 40, microTime(0)));
  assert.equal(fresh.metadata.resourceVersion, undefined);
  assert.equal(secondTime(1_767_323_045_678), '2026-01-02T03:04:05Z');
});
