import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../json/json-value.ts';
import { findResource } from '../scheme/kinds.ts';
import { createWarnings, updateWarnings } from './warnings.ts';

function told(group: string, plural: string, object: JsonObject): string[] {
  const resource = findResource(group, 'v1', plural);
  assert(resource !== undefined);
  return Array.from(createWarnings(resource, object));
}

test('a pod that is let through hears of what does nothing and what surprises', () => {
  const pod: JsonObject = {
    metadata: { name: 'a.b', annotations: { 'scheduler.alpha.kubernetes.io/critical-pod': '' } },
    spec: {
      nodeSelector: { 'beta.kubernetes.io/os': 'linux' },
      volumes: [{ name: 'v', cephfs: { monitors: ['m'] } }],
      hostAliases: [{ ip: '::0' }],
      containers: [
        {
          name: 'c',
          env: [
            { name: 'A', value: '1' },
            { name: 'A', value: '2' },
          ],
          resources: { limits: { memory: '1500m' } },
          ports: [
            { name: 'p', containerPort: 80, protocol: 'TCP', hostIP: '10.0.0.1' },
            { name: 'p', containerPort: 80, protocol: 'TCP', hostPort: 80 },
          ],
        },
      ],
    },
  };
  assert.deepEqual(told('', 'pods', pod), [
    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; " +
      'a DNS label is recommended: [must not contain dots]',
    'spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" ' +
      'instead',
    'metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; ' +
      'use the "priorityClassName" field instead',
    'spec.volumes[0].cephfs: deprecated in v1.28, non-functional in v1.31+',
    'spec.containers[0].resources.limits[memory]: fractional byte value "1500m" is invalid, must ' +
      'be an integer',
    'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when ' +
      'using apply',
    'spec.containers[0].ports[0]: hostIP set without hostPort: {Name:p HostPort:0 ' +
      'ContainerPort:80 Protocol:TCP HostIP:10.0.0.1}',
    'spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]',
    'spec.containers[0].ports[1]: duplicate port name "p" with spec.containers[0].ports[0], ' +
      'services and probes that select ports by name will use spec.containers[0].ports[0]',
    'spec.hostAliases[0].ip: IPv6 address "::0" should be in RFC 5952 canonical format ("::")',
  ]);
});

test('files of one volume that take each other’s place are told of', () => {
  const item = (path: string): JsonObject => ({ key: 'k', path });
  const pod: JsonObject = {
    metadata: { name: 'p' },
    spec: {
      volumes: [
        { name: 'c', configMap: { name: 'm', items: [item('a'), item('a/b')] } },
        { name: 'p', projected: { sources: [{}, { secret: { name: 's', items: [item('x')] } }] } },
      ],
    },
  };
  assert.deepEqual(told('', 'pods', pod), [
    'volume "c" (ConfigMap "m"): overlapping paths: "a/b" with "a"',
    'volume "p" (Projected) has no sources provided',
  ]);
});

test('a service, a volume and a secret hear of what is out of date', () => {
  const spec = { type: 'ClusterIP', externalIPs: ['1.2.3.4'], trafficDistribution: 'PreferClose' };
  assert.deepEqual(told('', 'services', { metadata: { name: 's' }, spec }), [
    'spec.externalIPs is deprecated and may no longer be implemented in some clusters',
    'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"',
  ]);
  const volume: JsonObject = { metadata: { name: 'v' }, spec: { storageos: { volumeName: 'v' } } };
  assert.deepEqual(told('', 'persistentvolumes', volume), [
    'spec.storageOS: deprecated in v1.22, non-functional in v1.25+',
  ]);
  const data = { 'tls.crt': 'Yg==', 'tls.key': 'Yg==' };
  const secret: JsonObject = { metadata: { name: 's' }, type: 'kubernetes.io/tls', data };
  assert.deepEqual(told('', 'secrets', secret), [
    'tls: failed to find any PEM data in certificate input',
  ]);
});

test('a template is looked at again only when the change counts', () => {
  const resource = findResource('apps', 'v1', 'deployments');
  assert(resource !== undefined);
  const deployment = (generation: number): JsonObject => ({
    metadata: { name: 'd', generation },
    spec: { template: { spec: { volumes: [{ name: 'v', rbd: { image: 'i' } }] } } },
  });
  const update = (next: number): string[] =>
    Array.from(updateWarnings(resource, deployment(next), deployment(1), ''));
  assert.deepEqual(update(1), []);
  assert.deepEqual(update(2), [
    'spec.template.spec.volumes[0].rbd: deprecated in v1.28, non-functional in v1.31+',
  ]);
});

test('of a changed controller the old template is looked at, of a daemon set a counted one', () => {
  const object = (generation: number, image: string): JsonObject => ({
    metadata: {
      name: 'd',
      generation,
      annotations: { 'deprecated.daemonset.template.generation': String(generation) },
    },
    spec: { template: { spec: { volumes: [{ name: 'v', rbd: { image } }] } } },
  });
  const plain = { metadata: { name: 'd', generation: 2 }, spec: {} };
  const told = (group: string, plural: string, next: JsonObject): number => {
    const resource = findResource(group, 'v1', plural);
    assert(resource !== undefined);
    return Array.from(updateWarnings(resource, next, object(1, 'i'), '')).length;
  };
  assert.equal(told('', 'replicationcontrollers', plain), 1);
  assert.equal(told('apps', 'daemonsets', object(1, 'j')), 0);
  assert.equal(told('apps', 'daemonsets', object(2, 'j')), 1);
});
