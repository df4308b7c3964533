import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldErrorText } from '../meta/fielderrors.ts';
import type { JsonObject } from '../json/json-value.ts';
import { findResource } from '../scheme/kinds.ts';
import { validateCreate, validateUpdate } from './validation.ts';

/** How often an update with a label that is none is told, as kube-apiserver v1.36 does. */
const TOLD: readonly (readonly [string, string, JsonObject, number])[] = [
  ['', 'configmaps', {}, 4],
  ['', 'secrets', { type: 'Opaque' }, 4],
  ['', 'persistentvolumes', {}, 4],
  ['apps', 'deployments', {}, 3],
  ['rbac.authorization.k8s.io', 'roles', {}, 4],
  ['', 'limitranges', {}, 3],
  ['policy', 'poddisruptionbudgets', {}, 2],
];

test('causes of an update list what is wrong with metadata as often as upstream looks', () => {
  for (const [group, name, rest, times] of TOLD) {
    const resource = findResource(group, 'v1', name);
    assert.ok(resource !== undefined, name);
    const metadata = { name: 'x', namespace: 'y', uid: 'u', resourceVersion: '1' };
    const previous = { ...rest, metadata };
    const next = { ...rest, metadata: { ...metadata, labels: { a: 'b c' } } };
    const found = validateUpdate(resource, next, previous, '');
    assert.equal(found.filter(({ field }) => field === 'metadata.labels').length, times, name);
  }
});

function textsOf(group: string, plural: string, next: JsonObject, before: JsonObject): string[] {
  const resource = findResource(group, 'v1', plural);
  assert.ok(resource !== undefined, plural);
  const metadata = { name: 'x', namespace: 'y', uid: 'u', resourceVersion: '1' };
  const [after, previous] = [
    { metadata, ...next },
    { metadata, ...before },
  ];
  return validateUpdate(resource, after, previous, '').map(fieldErrorText);
}

test('scopes of a quota are a set', () => {
  const quota = (...scopes: string[]): JsonObject => ({ spec: { hard: { pods: '1' }, scopes } });
  const [once, twice] = [quota('BestEffort'), quota('BestEffort', 'BestEffort')];
  assert.deepEqual(textsOf('', 'resourcequotas', twice, once), []);
  assert.deepEqual(textsOf('', 'resourcequotas', quota('NotBestEffort'), once), [
    'spec.scopes: Invalid value: ["NotBestEffort"]: field is immutable',
  ]);
});

test('what an event no longer says is told as empty, and its reason twice', () => {
  const event = {
    apiVersion: 'events.k8s.io/v1',
    regarding: { namespace: 'y' },
    eventTime: '2024-01-01T00:00:00.000000Z',
  };
  const before = { ...event, reason: 'r', reportingController: 'a.b/c' };
  const texts = textsOf('events.k8s.io', 'events', event, before);
  assert.deepEqual(
    texts.filter((text) => text.endsWith('field is immutable')),
    [
      'reason: Invalid value: "": field is immutable',
      'reason: Invalid value: "": field is immutable',
      'reportingController: Invalid value: "": field is immutable',
    ],
  );
});

test('a request for a certificate that holds none is told so as null', () => {
  const resource = findResource('certificates.k8s.io', 'v1', 'certificatesigningrequests');
  assert.ok(resource !== undefined);
  const spec = { signerName: 'a.b/c', usages: ['client auth'] };
  const [first] = validateCreate(resource, { metadata: { name: 'x' }, spec });
  assert.ok(first !== undefined);
  assert.match(fieldErrorText(first), /^spec\.request: Invalid value: null: /);
});

test('what a gated pod asks of nodes is printed as a struct', () => {
  const pod = (matchFields: JsonObject[]): JsonObject => ({
    spec: {
      schedulingGates: [{ name: 'a' }],
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields }] },
        },
      },
    },
  });
  const before = pod([{ key: 'metadata.name', operator: 'In', values: ['n'] }]);
  const texts = textsOf('', 'pods', pod([{ key: 'metadata.name', operator: 'Exists' }]), before);
  const value =
    '{"MatchExpressions":null,"MatchFields":' +
    '[{"Key":"metadata.name","Operator":"Exists","Values":null}]}';
  const text = `${value}: only additions are allowed (no mutations or deletions)`;
  assert.ok(
    texts.some((one) => one.endsWith(text)),
    texts.join('\n'),
  );
});

test('a claim that names no class gets one later, once', () => {
  const CLASS = 'volume.beta.kubernetes.io/storage-class';
  const claim = (storageClassName?: string, said?: string): JsonObject => ({
    metadata: {
      ...{ name: 'x', namespace: 'y', uid: 'u', resourceVersion: '1' },
      ...(said === undefined ? {} : { annotations: { [CLASS]: said } }),
    },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      ...(storageClassName === undefined ? {} : { storageClassName }),
    },
  });
  const texts = (next: JsonObject, before: JsonObject): string[] =>
    textsOf('', 'persistentvolumeclaims', next, before);
  assert.deepEqual(texts(claim('a'), claim()), []);
  assert.equal(texts(claim('b'), claim('a')).length, 1);
  assert.deepEqual(texts(claim('a'), claim(undefined, 'a')), []);
  assert.equal(texts(claim('b', 'a'), claim(undefined, 'a')).length, 1);
  assert.deepEqual(texts(claim('a', 'c'), claim('a', 'b')), [
    `metadata.annotations.${CLASS}: Invalid value: "c": field is immutable`,
  ]);
});

