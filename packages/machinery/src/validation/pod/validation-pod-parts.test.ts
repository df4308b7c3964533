import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldErrorText } from '../../meta/fielderrors.ts';
import type { JsonObject } from '../../json/json-value.ts';
import { findResource } from '../../scheme/kinds.ts';
import { validateCreate, validateUpdate } from '../validation.ts';

const CONTAINER = {
  name: 'c',
  image: 'x',
  terminationMessagePolicy: 'File',
  imagePullPolicy: 'Always',
  resources: {
    requests: { cpu: '100m', 'example.com/gpu': '1' },
    limits: { 'example.com/gpu': '1' },
  },
};
const SPEC = {
  containers: [CONTAINER],
  restartPolicy: 'Never',
  dnsPolicy: 'ClusterFirst',
  terminationGracePeriodSeconds: 30,
};
const EPHEMERAL = {
  name: 'e',
  image: 'x',
  terminationMessagePolicy: 'File',
  imagePullPolicy: 'Always',
};

function textsOf(part: string, next: JsonObject, before: JsonObject = {}): string[] {
  const resource = findResource('', 'v1', 'pods');
  assert.ok(resource !== undefined);
  const metadata = { name: 'a', namespace: 'n', uid: 'u', resourceVersion: '1' };
  const status = { qosClass: 'Burstable' };
  const previous = { metadata, spec: SPEC, status, ...before };
  return validateUpdate(resource, { ...previous, ...next }, previous, part).map(fieldErrorText);
}

function sized(resources: JsonObject, more: JsonObject = {}): JsonObject {
  return { spec: { ...SPEC, containers: [{ ...CONTAINER, resources, ...more }] } };
}

test('a resize changes amounts of cpu and memory, and takes none away', () => {
  const { limits, requests } = CONTAINER.resources;
  const more = { limits, requests: { ...requests, cpu: '200m', memory: '1Gi' } };
  assert.deepEqual(textsOf('resize', sized(more)), []);
  assert.deepEqual(textsOf('resize', sized({})), [
    'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
    'spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed',
    'spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed',
    'spec: Forbidden: only cpu and memory resources are mutable',
  ]);
  const policy = [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }];
  assert.deepEqual(textsOf('resize', sized(more, { resizePolicy: policy })), [
    'spec.containers[0].resizePolicy: Invalid value: "RestartContainer": ' +
      "must be 'NotRequired' when pod `restartPolicy` is 'Never'",
    'spec: Forbidden: only cpu and memory resources are mutable',
  ]);
});

test('what runs to its end is not started again for its amounts, but where it always was', () => {
  const resizePolicy = [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }];
  const initContainers = [{ ...CONTAINER, name: 'i', resizePolicy }];
  const spec = { ...SPEC, restartPolicy: 'Always', initContainers };
  const text =
    'spec.initContainers[0].resizePolicy[0].restartPolicy: Invalid value: "RestartContainer": ' +
    "must not be set to 'RestartContainer' for non-sidecar initContainers";
  const resource = findResource('', 'v1', 'pods');
  assert.ok(resource !== undefined);
  const pod = { metadata: { name: 'a', namespace: 'n', uid: 'u', resourceVersion: '1' }, spec };
  assert.ok(validateCreate(resource, pod).map(fieldErrorText).includes(text));
  assert.deepEqual(validateUpdate(resource, pod, pod, '').map(fieldErrorText), []);
});

test('amounts of the pod as a whole may be added', () => {
  const resources = { requests: { cpu: '500m', memory: '1Gi' } };
  assert.deepEqual(textsOf('resize', { spec: { ...SPEC, resources } }), []);
  const pages = { limits: { 'hugepages-2Mi': '4Mi' }, requests: { 'hugepages-2Mi': '4Mi' } };
  const faults = textsOf('resize', { spec: { ...SPEC, resources: pages } });
  assert.ok(
    faults.includes('spec: Forbidden: only cpu and memory resources are mutable at pod-level'),
  );
});

