import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldErrorText } from '../../meta/fielderrors.ts';
import type { JsonObject } from '../../json/json-value.ts';
import { findResource } from '../../scheme/kinds.ts';
import { validateCreate, validateUpdate } from '../validation.ts';

function resourceOf(group: string, plural: string): NonNullable<ReturnType<typeof findResource>> {
  const resource = findResource(group, 'v1', plural);
  assert(resource !== undefined);
  return resource;
}

function faults(group: string, plural: string, name: string, spec: JsonObject): string[] {
  const object: JsonObject = { metadata: { name }, spec };
  return validateCreate(resourceOf(group, plural), object).map(fieldErrorText);
}

const NETWORKING = 'networking.k8s.io';

test('a class of ingresses names its controller and where its parameters are', () => {
  const check = (spec: JsonObject): string[] => faults(NETWORKING, 'ingressclasses', 'c', spec);
  const parameters = { kind: 'K', name: 'n', scope: 'Namespace' };
  assert.deepEqual(check({ controller: 'a.example/b', parameters }), [
    "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'",
  ]);
  assert.deepEqual(check({ controller: 'example' }), [
    'spec.controller: Invalid value: "example": must be a domain-prefixed path (such as ' +
      '"acme.io/foo")',
  ]);
});

test('networks of Services are in their one form, one of each family', () => {
  const check = (...cidrs: string[]): string[] =>
    faults(NETWORKING, 'servicecidrs', 'c', { cidrs });
  assert.deepEqual(check('10.0.0.0/16', 'fd00::/112'), []);
  assert.deepEqual(check(), ['spec.cidrs: Required value: at least one CIDR required']);
  assert.deepEqual(check('FD00::/112'), [
    'spec.cidrs[0]: Invalid value: "FD00::/112": must be in canonical form ("fd00::/112")',
  ]);
  assert.deepEqual(check('10.0.0.0/16', '10.1.0.0/16'), [
    'spec.cidrs: Invalid value: ["10.0.0.0/16","10.1.0.0/16"]: may specify no more than one IP ' +
      'for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64',
  ]);
  const object = (...cidrs: string[]): JsonObject => ({
    metadata: { name: 'c', resourceVersion: '1' },
    spec: { cidrs },
  });
  const resource = resourceOf(NETWORKING, 'servicecidrs');
  const found = validateUpdate(resource, object('10.1.0.0/16'), object('10.0.0.0/16'), '');
  assert.deepEqual(found.map(fieldErrorText), [
    'spec.cidrs[0]: Invalid value: "10.1.0.0/16": field is immutable',
  ]);
});

test('an address is named by itself and belongs to somebody', () => {
  const parentRef = { resource: 'services', name: 's' };
  assert.deepEqual(faults(NETWORKING, 'ipaddresses', '10.0.0.1', { parentRef }), []);
  assert.deepEqual(faults(NETWORKING, 'ipaddresses', '010.0.0.1', {}), [
    'metadata.name: Invalid value: "010.0.0.1": must not have leading 0s',
    'spec.parentRef: Required value',
  ]);
});

test('an API service is named by what it serves', () => {
  const spec = { group: 'a.example', version: 'v1', groupPriorityMinimum: 1, versionPriority: 0 };
  assert.deepEqual(faults('apiregistration.k8s.io', 'apiservices', 'x', spec), [
    'metadata.name: Invalid value: "x": must be `spec.version+"."+spec.group`: "v1.a.example"',
    'spec.versionPriority: Invalid value: 0: must be positive and less than 1000',
  ]);
});

test('an attachment describes a volume of a driver, and little else', () => {
  const inlineVolumeSpec = { capacity: { storage: '1Gi' }, hostPath: { path: '/' } };
  const spec: JsonObject = { attacher: 'd', nodeName: 'n', source: { inlineVolumeSpec } };
  const path = 'spec.source.inlineVolumeSpec';
  assert.deepEqual(faults('storage.k8s.io', 'volumeattachments', 'a', spec), [
    `${path}.capacity: Forbidden: may not be specified in the context of inline volumes`,
    `${path}.csi: Required value: has to be specified in the context of inline volumes`,
    `${path}.accessModes: Required value`,
  ]);
});

