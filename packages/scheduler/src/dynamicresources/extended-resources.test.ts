import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NodeInfo } from '../framework/node-info.ts';
import type { Container, KubeObject, PodObject } from '../api/objects.ts';
import { PodInfo } from '../framework/pod-info.ts';
import { SchedulerCore } from '../core/scheduler-core.ts';
import type { DeviceClassObject } from '../devices/device-objects.ts';
import { classBehind, extendedClaimFor } from './extended-resources.ts';

const CLASS: DeviceClassObject = {
  metadata: { name: 'cls' },
  spec: {
    selectors: [{ cel: { expression: "device.driver == 'd.example.com'" } }],
    extendedResourceName: 'example.com/dev',
  },
};

const UID = '00000000-0000-0000-0000-000000000001';

function container(name: string, count: number, more: object = {}): Container {
  const resources = { requests: { cpu: '100m', 'example.com/dev': String(count) } };
  return { name, resources, ...more };
}

function podOf(spec: PodObject['spec']): PodObject {
  return { metadata: { name: 'p', namespace: 'default', uid: UID }, spec };
}

/** One node with devices, and one with a plugin that offers the same resource. */
class Cluster {
  readonly core = new SchedulerCore({ seed: 1, keyOf: () => 'default/p' });

  node(name: string, devices: number, own = '0'): void {
    const allocatable = { cpu: '4', memory: '8Gi', pods: '10', 'example.com/dev': own };
    this.core.nodeSeen({ metadata: { name }, status: { allocatable } }, 0);
    const pool = { name, generation: 1, resourceSliceCount: 1 };
    const list = Array.from({ length: devices }, (_, i) => ({ name: `d${i}` }));
    this.object('ResourceSlice', {
      metadata: { name },
      spec: { driver: 'd.example.com', nodeName: name, pool, devices: list },
    });
  }

  object(kind: string, object: object): void {
    this.core.objectSeen(kind, object as KubeObject, 0);
  }

  pod(spec: PodObject['spec']): void {
    const bytes = Buffer.from(JSON.stringify(podOf(spec)));
    this.core.podSeen(0, true, bytes, 0, bytes.length, 0);
  }

  attempt(nowMs: number): ReturnType<SchedulerCore['attempt']> {
    return this.core.attempt(nowMs);
  }
}

test('the newest class of those for one resource counts, and each stands for its own name', () => {
  const classes = [
    { ...CLASS, metadata: { name: 'a', creationTimestamp: '2026-01-01T00:00:00Z' } },
    { ...CLASS, metadata: { name: 'c', creationTimestamp: '2026-02-01T00:00:00Z' } },
    { ...CLASS, metadata: { name: 'b', creationTimestamp: '2026-02-01T00:00:00Z' } },
  ];
  const known = {
    object: (_kind: string, name: string) => classes.find((one) => one.metadata.name === name),
    objects: () => classes,
  };
  const nameOf = (resource: string): string | undefined =>
    classBehind(resource, known)?.metadata.name;
  assert.equal(nameOf('example.com/dev'), 'b');
  assert.equal(nameOf('deviceclass.resource.kubernetes.io/a'), 'a');
  assert.equal(nameOf('example.com/other'), undefined);
  assert.equal(nameOf('cpu'), undefined);
});

test('containers that end before others begin use the devices of those, and share the rest', () => {
  const initContainers = [
    container('first', 4),
    container('sidecar', 1, { restartPolicy: 'Always' }),
    container('second', 3),
  ];
  const spec = { initContainers, containers: [container('main', 2)] };
  const node = new NodeInfo({ metadata: { name: 'n' } });
  const backed = new Map([['example.com/dev', CLASS]]);
  const extended = extendedClaimFor(new PodInfo(podOf(spec)), node, backed);
  const requests = extended?.claim.spec?.devices?.requests ?? [];
  assert.deepEqual(
    requests.map(({ name, exactly }) => [name, exactly?.count, exactly?.deviceClassName]),
    [
      // `first` may use one of the sidecar and two of `main`, `second` those of `main` alone.
      ['container-0-request-1', 1, 'cls'],
      ['container-1-request-1', 1, 'cls'],
      ['container-3-request-1', 2, 'cls'],
    ],
  );
  assert.deepEqual(
    extended?.mappings.map(({ container, requestName }) => [container, requestName]),
    [
      [1, 'container-1-request-1'],
      [3, 'container-3-request-1'],
      [0, 'container-1-request-1'],
      [0, 'container-3-request-1'],
      [0, 'container-0-request-1'],
      [2, 'container-3-request-1'],
      [2, 'container-0-request-1'],
    ],
  );
});