test('the data of a revision stays, and is not looked into again', () => {
  assert.deepEqual(textsOf('apps', 'controllerrevisions', { data: 'x' }, { data: { a: 1 } }), [
    'data: Invalid value: "x": field is immutable',
  ]);
});

test('finalizers of leases and of classes of runtimes need no domain', () => {
  const lease = {
    metadata: { name: 'x', namespace: 'y', uid: 'u', resourceVersion: '1', finalizers: ['own'] },
    spec: {},
  };
  assert.deepEqual(textsOf('coordination.k8s.io', 'leases', lease, lease), []);
  const runtime = { metadata: { ...lease.metadata, namespace: '' }, handler: 'h' };
  assert.deepEqual(textsOf('node.k8s.io', 'runtimeclasses', runtime, runtime), []);
});

test('endpoints that stay are not judged again, and classes of services twice', () => {
  const endpoints = [{ addresses: ['10.0.0.1'] }];
  const slice = (addressType: string): JsonObject => ({ addressType, endpoints, ports: [] });
  assert.deepEqual(textsOf('discovery.k8s.io', 'endpointslices', slice('IPv6'), slice('IPv4')), [
    'addressType: Invalid value: "IPv6": field is immutable',
  ]);
  const spec = { type: 'ClusterIP', clusterIP: 'None', clusterIPs: ['None'] };
  const texts = textsOf('', 'services', { spec: { ...spec, loadBalancerClass: 'x' } }, { spec });
  const told = texts.filter((text) => text.startsWith('spec.loadBalancerClass'));
  assert.equal(told.length, 2);
});

test('selectors and labels are told as Go writes them, what cannot be read is told once', () => {
  const matchLabels = { b: '2', a: '1' };
  const template = { metadata: { labels: { z: '', y: '' } } };
  const selector = { matchExpressions: [], matchLabels };
  const found = textsOf('apps', 'replicasets', { spec: { selector, template } }, { spec: {} });
  const mismatch = 'spec.template.metadata.labels: Invalid value: {"y":"","z":""}: ';
  assert.ok(found.some((text) => text.startsWith(mismatch)));
  const shown = 'spec.selector: Invalid value: {"matchLabels":{"a":"1","b":"2"}}: ';
  assert.ok(found.includes(`${shown}field is immutable`));
  const empty = { selector: { matchLabels: {} }, template };
  assert.ok(
    textsOf('apps', 'replicasets', { spec: empty }, { spec: empty }).includes(
      'spec.selector: Invalid value: {}: empty selector is invalid for deployment',
    ),
  );
  const unread = { matchExpressions: [{ key: 'a', operator: 'Exists', values: ['b'] }] };
  const job = { spec: { selector: unread, template } };
  const told = textsOf('batch', 'jobs', job, job);
  assert.ok(told.some((text) => text.startsWith('spec.selector.matchExpressions[0].values: ')));
  assert.ok(!told.some((text) => text.includes('`selector` does not match')));
});

test('a job without the selector that it was made with is told so twice', () => {
  const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }] } };
  const selector = { matchLabels: { a: 'b' } };
  const metadata = { name: 'x', namespace: 'y', uid: 'u' };
  const stored = { metadata, spec: { selector, template } };
  const told = textsOf('batch', 'jobs', { metadata, spec: { template } }, stored);
  const required = told.filter((text) => text === 'spec.selector: Required value');
  assert.equal(required.length, 2);
});

test('an event that relates to nothing may not relate to something empty', () => {
  const event = { eventTime: '2026-01-01T00:00:00.000000Z', apiVersion: 'events.k8s.io/v1' };
  const found = textsOf('events.k8s.io', 'events', { ...event, related: {} }, event);
  assert.ok(found.some((text) => text.startsWith('related: Invalid value: {"Kind":"",')));
});

test('the uid of an event is told of once where the group is core, as of a type of its own', () => {
  const [metadata, changed] = ['u', 'v & w'].map((uid) => ({ name: 'x', namespace: 'y', uid }));
  const event = { involvedObject: { namespace: 'y' } };
  const next = { ...event, metadata: changed ?? {} };
  const found = textsOf('', 'events', next, { ...event, metadata: metadata ?? {} });
  const text = 'metadata.uid: Invalid value: "v \\u0026 w": field is immutable';
  assert.deepEqual(found, [text]);
});

test('the class of a balancer and the port of its health stay as they are', () => {
  const spec = { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 30001 };
  const changed = { ...spec, loadBalancerClass: 'a/b', healthCheckNodePort: 30002 };
  const found = textsOf('', 'services', { spec: changed }, { spec });
  assert.ok(
    found.includes('spec.loadBalancerClass: Invalid value: "a/b": may not change once set'),
  );
  assert.ok(found.includes('spec.healthCheckNodePort: Forbidden: field is immutable'));
});
