// shell
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { encodeCanonical } from './canonical.ts';
import { stringAt } from '../json/json.ts';
import { isObject, type JsonObject } from '../json/json-value.ts';
import { findKind, isStored } from '../scheme/kinds.ts';
import { encodeItem, encodeProtobuf, encodeStored, encodeStoredItem } from './protobuf.ts';

const GOLDEN = join(homedir(), 'go/pkg/mod/k8s.io/api@v0.36.1/testdata/HEAD');
const NO_GOLDEN = existsSync(GOLDEN)
  ? false
  : 'needs the vectors of k8s.io/api: go mod download k8s.io/api@v0.36.1';

function compare(object: JsonObject, resourceVersion: number): void {
  const [apiVersion, kind] = [stringAt(object, 'apiVersion'), stringAt(object, 'kind')];
  const bytes = Buffer.concat([Buffer.from('xx'), encodeCanonical(object), Buffer.from('xx')]);
  const metadata = isObject(object['metadata']) ? object['metadata'] : {};
  const served = { ...object, metadata: { ...metadata, resourceVersion: `${resourceVersion}` } };
  const range = [bytes, 2, bytes.length - 2, resourceVersion] as const;
  assert.deepEqual(
    encodeStoredItem(apiVersion, kind, ...range),
    encodeItem(apiVersion, kind, served),
    kind,
  );
  assert.deepEqual(encodeStored(apiVersion, kind, ...range), encodeProtobuf(served), kind);
}

test(
  'stored bytes of every golden kind become the bytes of its object',
  { skip: NO_GOLDEN },
  () => {
    let compared = 0;
    for (const file of readdirSync(GOLDEN).filter((name) => name.endsWith('.json'))) {
      const object = JSON.parse(readFileSync(join(GOLDEN, file), 'utf8')) as JsonObject;
      const resource = findKind(stringAt(object, 'apiVersion'), stringAt(object, 'kind'));
      if (resource === undefined || !isStored(resource)) continue;
      compare(object, 42);
      compared++;
    }
    assert.ok(compared > 80, `only ${compared}`);
  },
);

const text = fc.string({ unit: 'binary', maxLength: 70 });
const configMaps = fc.record({
  kind: fc.constant('ConfigMap'),
  apiVersion: fc.constant('v1'),
  metadata: fc.record({
    name: text,
    generation: fc.maxSafeInteger(),
    labels: fc.dictionary(text, text, { noNullPrototype: true }),
    finalizers: fc.array(text),
  }),
  data: fc.dictionary(text, text, { noNullPrototype: true }),
  immutable: fc.boolean(),
  unknown: fc.constantFrom('', 'x'),
});

test('any text, key and number passes as through an object', () => {
  fc.assert(fc.property(configMaps, fc.nat(), (object, revision) => compare(object, revision + 1)));
});

test('keys are sorted by what they stand for, however they are escaped', () => {
  const data = { '\b': '1', '\u0000': '2', a: '3', '"': '4', '\\': '5', 'a\n': '6', 'a\t': '7' };
  compare({ kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'c' }, data }, 3);
});

test('null, empty and absent are told apart as through an object', () => {
  const pods: JsonObject[] = [
    {},
    { metadata: null, spec: null },
    { spec: { containers: [null, {}, { name: null, resources: null, ports: [] }] } },
    { spec: { nodeSelector: {}, tolerations: [], volumes: [{ name: 'v' }, { emptyDir: {} }] } },
    { spec: { containers: [{ livenessProbe: { httpGet: { port: 'http' } }, stdin: true }] } },
    { spec: { priority: -5, overhead: { cpu: '1', memory: null } }, status: { startTime: null } },
    { status: { containerStatuses: [{ state: {}, lastState: { running: { startedAt: null } } }] } },
  ];
  for (const pod of pods) compare({ kind: 'Pod', apiVersion: 'v1', metadata: {}, ...pod }, 7);
});