test('a pod gets a node whose devices stand for what it asks for, and a claim is made', () => {
  const cluster = new Cluster();
  cluster.object('DeviceClass', CLASS);
  cluster.node('few', 1);
  cluster.node('many', 2);
  cluster.pod({ containers: [container('c', 2)] });
  const attempt = cluster.attempt(0);
  assert(attempt?.kind === 'bind');
  assert.equal(cluster.core.nodes.nameOf(attempt.node), 'many');
  const [reservation] = attempt.reservations;
  const writes = reservation?.writes ?? [];
  assert.deepEqual(
    writes.map(({ action = 'put', kind, subresource }) => `${action} ${kind} ${subresource}`),
    ['create ResourceClaim ', 'put ResourceClaim ', 'put ResourceClaim status', 'put Pod status'],
  );
  const claim = writes[0]?.change({}, 0) as unknown as KubeObject;
  assert.match(claim.metadata.name, /^p-extended-resources-\w{5}$/);
  const annotation = 'resource.kubernetes.io/extended-resource-claim';
  assert.equal(claim.metadata.annotations?.[annotation], 'true');
  const requestName = 'container-0-request-1';
  const mapping = { containerName: 'c', resourceName: 'example.com/dev', requestName };
  const spec = { containers: [{ name: 'c' }] };
  assert.deepEqual(writes[3]?.change({ spec }, 0), {
    spec,
    status: {
      extendedResourceClaimStatus: {
        requestMappings: [mapping],
        resourceClaimName: claim.metadata.name,
      },
    },
  });
  assert.deepEqual(
    reservation?.undo.map(({ action = 'put' }) => action),
    ['put', 'delete'],
  );
});

test('a node that offers the resource itself needs no devices', () => {
  const cluster = new Cluster();
  cluster.object('DeviceClass', CLASS);
  cluster.node('plugin', 0, '2');
  cluster.pod({ containers: [container('c', 2)] });
  const attempt = cluster.attempt(0);
  assert(attempt?.kind === 'bind');
  assert.deepEqual(attempt.reservations, []);
});

test('a pod that asks for a resource that nobody has is tried when a class stands for it', () => {
  const cluster = new Cluster();
  cluster.node('n', 2);
  cluster.pod({ containers: [container('c', 1)] });
  const first = cluster.attempt(0);
  assert(first?.kind === 'failed');
  assert.match(first.failure.message, /1 Insufficient example\.com\/dev/);
  cluster.object('DeviceClass', { metadata: { name: 'other' } });
  assert.equal(cluster.attempt(10_000), null);
  cluster.object('DeviceClass', CLASS);
  assert.equal(cluster.attempt(10_000)?.kind, 'bind');
});

test('a claim that an earlier try left behind is deleted before the next one', () => {
  const cluster = new Cluster();
  cluster.object('DeviceClass', CLASS);
  cluster.node('n', 2);
  const owner = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: UID, controller: true };
  const annotations = { 'resource.kubernetes.io/extended-resource-claim': 'true' };
  const metadata = { name: 'left', namespace: 'default', annotations, ownerReferences: [owner] };
  cluster.object('ResourceClaim', { metadata, spec: {} });
  cluster.pod({ containers: [container('c', 1)] });
  const attempt = cluster.attempt(0);
  assert(attempt?.kind === 'failed');
  assert.match(attempt.failure.message, /cannot schedule extended resource claim\. deletion of/);
  assert.equal(attempt.failure.writes?.length, 2);
  cluster.core.objectGone('ResourceClaim', 'default/left', 10_000);
  assert.equal(cluster.attempt(20_000)?.kind, 'bind');
});
