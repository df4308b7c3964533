import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isObject, type JsonObject, type JsonValue } from './json-value.ts';
import { ObjectScan } from '../serializer/object-scan.ts';
import {
  findFirst,
  findPath,
  integerAt,
  MemberCursor,
  pathOf,
  resourceVersionOf,
  skipValue,
  stringValue,
} from './scan.ts';

const scan = new ObjectScan();

const OBJECT = {
  kind: 'Pod',
  apiVersion: 'v1',
  metadata: {
    name: 'p',
    namespace: 'n',
    uid: 'u-1',
    resourceVersion: '42',
    generation: 3,
    creationTimestamp: '2026-01-01T00:00:00Z',
    deletionTimestamp: '2026-01-02T00:00:00Z',
    deletionGracePeriodSeconds: 0,
    labels: { name: 'not me', 'a/b': '{"}' },
    annotations: { namespace: 'nor me' },
    ownerReferences: [{ name: 'owner', uid: 'o' }],
    finalizers: ['x/y'],
    managedFields: [{ manager: 'm' }],
  },
  spec: { containers: [{ nodeName: 'nor me' }], nodeName: 'node-1', schedulerName: 'default' },
  status: { conditions: [{ phase: 'nor me' }], phase: 'Running' },
};

test('the fields of an object are found where they are', () => {
  for (const text of [JSON.stringify(OBJECT), JSON.stringify(OBJECT, null, 2)]) {
    const bytes = Buffer.from(`xx${text}`);
    assert.ok(scan.scan(bytes, 2, bytes.length));
    const part = (start: number, end: number): string => bytes.toString('utf8', start, end);
    const value = (start: number, end: number): JsonValue => {
      return JSON.parse(part(start, end)) as JsonValue;
    };
    assert.equal(part(scan.kindStart, scan.kindEnd), 'Pod');
    assert.equal(part(scan.apiVersionStart, scan.apiVersionEnd), 'v1');
    assert.equal(part(scan.nameStart, scan.nameEnd), 'p');
    assert.equal(part(scan.namespaceStart, scan.namespaceEnd), 'n');
    assert.equal(part(scan.uidStart, scan.uidEnd), 'u-1');
    assert.equal(scan.resourceVersion, 42);
    assert.equal(scan.generation, 3);
    assert.equal(scan.deletionGracePeriodSeconds, 0);
    assert.equal(
      part(scan.deletionTimestampStart, scan.deletionTimestampEnd),
      '2026-01-02T00:00:00Z',
    );
    assert.deepEqual(value(scan.labelsStart, scan.labelsEnd), OBJECT.metadata.labels);
    assert.deepEqual(value(scan.annotationsStart, scan.annotationsEnd), { namespace: 'nor me' });
    assert.deepEqual(
      value(scan.ownerReferencesStart, scan.ownerReferencesEnd),
      OBJECT.metadata.ownerReferences,
    );
    assert.deepEqual(value(scan.finalizersStart, scan.finalizersEnd), ['x/y']);
    assert.deepEqual(value(scan.managedFieldsStart, scan.managedFieldsEnd), [{ manager: 'm' }]);
    assert.deepEqual(value(scan.metadataStart, scan.metadataEnd), OBJECT.metadata);
    assert.deepEqual(value(scan.specStart, scan.specEnd), OBJECT.spec);
    assert.deepEqual(value(scan.statusStart, scan.statusEnd), OBJECT.status);
    assert.equal(part(scan.nodeNameStart, scan.nodeNameEnd), 'node-1');
    assert.equal(part(scan.schedulerNameStart, scan.schedulerNameEnd), 'default');
    assert.equal(part(scan.phaseStart, scan.phaseEnd), 'Running');
  }
});

test('what is absent or null is -1, also after another object', () => {
  const bytes = Buffer.from('{"metadata":{"name":null,"labels":null},"spec":null,"status":null}');
  assert.ok(scan.scan(bytes, 0, bytes.length));
  for (const field of [
    'nameStart',
    'labelsStart',
    'specStart',
    'statusStart',
    'phaseStart',
  ] as const) {
    assert.equal(scan[field], -1, field);
  }
  assert.equal(scan.resourceVersion, -1);
  assert.equal(scan.generation, -1);
});

