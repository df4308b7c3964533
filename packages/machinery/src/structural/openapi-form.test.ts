import assert from 'node:assert/strict';
import { test } from 'node:test';
import { objectAt } from '../json/json.ts';
import type { JsonObject } from '../json/json-value.ts';
import { openapiV2Schemas, openapiV3Schemas } from './openapi-form.ts';

const KIND = {
  group: 'example.com',
  version: 'v1',
  kind: 'Widget',
  listKind: 'WidgetList',
  plural: 'widgets',
  selectable: ['spec.size'],
};
const SCHEMA: JsonObject = {
  type: 'object',
  description: 'A widget.',
  properties: {
    metadata: { type: 'object' },
    spec: {
      type: 'object',
      properties: {
        size: { type: 'integer', nullable: true, example: 3 },
        word: { type: 'string', default: 'a', example: '' },
        port: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }] },
        inner: { type: 'object', 'x-kubernetes-embedded-resource': true },
        free: {
          type: 'object',
          'x-kubernetes-preserve-unknown-fields': true,
          properties: { a: { type: 'string' } },
        },
      },
    },
  },
};

test('version 3 publishes the whole schema under the reversed group with standard metadata', () => {
  const { name, listName, schemas } = openapiV3Schemas(KIND, SCHEMA);
  assert.equal(name, 'com.example.v1.Widget');
  assert.equal(listName, 'com.example.v1.WidgetList');
  const properties = objectAt(schemas[name] ?? {}, 'properties') ?? {};
  assert.deepEqual(Object.keys(properties), ['apiVersion', 'kind', 'metadata', 'spec']);
  const spec = objectAt(properties, 'spec', 'properties') ?? {};
  assert.deepEqual(spec['size'], { type: 'integer', nullable: true, example: 3 });
  assert.deepEqual(spec['word'], { type: 'string', default: 'a' });
  assert.ok(objectAt(spec, 'port')?.['anyOf'] !== undefined);
  assert.ok(objectAt(spec, 'inner', 'properties', 'metadata') !== undefined);
  assert.deepEqual(objectAt(spec, 'inner')?.['required'], ['kind', 'apiVersion']);
  assert.deepEqual(schemas[name]?.['x-kubernetes-selectable-fields'], [{ fieldPath: 'spec.size' }]);
  assert.deepEqual(schemas[listName]?.['x-kubernetes-group-version-kind'], [
    { group: 'example.com', version: 'v1', kind: 'WidgetList' },
  ]);
});

test('version 2 leaves out what it cannot say', () => {
  const { name, schemas } = openapiV2Schemas(KIND, SCHEMA);
  const properties = objectAt(schemas[name] ?? {}, 'properties') ?? {};
  const spec = objectAt(properties, 'spec', 'properties') ?? {};
  assert.deepEqual(spec['size'], { example: 3 });
  assert.deepEqual(spec['word'], { type: 'string' });
  assert.deepEqual(spec['port'], { 'x-kubernetes-int-or-string': true });
  assert.deepEqual(spec['free'], { 'x-kubernetes-preserve-unknown-fields': true });
  const map: JsonObject = {
    type: 'object',
    nullable: true,
    additionalProperties: { type: 'string' },
  };
  const inner = { type: 'object', required: ['map', 'a'], properties: { map, a: map } };
  const fields = { type: 'object', properties: { inner, map } };
  const loose = openapiV2Schemas(KIND, { type: 'object', properties: { spec: fields } });
  const kept = objectAt(loose.schemas[name] ?? {}, 'properties', 'spec', 'properties') ?? {};
  assert.deepEqual(kept['map'], { additionalProperties: { type: 'string' } });
  assert.equal(objectAt(kept, 'inner')?.['required'], undefined);
  const open = openapiV2Schemas(KIND, {
    ...SCHEMA,
    'x-kubernetes-preserve-unknown-fields': true,
  });
  assert.equal(open.schemas[name]?.['properties'], undefined);
});
