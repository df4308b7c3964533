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
import { RAW_KINDS } from '../json/raw-text.ts';
import type { JsonObject } from '../json/json-value.ts';
import { decodeProtobuf, encodeProtobuf } from './protobuf.ts';
import { findType, type Shape, type Type } from '../scheme/schema.ts';
import { TYPES } from '../scheme/tables/types.ts';

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

function holdsRaw(shape: Shape, seen: Set<Type>): boolean {
  if (shape.kind === 'scalar') return shape.scalar === 'raw';
  if (shape.kind === 'list') return holdsRaw(shape.items, seen);
  if (shape.kind === 'map') return holdsRaw(shape.values, seen);
  if (seen.has(shape.type)) return false;
  seen.add(shape.type);
  return shape.type.fields.some((field) => holdsRaw(field.shape, seen));
}

test('kinds with raw parts are known, and their bytes are those that Go writes', () => {
  const types = TYPES.split('\n').map((row) => findType(row.slice(0, row.indexOf(' ')))!);
  const stored = types.filter((type) => type.kind !== '' && type.field('metadata') !== undefined);
  const found = stored.filter((type) => holdsRaw({ kind: 'object', type }, new Set()));
  const kinds = new Set(found.map(({ kind }) => kind).filter((kind) => !kind.endsWith('List')));
  assert.deepEqual([...kinds].toSorted(), [...RAW_KINDS]);

  const data = { command: 'a && b > c < d \u2028' };
  const escaped = '{"command":"a \\u0026\\u0026 b \\u003e c \\u003c d \\u2028"}';
  const [apiVersion, kind] = ['apps/v1', 'ControllerRevision'];
  const object = { kind, apiVersion, metadata: { name: 'a' }, data, revision: 1 };
  assert.ok(canonicalText(object).includes(`"data":${escaped}`));
  const sent = encodeProtobuf(object)!;
  assert.ok(sent.includes(escaped));
  const read = decodeProtobuf(sent, 0, sent.length);
  assert.ok(read.ok && canonicalText(read.object).includes(escaped));
});