test('bytes that are no object are refused, cut ones too', () => {
  const whole = Buffer.from(JSON.stringify(OBJECT));
  for (let end = 0; end < whole.length; end++) {
    assert.equal(scan.scan(whole, 0, end), false, `cut at ${end}`);
  }
  for (const text of [
    '[]',
    '"x"',
    '1',
    'null',
    '{"a"}',
    '{"a":}',
    '{a:1}',
    '{"metadata":{"name"}}',
  ]) {
    const bytes = Buffer.from(text);
    assert.equal(scan.scan(bytes, 0, bytes.length), false, text);
  }
});

function pathsIn(value: JsonValue, path: string[]): [path: string[], value: JsonValue][] {
  const found: [string[], JsonValue][] = [[path, value]];
  if (!isObject(value)) return found;
  for (const [name, member] of Object.entries(value)) {
    if (member !== undefined) found.push(...pathsIn(member, [...path, name]));
  }
  return found;
}

const plainKey = fc.stringMatching(/^[a-z_]{1,6}$/);
const objects = fc.letrec<{ value: JsonValue; object: JsonObject }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.string(),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 3 }),
    tie('object'),
  ),
  object: fc.dictionary(plainKey, tie('value'), { maxKeys: 4, noNullPrototype: true }),
})).object;

test('every path of a JSON object is found, and its value ends where it ends', () => {
  fc.assert(
    fc.property(objects, fc.nat(3), (object, indent) => {
      const bytes = Buffer.from(JSON.stringify(object, null, indent));
      for (const [path, value] of pathsIn(object, [])) {
        const start = findPath(bytes, 0, bytes.length, pathOf(...path));
        assert.ok(start >= 0, path.join('.'));
        const end = skipValue(bytes, start, bytes.length);
        assert.deepEqual(JSON.parse(bytes.toString('utf8', start, end)), value);
        if (typeof value === 'string') {
          assert.equal(stringValue(bytes, start, bytes.length), value);
        }
        if (typeof value === 'number' && value >= 0) {
          assert.equal(integerAt(bytes, start, end), value);
        }
        assert.equal(findFirst(bytes, 0, bytes.length, pathOf(...path)), start);
        const absent = pathOf(...path, 'ABSENT');
        assert.equal(findPath(bytes, 0, bytes.length, absent), -1);
        assert.equal(findFirst(bytes, 0, bytes.length, absent), -1);
      }
    }),
  );
});

test('the first of a name is found without a look at what stands behind it', () => {
  const bytes = Buffer.from('{"a":{"b":1,"c":2},"a":');
  assert.equal(findFirst(bytes, 0, bytes.length, pathOf('a', 'c')), 16);
  assert.equal(findFirst(bytes, 0, bytes.length, pathOf('b')), -1);
});

test('a cursor lists the members in order', () => {
  const bytes = Buffer.from(' { "a" : 1 , "b":[1,{"c":"}"}] , "c":"\\"" } ');
  const cursor = new MemberCursor();
  assert.ok(cursor.open(bytes, 1, bytes.length));
  const found: string[] = [];
  while (cursor.next()) {
    const key = bytes.toString('utf8', cursor.keyStart, cursor.keyEnd);
    found.push(`${key}=${bytes.toString('utf8', cursor.valueStart, cursor.valueEnd)}`);
  }
  assert.deepEqual(found, ['a=1', 'b=[1,{"c":"}"}]', 'c="\\""']);
  assert.ok(cursor.isClosed);
});

test('damaged bytes never lead beyond the end', () => {
  const whole = Buffer.from(JSON.stringify(OBJECT));
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255))), (edits) => {
      const bytes = Buffer.from(whole);
      for (const [at, byte] of edits) bytes[at] = byte;
      scan.scan(bytes, 0, bytes.length);
      const start = findPath(bytes, 0, bytes.length, pathOf('spec', 'nodeName'));
      assert.ok(start <= bytes.length);
      assert.ok(findFirst(bytes, 0, bytes.length, pathOf('spec', 'nodeName')) <= bytes.length);
    }),
  );
});

test('the version of an object is found, and only the one of its own metadata', () => {
  const versionOf = (text: string): number => {
    const bytes = Buffer.from(`xx${text}`);
    return resourceVersionOf(bytes, 2, bytes.length);
  };
  assert.equal(versionOf(JSON.stringify(OBJECT)), 42);
  assert.equal(versionOf('{"metadata":{"resourceVersion":"7","name":"x"'), 7);
  const elsewhere = '{"spec":{"metadata":{"resourceVersion":"1"}},"metadata":{"labels":{}}}';
  for (const none of ['', '[]', '{', '{"metadata":null}', '{"kind":"X"}', elsewhere, '{"kind":']) {
    assert.equal(versionOf(none), -1, none);
  }
});