test('bytes with white space and doubled keys read as JSON reads them', () => {
  const json = ' { "metadata" : { "labels" : { "b" : "1" , "a" : "2" , "b" : "3" } } } ';
  const bytes = Buffer.from(json);
  const object = JSON.parse(json) as JsonObject;
  object['metadata'] = { ...(object['metadata'] as JsonObject), resourceVersion: '1' };
  assert.deepEqual(
    encodeStoredItem('v1', 'ConfigMap', bytes, 0, bytes.length, 1),
    encodeItem('v1', 'ConfigMap', object),
  );
});

test('values that come again, within an object and from one to the next, are told apart', () => {
  const long = 'x'.repeat(70);
  const words = fc.constantFrom('a', 'b', long, `${long}"`, '');
  const env = fc.record({ name: words, value: words }, { requiredKeys: [] });
  const ports = fc.record({ containerPort: fc.nat(2), name: words }, { requiredKeys: [] });
  const container = fc.record(
    {
      name: words,
      env: fc.array(env, { maxLength: 3 }),
      ports: fc.array(ports, { maxLength: 2 }),
      resources: fc.record({ limits: fc.dictionary(words, fc.constantFrom('1', '2')) }),
    },
    { requiredKeys: [] },
  );
  const specs = fc.record(
    {
      containers: fc.array(container, { maxLength: 3 }),
      initContainers: fc.array(container, { maxLength: 2 }),
      nodeSelector: fc.dictionary(words, words),
    },
    { requiredKeys: [] },
  );
  const labels = fc.dictionary(words, words);
  const run = fc.property(
    fc.array(specs, { minLength: 1, maxLength: 3 }),
    fc.array(fc.tuple(fc.nat(2), labels), { minLength: 1, maxLength: 30 }),
    (kinds, list) => {
      for (const [index, ofPod] of list) {
        const spec = kinds[index % kinds.length]!;
        compare({ kind: 'Pod', apiVersion: 'v1', metadata: { labels: ofPod }, spec }, 5);
      }
    },
  );
  fc.assert(run);
});

test('a name that is there twice says what its second value says, known or not', () => {
  const containers = (name: string): string => JSON.stringify([{ name: name.padEnd(70, '.') }]);
  const shown = (first: string, second: string): void => {
    const json = `{"metadata":{},"spec":{"containers":${first},"containers":${second}}}`;
    const bytes = Buffer.from(json);
    const spec = { containers: JSON.parse(second) as JsonObject[] };
    assert.deepEqual(
      encodeStoredItem('v1', 'Pod', bytes, 0, bytes.length, 1),
      encodeItem('v1', 'Pod', { metadata: { resourceVersion: '1' }, spec }),
      json,
    );
  };
  for (const [index, other] of ['[{"name":"z"}]', 'null', '[]', containers('other')].entries()) {
    const fresh = containers(`value ${index}`);
    shown(fresh, other);
    // what it was taken for, alone
    shown('null', fresh);
    shown(fresh, fresh);
    shown(other, fresh);
    shown(fresh, other);
  }
});

test('objects one after another with other keys, owners and times are told apart', () => {
  const fields = fc.constantFrom<JsonObject>(
    { 'f:a': {} },
    { 'f:a': { 'f:b': {} } },
    { 'f:labels': { 'k:{"uid":"}"}': {} } },
    {},
  );
  const owners = fc.record(
    { manager: text, time: fc.constantFrom('2026-01-02T03:04:05Z', '2026-01-02T03:04:06Z') },
    { requiredKeys: [] },
  );
  const metadatas = fc.record(
    {
      generation: fc.nat(),
      name: text,
      creationTimestamp: fc.constantFrom('2026-01-02T03:04:05Z', '2027-01-02T03:04:05Z', null),
      managedFields: fc.array(
        fc.tuple(owners, fields).map(([one, fieldsV1]) => ({ ...one, fieldsV1 })),
      ),
      uid: text,
    },
    { requiredKeys: [] },
  );
  const run = fc.property(fc.array(metadatas, { minLength: 2, maxLength: 6 }), (list) => {
    for (const metadata of list) {
      compare({ kind: 'ConfigMap', apiVersion: 'v1', metadata }, 5);
    }
  });
  fc.assert(run);
});