test('pods of files and of Windows, and those on old nodes, are not resized', () => {
  const annotations = { 'kubernetes.io/config.mirror': 'x' };
  const metadata = { name: 'a', namespace: 'n', uid: 'u', resourceVersion: '1', annotations };
  const spec = { ...SPEC, nodeName: 'n' };
  assert.deepEqual(textsOf('resize', {}, { metadata, spec }), [
    '[]: Forbidden: static pods cannot be resized',
  ]);
  assert.deepEqual(textsOf('resize', {}, { spec: { ...SPEC, os: { name: 'windows' } } }), [
    '[]: Forbidden: windows pods cannot be resized',
  ]);
  const containerStatuses = [{ name: 'c', state: { running: {} } }];
  assert.deepEqual(
    textsOf('resize', {}, { status: { qosClass: 'Burstable', containerStatuses } }),
    ['spec: Forbidden: Pod running on node without support for resize'],
  );
});

test('containers are added to a running pod as they are judged in a new one', () => {
  const added = {
    ...EPHEMERAL,
    name: 'E',
    image: 'x ',
    targetContainerName: 'z',
    ports: [{}],
    lifecycle: {},
  };
  const spec = { ...SPEC, ephemeralContainers: [added] };
  const label = 'a lowercase RFC 1123 label must consist of lower case alphanumeric characters';
  const texts = textsOf('ephemeralcontainers', { spec });
  assert.ok(texts[0]?.startsWith(`spec.ephemeralContainers[0].name: Invalid value: "E": ${label}`));
  assert.deepEqual(texts.slice(-4), [
    'spec.ephemeralContainers[0].image: Invalid value: "x ": ' +
      'must not have leading or trailing whitespace',
    'spec.ephemeralContainers[0].targetContainerName: Not found: "z"',
    'spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container',
    'spec.ephemeralContainers[0].lifecycle: Forbidden: cannot be set for an Ephemeral Container',
  ]);
  const stored = { spec: { ...SPEC, ephemeralContainers: [EPHEMERAL] } };
  assert.deepEqual(textsOf('ephemeralcontainers', { spec: SPEC }, stored), [
    'spec.ephemeralContainers: Forbidden: existing ephemeral containers "e" may not be removed\n',
  ]);
});

test('a container that sees all of proc has users of its own', () => {
  const securityContext = { procMount: 'Unmasked' };
  const added = { ...EPHEMERAL, securityContext };
  const spec = { ...SPEC, ephemeralContainers: [added] };
  assert.deepEqual(textsOf('ephemeralcontainers', { spec }), [
    'spec.ephemeralContainers[0].securityContext.procMount: Invalid value: "Unmasked": ' +
      '`hostUsers` must be false to use `Unmasked`',
  ]);
  const own = { ...spec, hostUsers: false };
  assert.deepEqual(textsOf('ephemeralcontainers', { spec: own }, { spec: own }), []);
});

test('reports of pods name claims and addresses that are some, and revive nothing', () => {
  const ended = [{ name: 'c', state: { terminated: { exitCode: 1 } } }];
  const before = { status: { qosClass: 'Burstable', containerStatuses: ended } };
  const status = {
    qosClass: 'Guaranteed',
    nominatedNodeName: 'A_',
    containerStatuses: [{ name: 'c', state: { running: {} } }],
    resourceClaimStatuses: [{ name: 'x' }],
    extendedResourceClaimStatus: { requestMappings: [] },
    podIPs: [{ ip: '1.2.3.4' }, { ip: '1.2.3.5' }],
    hostIPs: [{ ip: '1.2.3.4' }],
  };
  const found = textsOf('status', { status }, before);
  assert.ok(found[0]?.startsWith('status.nominatedNodeName: Invalid value: "A_": '));
  assert.deepEqual(found.slice(1), [
    'status.qosClass: Invalid value: "Guaranteed": field is immutable',
    'status.containerStatuses[0].state: Forbidden: ' +
      'may not be transitioned to non-terminated state',
    'status.resourceClaimStatuses[0].name: Invalid value: "x": ' +
      'must match the name of an entry in `spec.resourceClaims`',
    'status.extendedResourceClaimStatus.requestMappings: Required value: ' +
      'at least one request mapping is required',
    'status.extendedResourceClaimStatus.resourceClaimName: Required value',
    'status.podIPs: Invalid value: [{"IP":"1.2.3.4"},{"IP":"1.2.3.5"}]: ' +
      'may specify no more than one IP for each IP family',
    'status.hostIPs[0].ip: Invalid value: "1.2.3.4": must be equal to `hostIP`',
  ]);
});
