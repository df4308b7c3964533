import assert from 'node:assert/strict';
import { test } from 'node:test';
import { admittingModel } from '../../testing/admitting.sim.ts';

const PODS = '/api/v1/namespaces/n/pods';
const STRATEGIC = { 'content-type': 'application/strategic-merge-patch+json' };

interface Pod {
  readonly metadata: { readonly labels?: object; readonly generation: number };
  readonly spec: {
    readonly containers: readonly Record<string, unknown>[];
    readonly ephemeralContainers?: readonly Record<string, unknown>[];
  };
  readonly status: Readonly<Record<string, unknown>>;
}

function patchable() {
  const model = admittingModel();
  const resources = { requests: { cpu: '1' } };
  const spec = { containers: [{ name: 'c', image: 'x', resources }] };
  model.expect(201, 'POST', PODS, { metadata: { name: 'a' }, spec });
  return (part: string, change: object): Pod => {
    const body = Buffer.from(JSON.stringify(change));
    const answer = model.ask('PATCH', `${PODS}/a/${part}`, body, STRATEGIC);
    assert.equal(answer.status, 200, answer.text);
    return JSON.parse(answer.text) as Pod;
  };
}

test('a resize changes amounts, and nothing else that it is sent with', () => {
  const patch = patchable();
  const resources = { requests: { cpu: '2' } };
  const pod = patch('resize', {
    metadata: { labels: { l: 'm' } },
    spec: { containers: [{ name: 'c', image: 'y', resources }] },
    status: { phase: 'Running' },
  });
  assert.deepEqual(pod.metadata.labels, undefined);
  assert.equal(pod.metadata.generation, 2);
  assert.equal(pod.spec.containers[0]?.['image'], 'x');
  assert.deepEqual(pod.spec.containers[0]?.['resources'], resources);
  assert.equal(pod.status['phase'], 'Pending');
});

test('what a resize was sent with is owned by who sent it, taken over or not', () => {
  const patch = patchable();
  const containers = [{ name: 'c', resources: { requests: { cpu: '2' } } }];
  const ephemeralContainers = [{ name: 'e', image: 'z' }];
  const { metadata } = patch('resize', { spec: { containers, ephemeralContainers } }) as {
    metadata: { managedFields?: { subresource?: string; fieldsV1: unknown }[] };
  };
  const own = metadata.managedFields?.find((one) => one.subresource === 'resize');
  assert.match(JSON.stringify(own), /f:ephemeralContainers/);
});

test('a container is added to look into a pod, and the others stay', () => {
  const patch = patchable();
  const pod = patch('ephemeralcontainers', {
    spec: {
      containers: [{ name: 'c', image: 'y' }],
      ephemeralContainers: [{ name: 'e', image: 'z' }],
    },
  });
  assert.equal(pod.spec.containers[0]?.['image'], 'x');
  assert.equal(pod.spec.ephemeralContainers?.[0]?.['image'], 'z');
});

test('a report keeps the class of a pod, and the generation that was observed', () => {
  const patch = patchable();
  const condition = { type: 'Ready', status: 'True', observedGeneration: 1 };
  patch('status', { status: { observedGeneration: 1, conditions: [condition] } });
  const { status } = patch('status', {
    status: {
      qosClass: null,
      observedGeneration: null,
      conditions: [{ type: 'Ready', status: 'False', observedGeneration: null }],
    },
  });
  assert.equal(status['qosClass'], 'Burstable');
  assert.equal(status['observedGeneration'], 1);
  const [ready] = status['conditions'] as { status: string; observedGeneration: number }[];
  assert.deepEqual([ready?.status, ready?.observedGeneration], ['False', 1]);
});
