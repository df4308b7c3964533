import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalText, encodeCanonical } from '../serializer/canonical.ts';
import { adopt, decodeStoredValue } from './stored-value.ts';
import type { JsonObject } from '../json/json-value.ts';
import { encodeProtobuf } from '../serializer/protobuf.ts';

const CONFIG_MAP: JsonObject = {
  kind: 'ConfigMap',
  apiVersion: 'v1',
  metadata: { name: 'a', namespace: 'n', uid: 'u' },
  data: { k: 'v' },
};
const STORAGE = { apiVersion: 'v1', kind: 'ConfigMap' };

function adopted(bytes: Buffer): string | undefined {
  return adopt(bytes, 0, bytes.length, STORAGE)?.toString();
}

test('what a real API server stored becomes our form', () => {
  const expected = canonicalText(CONFIG_MAP);
  assert.equal(adopted(encodeProtobuf(CONFIG_MAP) ?? Buffer.alloc(0)), expected);
  const json = JSON.stringify({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    data: { k: 'v' },
    metadata: { uid: 'u', resourceVersion: '7', name: 'a', namespace: 'n', selfLink: '' },
  });
  assert.equal(adopted(Buffer.from(json)), expected);
  assert.equal(adopted(Buffer.from(` ${json}`)), expected);
});

test('our own form, other versions and what cannot be read are left alone', () => {
  assert.equal(adopted(encodeCanonical(CONFIG_MAP)), undefined);
  const other = { ...CONFIG_MAP, kind: 'Event', apiVersion: 'events.k8s.io/v1' };
  assert.equal(adopted(Buffer.from(JSON.stringify(other))), undefined);
  for (const text of ['k8s:enc:aescbc:v1:key:', '{"a":', 'k8s\0\xff', '']) {
    assert.equal(adopted(Buffer.from(text, 'latin1')), undefined, text);
  }
});

test('unreadable values say what was found', () => {
  const refusal = (text: string): string => {
    const bytes = Buffer.from(text, 'latin1');
    const read = decodeStoredValue(bytes, 0, bytes.length);
    return read.ok ? 'read' : read.message;
  };
  assert.match(refusal('k8s:enc:aescbc:v1:key:'), /starts with "k8s:enc:aescbc:v": neither JSON/);
  assert.match(refusal('[]'), /neither JSON nor protobuf|no JSON object/);
  assert.match(refusal('{"a":'), /no JSON object/);
});

test('custom resources are taken as they stand', () => {
  const text = '{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{}}';
  const bytes = Buffer.from(text);
  const read = decodeStoredValue(bytes, 0, bytes.length);
  assert.deepEqual(read, { ok: true, object: JSON.parse(text) as JsonObject });
});
