import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldErrorText } from '../../meta/fielderrors.ts';
import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import { findResource } from '../../scheme/kinds.ts';
import { applyDefaults } from '../../defaults/defaulting.ts';
import { validateCreate } from '../validation.ts';

function faults(plural: string, object: JsonObject): string[] {
  const resource = findResource('', 'v1', plural);
  assert(resource !== undefined);
  applyDefaults(object);
  return validateCreate(resource, object).map(fieldErrorText);
}

function ofPod(volumes: JsonValue[], more: JsonObject = {}): string[] {
  return faults('pods', {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'default' },
    spec: { containers: [{ name: 'c', image: 'i' }], volumes, ...more },
  });
}

test('tokens are of an account, and a persistent disk goes by another name', () => {
  const sources = [{ serviceAccountToken: { path: 'p' } }];
  const volumes = [
    { name: 'a', projected: { sources } },
    { name: 'b', gcePersistentDisk: { pdName: '' } },
  ];
  const disk = 'spec.volumes[1].persistentDisk.pdName: Required value';
  const token = 'spec.volumes[0].projected.sources[0].serviceAccountToken';
  const text = 'Forbidden: must not be specified when serviceAccountName is not set';
  assert.deepEqual(ofPod(volumes), [disk, `${token}: ${text}`]);
  assert.deepEqual(ofPod(volumes, { serviceAccountName: 's' }), [disk]);
});

test('each kind of volume says what it needs', () => {
  assert.deepEqual(
    ofPod([
      { name: 'a', azureDisk: { diskName: 'd', diskURI: '/x', cachingMode: 'x' } },
      { name: 'b', fc: { targetWWNs: ['w'] } },
      { name: 'c', flocker: {} },
      { name: 'd', csi: { driver: 'd', nodePublishSecretRef: { name: 'A' } } },
      { name: 'e', image: { reference: '', pullPolicy: 'x' } },
      { name: 'f', flexVolume: { driver: 'd', options: { 'kubernetes.io/x': 'y' } } },
    ]),
    [
      'spec.volumes[0].azureDisk.cachingMode: Unsupported value: "x": supported values: "None", ' +
        '"ReadOnly", "ReadWrite"',
      'spec.volumes[0].azureDisk.diskURI: Unsupported value: "/x": supported values: ' +
        '"https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"',
      'spec.volumes[1].fc.lun: Required value: lun is required if targetWWNs is specified',
      'spec.volumes[2].flocker: Required value: one of datasetName and datasetUUID is required',
      'spec.volumes[3].csi.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist ' +
        "of lower case alphanumeric characters, '-' or '.', and must start and end with an " +
        "alphanumeric character (e.g. 'example.com', regex used for validation is " +
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      'spec.volumes[4].image.reference: Required value',
      'spec.volumes[4].image.pullPolicy: Unsupported value: "x": supported values: "Always", ' +
        '"IfNotPresent", "Never"',
      'spec.volumes[5].flexVolume.options[kubernetes.io/x]: Invalid value: "kubernetes.io/x": ' +
        'kubernetes.io and k8s.io namespaces are reserved',
    ],
  );
});

test('files of a projected volume have paths of their own, and sources are one each', () => {
  const secret = { name: 's', items: [{ key: 'k', path: 'x' }] };
  const sources = [
    { secret },
    { configMap: secret, serviceAccountToken: { path: 't', expirationSeconds: 5 } },
  ];
  assert.deepEqual(ofPod([{ name: 'v', projected: { sources } }], { serviceAccountName: 'a' }), [
    'spec.volumes[0].projected: Invalid value: "s": conflicting duplicate paths',
    'spec.volumes[0].projected.sources[1].serviceAccountToken.expirationSeconds: Invalid value: ' +
      '5: may not specify a duration less than 10 minutes',
    'spec.volumes[0].projected.sources[1]: Forbidden: may not specify more than 1 volume type ' +
      'per source',
  ]);
});

test('persistent volumes name their secrets in full', () => {
  const spec: JsonObject = {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    csi: { driver: 'd', volumeHandle: 'h', nodePublishSecretRef: { name: 's' } },
  };
  const volume = { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'v' }, spec };
  assert.deepEqual(faults('persistentvolumes', volume), [
    'spec.csi.nodePublishSecretRef.namespace: Required value',
  ]);
});

test('a pod of one system has nothing of the other', () => {
  const linux = { os: { name: 'linux' }, securityContext: { windowsOptions: {} } };
  assert.deepEqual(ofPod([], linux), [
    'spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod',
  ]);
  const windows = {
    os: { name: 'windows' },
    resources: { limits: { cpu: '1' } },
    shareProcessNamespace: true,
    securityContext: { runAsUser: 1, windowsOptions: { runAsUserName: '' } },
  };
  assert.deepEqual(ofPod([], windows), [
    'spec.resources: Forbidden: may not be set for a windows pod',
    'spec.securityContext.windowsOptions.runAsUserName: Invalid value: "": runAsUserName cannot ' +
      'be an empty string',
    'spec.shareProcessNamespace: Forbidden: cannot be set for a windows pod',
    'spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod',
  ]);
});

test('a pod as a whole may use what its containers may', () => {
  const resources = { limits: { cpu: '2', 'hugepages-2Mi': '3Mi' } };
  const container = { name: 'c', image: 'i', resources: { limits: { cpu: '3' } } };
  assert.deepEqual(ofPod([], { resources, containers: [container] }), [
    'spec.resources.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer ' +
      'multiple of hugepages-2Mi',
    'spec.resources.requests: Invalid value: "3": must be less than or equal to cpu limit of 2',
    'spec.resources.requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer ' +
      'multiple of hugepages-2Mi',
    'spec.resources.containers[0][cpu].limits: Invalid value: "3": must be less than or equal to ' +
      'pod limits of 2',
  ]);
});
