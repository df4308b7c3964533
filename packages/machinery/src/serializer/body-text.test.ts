import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { BodyText } from './body-text.ts';
import { isObject, type JsonObject } from '../json/json-value.ts';
import { encodeProtobuf } from './protobuf.ts';
import { decodeProtobufBody, type ExpectedKind } from '../codec/request-body.ts';

const EXPECTED = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' } as const;
const POD = { apiVersion: 'v1', kind: 'Pod' } as const;
const leases = new BodyText(EXPECTED.apiVersion, EXPECTED.kind);
const pods = new BodyText(POD.apiVersion, POD.kind);

/** As the decoder reads it, the owners of fields first; undefined where it refuses. */
function decodedText(body: Buffer, expected: ExpectedKind = EXPECTED): string | undefined {
  const decoded = decodeProtobufBody(body, 0, body.length, expected);
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

const word = fc.stringMatching(/^[ -~\t\n\f\r]{0,12}$/);
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

const quantities = fc.dictionary(
  fc.stringMatching(/^[a-z./]{1,9}$/),
  fc.constantFrom('100m', '64Mi', '0', '3', '2e3'),
  { noNullPrototype: true },
);
const port = fc.oneof(fc.nat(65_535), fc.stringMatching(/^[a-z]{1,9}$/));
const probe = fc.oneof(
  fc.record({ httpGet: fc.record({ path: word, port }), periodSeconds: fc.nat(99) }),
  fc.record({ tcpSocket: fc.record({ port }) }),
  fc.record({ exec: fc.record({ command: fc.array(word, { maxLength: 2 }) }) }),
  fc.record({ grpc: fc.record({ port: fc.nat(99), service: word }) }),
);
const reference = fc.record({ name: word, optional: fc.boolean() });
const containers = fc.record(
  {
    name: word,
    image: word,
    args: fc.array(word, { maxLength: 3 }),
    resources: fc.record({ requests: quantities, limits: quantities }),
    ports: fc.array(fc.record({ containerPort: fc.nat(65_535), protocol: word }), { maxLength: 2 }),
    env: fc.array(fc.record({ name: word, value: word }), { maxLength: 2 }),
    envFrom: fc.array(fc.record({ configMapRef: reference }), { maxLength: 2 }),
    livenessProbe: probe,
    lifecycle: fc.record({ preStop: fc.record({ sleep: fc.record({ seconds: fc.nat(9) }) }) }),
    securityContext: fc.record({ runAsUser: fc.nat(), privileged: fc.boolean() }),
  },
  { requiredKeys: ['name'] },
);
const volumes = fc.oneof(
  fc.record({ name: word, emptyDir: fc.record({ medium: word, sizeLimit: fc.constant('1Gi') }) }),
  fc.record({ name: word, emptyDir: fc.constant({}) }),
  fc.record({ name: word, configMap: fc.record({ name: word, defaultMode: fc.nat(511) }) }),
  fc.record({ name: word, hostPath: fc.record({ path: word }) }),
);
const podSpecs = fc.record(
  {
    containers: fc.array(containers, { minLength: 1, maxLength: 3 }),
    volumes: fc.array(volumes, { maxLength: 2 }),
    nodeName: word,
    priority: fc.nat(),
    overhead: quantities,
    hostNetwork: fc.boolean(),
    enableServiceLinks: fc.boolean(),
    securityContext: fc.record({ supplementalGroups: fc.array(fc.nat(), { maxLength: 2 }) }),
    tolerations: fc.array(fc.record({ key: word, tolerationSeconds: fc.nat() }), { maxLength: 2 }),
    nodeSelector: fc.dictionary(fc.stringMatching(/^[a-z]{1,9}$/), word, { noNullPrototype: true }),
  },
  { requiredKeys: ['containers'] },
);

test('a pod with quantities, ports, and fields that messages of their own hold', () => {
  fc.assert(
    fc.property(metadatas, podSpecs, (metadata, spec) => {
      const body = encodeProtobuf({ ...POD, metadata, spec });
      assert.ok(body !== undefined);
      assert.equal(pods.read(body)?.toString(), decodedText(body, POD));
    }),
    { numRuns: 300 },
  );
});

test('what the slow way alone knows is left to it where it stands', () => {
  const container = { name: 'c', image: 'i' };
  const bodyWith = (spec: JsonObject) => {
    const body = encodeProtobuf({ ...POD, metadata: { name: 'n' }, spec });
    assert.ok(body !== undefined);
    return body;
  };
  assert.ok(pods.read(bodyWith({ containers: [container] })) !== null);
  const negative = { containers: [container], priority: -1 };
  assert.equal(pods.read(bodyWith(negative)), null);
  const body = bodyWith({ containers: [{ ...container, args: ['16Mi'] }] });
  body.write('1\u0000', body.indexOf('16Mi'));
  assert.equal(pods.read(body), null);
});

test('text beyond ASCII and JSON that ends early are left to the slow way', () => {
  const plain = { holderIdentity: 'h' };
  for (const holderIdentity of ['é', '\u0001', '\u007f']) {
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
