import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SchemaCache } from './compiled-schema.ts';
import { readPath, selectableText } from './schema/simple-path.ts';

test('a compiled schema is kept until its version is dropped', () => {
  const cache = new SchemaCache();
  const first = cache.get('v1', () => ({ type: 'object' }));
  assert.equal(
    cache.get('v1', () => ({ type: 'object' })),
    first,
  );
  cache.drop('v1');
  assert.notEqual(
    cache.get('v1', () => ({ type: 'object' })),
    first,
  );
});

test('a simple path reads a value, and nothing where a step is absent', () => {
  const object = { spec: { color: 'red', size: 3 } };
  assert.equal(readPath(object, ['spec', 'color']), 'red');
  assert.equal(readPath(object, ['spec', 'color', 'x']), undefined);
  assert.equal(selectableText(object, ['spec', 'size']), '3');
  assert.equal(selectableText(object, ['spec', 'none']), '');
});
