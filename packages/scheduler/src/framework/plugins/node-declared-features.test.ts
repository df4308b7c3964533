import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NodeObject, PodObject } from '../../api/objects.ts';
import { SchedulerCore } from '../../core/scheduler-core.ts';
import { requiredFeatures } from '../../api/declared-features.ts';

const HOST_USERS = 'UserNamespacesHostNetworkSupport';
const RESTARTS = 'RestartAllContainersOnContainerExits';

test('a pod requires what its kubelet must be able to do', () => {
  const of = (spec: PodObject['spec']): string[] => {
    return requiredFeatures({ metadata: { name: 'p' }, spec });
  };
  const rules = [{ action: 'RestartAllContainers' }];
  const init = { name: 'c', restartPolicyRules: rules };
  assert.deepEqual(of({ containers: [{ name: 'c' }] }), []);
  assert.deepEqual(of({ hostNetwork: true }), []);
  assert.deepEqual(of({ hostUsers: false }), []);
  assert.deepEqual(
    of({ containers: [{ ...init, restartPolicyRules: [{ action: 'Restart' }] }] }),
    [],
  );
  assert.deepEqual(of({ initContainers: [init], hostNetwork: true, hostUsers: false }), [
    RESTARTS,
    HOST_USERS,
  ]);
});

test('a pod waits for a node whose kubelet tells that it can do what the pod requires', () => {
  const core = new SchedulerCore({ seed: 1, keyOf: () => 'default/p' });
  const nodeOf = (declaredFeatures?: string[]): NodeObject => {
    const allocatable = { cpu: '4', memory: '8Gi', pods: '10' };
    const status = { allocatable, ...(declaredFeatures && { declaredFeatures }) };
    return { metadata: { name: 'n' }, spec: {}, status };
  };
  core.nodeSeen(nodeOf(), 0);
  const metadata = { name: 'p', namespace: 'default' };
  const spec = { containers: [{ name: 'c' }], hostNetwork: true, hostUsers: false };
  const bytes = Buffer.from(JSON.stringify({ metadata, spec }));
  core.podSeen(0, true, bytes, 0, bytes.length, 0);
  const refused = core.attempt(0);
  assert(refused?.kind === 'failed');
  assert.equal(
    refused.failure.message.replace(/ no new claims.*/, ''),
    "0/1 nodes are available: 1 node(s) didn't match Pod's required features.",
  );
  core.nodeSeen(nodeOf(['Other']), 20_000);
  assert.equal(core.attempt(20_000)?.kind, 'failed');
  core.nodeSeen(nodeOf(['Other', HOST_USERS]), 40_000);
  assert.equal(core.attempt(40_000)?.kind, 'bind');
});
