import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from './json-value.ts';
import { findResource } from './kinds.ts';
import { validateUpdate } from './validation.ts';

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
