import assert from 'node:assert/strict';
import { test } from 'node:test';
import { identityOf } from '../request/identity.ts';
import { serverPair } from '../testing/server-pair.sim.ts';

const PODS = '/api/v1/namespaces/default/pods';
const STRATEGIC = 'application/strategic-merge-patch+json';
const MERGE = 'application/merge-patch+json';

/** Nodes n-0 to n-3 with a pod each; who asks with a node's name for a token is that node. */
function pair() {
  const { both, uses } = serverPair({
    disabledPlugins: ['ServiceAccount'],
    tokenReaders: () => [
      (token) =>
        token === 'admin'
          ? identityOf('admin', ['system:masters'])
          : identityOf(`system:node:${token}`, ['system:nodes']),
    ],
    authorizers: [() => ({ allowed: true, reason: '' })],
  });
  const admin = { authorization: 'Bearer admin' };
  both('POST', '/api/v1/namespaces', { metadata: { name: 'default' } }, admin);
  for (let index = 0; index < 4; index++) {
    const name = `n-${index}`;
    const labels = { 'kubernetes.io/hostname': name };
    const spec = { taints: [{ key: 'a', effect: 'NoSchedule' }] };
    both('POST', '/api/v1/nodes', { metadata: { name, labels }, spec }, admin);
    const pod = { nodeName: name, containers: [{ name: 'c', image: 'i' }] };
    both(
      'POST',
      PODS,
      { metadata: { name: `p-${index}`, labels: { app: 'a' } }, spec: pod },
      admin,
    );
  }
  const patch = (token: string, path: string, body: object, type = STRATEGIC): number => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': type };
    return both('PATCH', path, body, headers).status;
  };
  const before = uses();
  return { both, patch, uses: () => uses() - before };
}

function running(index: number): object {
  const time = `2026-01-02T03:04:1${index}Z`;
  const ready = { type: 'Ready', status: 'True', lastProbeTime: null, lastTransitionTime: time };
  const podIP = `10.0.${index}.1`;
  return { phase: 'Running', conditions: [ready], podIP, podIPs: [{ ip: podIP }] };
}

function alive(index: number, more: object = {}): object {
  const time = `2026-01-02T03:04:1${index}Z`;
  const ready = {
    type: 'Ready',
    status: 'True',
    lastHeartbeatTime: time,
    lastTransitionTime: time,
  };
  return {
    status: { conditions: [{ ...ready, reason: 'KubeletReady', message: 'fine' }] },
    ...more,
  };
}

test('statuses that nodes report of their pods are made from one template', () => {
  const { patch, uses } = pair();
  for (let index = 0; index < 4; index++) {
    const path = `${PODS}/p-${index}/status`;
    assert.equal(patch(`n-${index}`, path, { status: running(index) }), 200);
  }
  assert.equal(uses(), 2);
  // the pod of another node, and what no node may change
  assert.equal(patch('n-0', `${PODS}/p-1/status`, { status: running(1) }), 403);
  const labels = { app: 'b' };
  for (let index = 0; index < 4; index++) {
    const body = { metadata: { labels }, status: running(index) };
    assert.equal(patch(`n-${index}`, `${PODS}/p-${index}/status`, body), 403);
  }
  assert.equal(uses(), 2);
});

test('statuses that nodes report of themselves are made from one template', () => {
  const { patch, uses } = pair();
  for (let index = 0; index < 8; index++) {
    const node = `n-${index % 4}`;
    assert.equal(patch(node, `/api/v1/nodes/${node}/status`, alive(index)), 200);
  }
  // the first statuses are of nodes that had none: two templates
  assert.equal(uses(), 4);
  assert.equal(patch('n-0', '/api/v1/nodes/n-1/status', alive(5)), 403);
  for (let index = 0; index < 4; index++) {
    const labels = { 'kubernetes.io/hostname': `n-${index}`, 'x.k8s.io/y': 'z' };
    const path = `/api/v1/nodes/n-${index}/status`;
    assert.equal(patch(`n-${index}`, path, alive(5, { metadata: { labels } })), 403);
  }
  assert.equal(uses(), 4);
});

test('what a node says of its spec is judged by its own, whatever others said', () => {
  const { patch, uses } = pair();
  const taints = ['a', 'node.kubernetes.io/not-ready'].map((key) => {
    return { key, effect: 'NoSchedule' };
  });
  for (let index = 0; index < 8; index++) {
    const token = `n-${index % 4}`;
    const path = `/api/v1/nodes/${token}/status`;
    const escaped = JSON.stringify(alive(index, { spec: null })).replace('spec', 'sp\\u0065c');
    const codes = [
      patch(token, path, alive(index, { spec: { taints } }), MERGE),
      patch(token, path, alive(index, { spec: { taints: [] } }), MERGE),
      patch(token, path, { $patch: 'replace', ...alive(index) }),
      patch(token, path, Buffer.from(escaped), MERGE),
    ];
    assert.deepEqual(codes, [200, 403, 400, 403]);
  }
  assert.equal(uses(), 0);
});