test('what a class of storage, a capacity and an address are of stays as it is', () => {
  const changed = (group: string, plural: string, before: JsonObject, change: JsonObject) => {
    const resource = resourceOf(group, plural);
    const metadata = {
      name: plural === 'ipaddresses' ? '10.0.0.1' : 'x',
      ...(resource.namespaced ? { namespace: 'n' } : {}),
      resourceVersion: '1',
    };
    const previous = { ...before, metadata };
    return validateUpdate(resource, { ...previous, ...change }, previous, '').map(fieldErrorText);
  };
  const shown = (field: string, value: string): string =>
    `${field}: Invalid value: ${value}: field is immutable`;
  const storageClass: JsonObject = {
    provisioner: 'p',
    reclaimPolicy: 'Delete',
    volumeBindingMode: 'Immediate',
    parameters: { a: 'b' },
  };
  const classes = (change: JsonObject): string[] =>
    changed('storage.k8s.io', 'storageclasses', storageClass, change);
  assert.deepEqual(classes({ allowVolumeExpansion: true, mountOptions: ['ro'] }), []);
  assert.deepEqual(classes({ provisioner: 'q' }), [shown('provisioner', '"q"')]);
  assert.deepEqual(classes({ parameters: { a: 'c' } }), [shown('parameters', '{"a":"c"}')]);
  assert.deepEqual(classes({ reclaimPolicy: 'Retain' }), [shown('reclaimPolicy', '"Retain"')]);
  assert.deepEqual(classes({ volumeBindingMode: 'WaitForFirstConsumer' }), [
    shown('volumeBindingMode', '"WaitForFirstConsumer"'),
  ]);
  const nodeTopology = { matchLabels: { zone: 'a' } };
  const capacity: JsonObject = { storageClassName: 'c', nodeTopology, capacity: '1Gi' };
  const capacities = (change: JsonObject): string[] =>
    changed('storage.k8s.io', 'csistoragecapacities', capacity, change);
  assert.deepEqual(capacities({ capacity: '2Gi', maximumVolumeSize: '1Gi' }), []);
  assert.deepEqual(capacities({ storageClassName: 'd' }), [shown('storageClassName', '"d"')]);
  assert.deepEqual(capacities({ nodeTopology: { matchLabels: { zone: 'b' } } }), [
    shown('nodeTopology', '{"matchLabels":{"zone":"b"}}'),
  ]);
  const parentRef = { resource: 'services', name: 's' };
  const addresses = (change: JsonObject): string[] =>
    changed(NETWORKING, 'ipaddresses', { spec: { parentRef } }, change);
  assert.deepEqual(addresses({}), []);
  assert.deepEqual(addresses({ spec: { parentRef: { ...parentRef, name: 't' } } }), [
    shown('spec.parentRef', '{"Group":"","Resource":"services","Namespace":"","Name":"t"}'),
  ]);
});

test('parts of a network are looked at where it can be read, however it is written', () => {
  const textsOf = (cidr: string, ...except: string[]): string[] =>
    faults(NETWORKING, 'networkpolicies', 'p', {
      podSelector: {},
      ingress: [{ from: [{ ipBlock: { cidr, except } }] }],
    }).filter((text) => text.startsWith(at));
  const at = 'spec.ingress[0].from[0].ipBlock';
  const excess = 'must not have bits set beyond the prefix length';
  const none = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';
  const outside = 'must be a strict subset of `cidr`';
  assert.deepEqual(textsOf('10.0.0.1/8', 'x', '10.1.0.0/16', '11.0.0.0/16', 'fd00::/16'), [
    `${at}.cidr: Invalid value: "10.0.0.1/8": ${excess}`,
    `${at}.except[0]: Invalid value: "x": ${none}`,
    `${at}.except[2]: Invalid value: "11.0.0.0/16": ${outside}`,
    `${at}.except[3]: Invalid value: "fd00::/16": ${outside}`,
  ]);
  assert.deepEqual(textsOf('fd00::/8', 'fd01::/16', 'fd00::/8'), [
    `${at}.except[1]: Invalid value: "fd00::/8": ${outside}`,
  ]);
});
