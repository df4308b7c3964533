import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldErrorText } from '../meta/fielderrors.ts';
import type { JsonObject } from '../json/json-value.ts';
import { findResource } from '../scheme/kinds.ts';
import { validateUpdate } from './validation.ts';

function textsOf(group: string, plural: string, status: JsonObject, rest?: JsonObject): string[] {
  const resource = findResource(group, 'v1', plural);
  assert.ok(resource !== undefined);
  const metadata = { name: 'a', uid: 'u', resourceVersion: '1' };
  const owned = resource.namespaced ? { ...metadata, namespace: 'n' } : metadata;
  const previous = { metadata: owned, ...rest };
  return validateUpdate(resource, { ...previous, status }, previous, 'status').map(fieldErrorText);
}

test('claims have storage, in ways of growing that are known', () => {
  const status = {
    capacity: { storage: '-1' },
    allocatedResourceStatuses: { storage: 'Growing' },
    allocatedResources: { 'requests.storage': '1', 'a.b/c': '1' },
  };
  const spec = { accessModes: ['ReadWriteOnce'] };
  assert.deepEqual(textsOf('', 'persistentvolumeclaims', status, { spec }), [
    'status.capacity[storage]: Invalid value: -1: must be a valid resource quantity',
    'status.allocatedResourceStatuses: Unsupported value: "storage": supported values: ' +
      '"ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", ' +
      '"NodeResizeInfeasible", "NodeResizePending"',
    'status.allocatedResources: Unsupported value: "requests.storage": supported values: "storage"',
  ]);
});

test('nodes declare their features by name, and in order', () => {
  const declaredFeatures = ['B/c', 'A', 'A', ''];
  const text =
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' " +
    '(e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters ' +
    'and slashes';
  assert.deepEqual(textsOf('', 'nodes', { declaredFeatures }), [
    'status.declaredFeatures[1]: Invalid value: "A": list must be sorted alphabetically',
    'status.declaredFeatures[2]: Duplicate value: "A"',
    'status.declaredFeatures[3]: Invalid value: "": list must be sorted alphabetically',
    `status.declaredFeatures[3]: Invalid value: "": invalid feature name "": ${text}`,
  ]);
});

test('what is reported of policies, services of the API and attachments is whole', () => {
  const expressionWarnings = [{ warning: '', fieldRef: ' ' }];
  const policies = 'validatingadmissionpolicies';
  assert.deepEqual(
    textsOf('admissionregistration.k8s.io', policies, { typeChecking: { expressionWarnings } }),
    [
      'status.typeChecking.expressionWarnings[0].warning: Required value',
      'status.typeChecking.expressionWarnings[0].fieldRef: Required value',
    ],
  );
  const conditions = [{ type: 'Available', status: 'Yes' }];
  assert.deepEqual(textsOf('apiregistration.k8s.io', 'apiservices', { conditions }), [
    'status.conditions[0].status: Unsupported value: "Yes": ' +
      'supported values: "True", "False", "Unknown"',
  ]);
  const spec = { attacher: 'a', nodeName: 'n', source: { persistentVolumeName: 'v' } };
  const detachError = { message: 'x'.repeat(1025), errorCode: -1 };
  assert.deepEqual(textsOf('storage.k8s.io', 'volumeattachments', { detachError }, { spec }), [
    'status.detachError.message: Too long: may not be more than 262144 bytes',
    'status.detachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive',
  ]);
});

test('an ingress is reached at addresses, or at names that are none', () => {
  const ingress = [{ ip: 'x' }, { hostname: 'Bad' }, { hostname: '10.0.0.1' }, { ip: '10.0.0.1' }];
  const texts = textsOf('networking.k8s.io', 'ingresses', { loadBalancer: { ingress } });
  assert.deepEqual(
    texts.map((text) => text.replace(/ (?:must|a lowercase) .*/, '')),
    [
      'status.loadBalancer.ingress[0].ip: Invalid value: "x":',
      'status.loadBalancer.ingress[1].hostname: Invalid value: "Bad":',
      'status.loadBalancer.ingress[2].hostname: Invalid value: "10.0.0.1":',
    ],
  );
});
