import { test } from 'node:test';
import assert from 'node:assert/strict';
import { typedFaults } from '../managedfields/typed-faults.ts';
import { compileSchema } from './compiled-schema.ts';

const schema = compileSchema({
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        whole: { type: 'object', 'x-kubernetes-map-type': 'atomic', properties: {} },
        labels: { type: 'object', additionalProperties: { type: 'string' } },
        keyed: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name'],
          items: { type: 'object', properties: { name: { type: 'string', default: 'x' } } },
        },
        plain: { type: 'array', items: { type: 'string' } },
        either: { 'x-kubernetes-int-or-string': true },
        any: {
          type: 'object',
          'x-kubernetes-preserve-unknown-fields': true,
          properties: { inner: { type: 'object', properties: { a: { type: 'string' } } } },
        },
        pod: { type: 'object', 'x-kubernetes-embedded-resource': true, properties: {} },
      },
    },
  },
}).applySchema();

test('lists and maps are merged as the schema says', () => {
  const spec = schema.map?.field('spec')?.map;
  assert.equal(spec?.field('whole')?.map?.isAtomic, true);
  assert.equal(spec?.field('labels')?.map?.isAtomic, false);
  const keyed = spec?.field('keyed')?.list;
  assert.deepEqual(keyed?.keys, ['name']);
  assert.equal(keyed?.isAtomic, false);
  assert.equal(keyed?.items.map?.defaultOf('name'), 'x');
  assert.equal(spec?.field('plain')?.list?.isAtomic, true);
  assert.equal(spec?.field('either')?.scalar, 'untyped');
});

test('fields that are not declared are faults, but where they are kept', () => {
  const faultsOf = (spec: object): string[] =>
    typedFaults(schema, { metadata: { name: 'x' }, spec: { ...spec } }, false).map(
      ({ path, text }) => `${path}: ${text}`,
    );
  assert.deepEqual(faultsOf({ nope: 1 }), ['.spec.nope: field not declared in schema']);
  assert.deepEqual(faultsOf({ any: { more: { of: 'it' }, inner: { b: 1 } } }), []);
  assert.deepEqual(faultsOf({ pod: { kind: 'Pod', metadata: { name: 'x' } } }), []);
  assert.deepEqual(faultsOf({ labels: { a: 1 } }), [
    '.spec.labels.a: expected string, got &value.valueUnstructured{Value:1}',
  ]);
});
