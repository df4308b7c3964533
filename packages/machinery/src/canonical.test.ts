import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  canonicalText,
  decodeCanonical,
  encodeCanonical,
  encodeCanonicalInto,
  headLength,
  headOf,
  splice,
  SPLICE_BYTES_MAX,
  splicedLength,
  storedForm,
} from './canonical.ts';
import type { JsonObject } from './json-value.ts';

const HEAD = headLength('v1', 'ConfigMap');

function spliced(bytes: Buffer, resourceVersion: number): string {
  const out = Buffer.alloc(bytes.length + SPLICE_BYTES_MAX + 5);
  const end = splice(bytes, 0, bytes.length, HEAD, resourceVersion, out, 5);
  assert.equal(end - 5, splicedLength(bytes, 0, bytes.length, HEAD, resourceVersion));
  return out.toString('utf8', 5, end);
}

test('stored bytes start alike and hold no resourceVersion', () => {
  const object = {
    metadata: { name: 'a', resourceVersion: '7' },
    apiVersion: 'v1',
    kind: 'ConfigMap',
    data: { k: 'ü' },
  };
  const text = '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":"ü"}}';
  assert.equal(canonicalText(object), text);
  assert.deepEqual(encodeCanonical(object), Buffer.from(text));
  assert.equal(object.metadata.resourceVersion, '7');
  assert.equal(text.slice(0, HEAD), headOf('v1', 'ConfigMap').toString());
});

test('encoding into a buffer says where it ends, or that it does not fit', () => {
  const object = { kind: 'ConfigMap', apiVersion: 'v1', metadata: {}, data: { k: 'üüü' } };
  const bytes = encodeCanonical(object);
  const exact = Buffer.alloc(bytes.length + 3);
  assert.equal(encodeCanonicalInto(object, exact, 3), exact.length);
  assert.deepEqual(exact.subarray(3), bytes);
  for (let short = 0; short < bytes.length; short++) {
    assert.equal(encodeCanonicalInto(object, Buffer.alloc(short), 0), -1);
  }
});

test('the resource version is spliced in, with a comma where something follows', () => {
  const empty = encodeCanonical({ kind: 'ConfigMap', apiVersion: 'v1' });
  assert.equal(
    spliced(empty, 1),
    '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"1"}}',
  );
  fc.assert(
    fc.property(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), fc.string(), (rv, name) => {
      const object: JsonObject = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name } };
      const bytes = encodeCanonical(object);
      const served = JSON.parse(spliced(bytes, rv)) as JsonObject;
      assert.deepEqual(served, { ...object, metadata: { name, resourceVersion: String(rv) } });
      assert.deepEqual(decodeCanonical(bytes, 0, bytes.length, rv), served);
    }),
  );
});

test('bytes of other writers are told apart', () => {
  const head = headOf('v1', 'ConfigMap');
  const form = (text: string): string => {
    const bytes = Buffer.from(text, 'latin1');
    return storedForm(bytes, 0, bytes.length, head);
  };
  assert.equal(form('{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}'), 'canonical');
  assert.equal(form('{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}'), 'json');
  assert.equal(form('k8s\0\n'), 'protobuf');
  assert.equal(form('k8s:enc:aescbc:v1:'), 'unknown');
  assert.equal(form(''), 'unknown');
});
