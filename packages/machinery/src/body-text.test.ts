import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { BodyText } from './body-text.ts';
import { isObject, type JsonObject } from './json-value.ts';
import { encodeProtobuf } from './protobuf.ts';
import { decodeProtobufBody } from './request-body.ts';

const EXPECTED = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' } as const;
const leases = new BodyText(EXPECTED.apiVersion, EXPECTED.kind);

/** As the decoder reads it, the owners of fields first; undefined where it refuses. */
function decodedText(body: Buffer): string | undefined {
  const decoded = decodeProtobufBody(body, 0, body.length, EXPECTED);
  if (!decoded.ok) return undefined;
  const { kind, apiVersion, metadata, ...rest } = decoded.object;
  const { managedFields, ...others } = isObject(metadata) ? metadata : {};
  const ordered = managedFields === undefined ? others : { managedFields, ...others };
  return JSON.stringify({ kind, apiVersion, metadata: ordered, ...rest });
}

function bodyOf(metadata: JsonObject, spec: JsonObject): Buffer {
  const body = encodeProtobuf({ ...EXPECTED, metadata, spec });
  assert.ok(body !== undefined);
  return body;
}

const word = fc.stringMatching(/^[ !#-[\]-~]{0,12}$/);
const time = fc
  .integer({ min: 0, max: 4_000_000_000 })
  .map((seconds) => `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`);
const microTime = time.map((text) => text.replace('Z', '.000123Z'));
const owners = fc.record({
  apiVersion: word,
  kind: word,
  name: word,
  uid: word,
  controller: fc.constantFrom(true, false, undefined as unknown as boolean),
});
const entries = fc.record({
  manager: word,
  operation: fc.constant('Update'),
  time,
  fieldsType: fc.constant('FieldsV1'),
  fieldsV1: fc.constantFrom<JsonObject>({}, { 'f:spec': { 'f:renewTime': {} } }, { '.': {} }),
  subresource: word,
});
const metadatas = fc.record(
  {
    name: word,
    generateName: word,
    resourceVersion: word,
    generation: fc.nat(),
    creationTimestamp: fc.option(time),
    deletionTimestamp: time,
    deletionGracePeriodSeconds: fc.nat(100),
    labels: fc.dictionary(fc.stringMatching(/^[a-z./]{1,9}$/), word, { noNullPrototype: true }),
    ownerReferences: fc.array(owners, { maxLength: 3 }),
    finalizers: fc.array(word, { maxLength: 3 }),
    managedFields: fc.array(entries, { maxLength: 2 }),
  },
  { requiredKeys: [] },
);
const specs = fc.record(
  {
    holderIdentity: word,
    leaseDurationSeconds: fc.nat(),
    acquireTime: microTime,
    renewTime: microTime,
    leaseTransitions: fc.nat(),
    strategy: word,
  },
  { requiredKeys: [] },
);

test('a body becomes the text of the object that is decoded from it', () => {
  fc.assert(
    fc.property(metadatas, specs, (metadata, spec) => {
      const body = bodyOf(metadata, spec);
      assert.equal(leases.read(body)?.toString(), decodedText(body));
    }),
    { numRuns: 300 },
  );
});

test('what it reads of broken bytes is what is decoded from them', () => {
  const body = bodyOf(
    {
      name: 'n',
      generation: 300,
      creationTimestamp: '2026-01-02T03:04:05Z',
      labels: { a: 'b' },
      managedFields: [{ manager: 'm', time: '2026-01-02T03:04:05Z' }],
    },
    { holderIdentity: 'h', leaseDurationSeconds: 40, renewTime: '2026-01-02T03:04:05.000001Z' },
  );
  const change = fc.record({ at: fc.nat(body.length - 1), byte: fc.nat(255), cut: fc.boolean() });
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 3 }), (changes) => {
      const broken = Buffer.from(body);
      let end = broken.length;
      for (const { at, byte, cut } of changes) {
        if (cut) end = Math.min(end, at);
        else broken[at] = byte;
      }
      const cut = broken.subarray(0, end);
      const text = leases.read(cut)?.toString();
      if (text !== undefined)
        assert.deepEqual(JSON.parse(text), JSON.parse(decodedText(cut) ?? ''));
    }),
    { numRuns: 5000 },
  );
});

test('text beyond ASCII, escapes and JSON that ends early are left to the slow way', () => {
  const plain = { holderIdentity: 'h' };
  for (const holderIdentity of ['é', '"', '\\', 'a\nb']) {
    assert.equal(leases.read(bodyOf({ name: 'n' }, { holderIdentity })), null);
  }
  const body = bodyOf({ name: 'n', managedFields: [{ fieldsV1: { a: '12345678' } }] }, plain);
  assert.ok(leases.read(body) !== null);
  const at = body.indexOf('{"a":"12345678"}');
  body.write('{},"x":{"y":1}  ', at);
  assert.equal(leases.read(body), null);
  assert.equal(leases.read(Buffer.concat([bodyOf({ name: 'n' }, plain), Buffer.of(1)])), null);
  assert.equal(leases.read(Buffer.from('{"kind":"Lease"}')), null);
});
