import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KubeObject } from '../api/objects.ts';
import { ObjectStore } from './object-store.ts';

function service(namespace: string, name: string, resourceVersion = '1'): KubeObject {
  return { kind: 'Service', metadata: { namespace, name, resourceVersion } };
}

function namesIn(store: ObjectStore, namespace: string): string[] {
  return store.objectsIn('Service', namespace).map(({ metadata }) => metadata.name);
}

test('objects of a namespace are those that all objects would show there, whatever changes', () => {
  const store = new ObjectStore();
  assert.deepEqual(namesIn(store, 'a'), []);
  store.set('Service', service('a', 'one'));
  store.set('Service', service('b', 'two'));
  assert.deepEqual(namesIn(store, 'a'), ['one']);
  store.assume('Service', service('a', 'three'));
  assert.deepEqual(namesIn(store, 'a'), ['one', 'three']);
  store.restore('Service', 'a/three');
  store.delete('Service', 'b/two');
  assert.deepEqual(namesIn(store, 'a'), ['one']);
  assert.deepEqual(namesIn(store, 'b'), []);
});

test('a change of one kind is no change of another', () => {
  const store = new ObjectStore();
  store.set('Service', service('a', 'one'));
  const version = store.versionOf('Service');
  store.set('PodDisruptionBudget', service('a', 'one'));
  store.delete('Service', 'a/unknown');
  assert.equal(store.versionOf('Service'), version);
  store.delete('Service', 'a/one');
  assert.notEqual(store.versionOf('Service'), version);
});
