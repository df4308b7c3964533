import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { decodeProtobuf } from '@megaplane/machinery/protobuf';
import { stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { openStore } from '@megaplane/store/open';
import { createApiServer } from '../server/assembly.ts';
import { EmbeddedStorage } from '../storage/embedded/embedded-storage.ts';
import { ExchangeModel } from '../testing/exchange-model.sim.ts';
import { LEAN_JSON_TYPE } from '../request/negotiation.ts';
import type { Storage } from '../storage/storage.ts';
import { StorageModel } from '../storage/storage-model.sim.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const APPLY = 'application/apply-patch+yaml';
const MERGE = 'application/merge-patch+json';

interface Owned {
  readonly manager: string;
  readonly operation: string;
  readonly subresource?: string;
  readonly time?: string;
  readonly fieldsV1: JsonObject;
}

/** A server whose clock goes on a second with each request. */
function serve(storage: Storage = new StorageModel()) {
  let seconds = 0;
  let uuids = 0;
  const edge = {
    nowMs: () => Date.UTC(2026, 0, 2, 3, 4, seconds),
    below: () => 0,
    uuid: () => `00000000-0000-4000-8000-${String(++uuids).padStart(12, '0')}`,
    defer: () => undefined,
    deferPiece: () => undefined,
  };
  const api = createApiServer({ storage, edge, address: '' });
  const ask = (
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): ExchangeModel => {
    seconds++;
    const exchange = new ExchangeModel(method, path, body, { 'user-agent': 'test/1', ...headers });
    api.handle(exchange);
    return exchange;
  };
  ask('POST', '/api/v1/namespaces', { metadata: { name: 'default' } });
  return ask;
}

function metadataOf(answer: ExchangeModel): JsonObject {
  return (JSON.parse(answer.text) as { metadata: JsonObject }).metadata;
}

function owners(answer: ExchangeModel): string[] {
  const list = (metadataOf(answer)['managedFields'] ?? []) as unknown as readonly Owned[];
  return list.map(({ manager, operation, subresource = '', time = '-', fieldsV1 }) =>
    [manager, operation, subresource, time.slice(14, 19), JSON.stringify(fieldsV1)].join(' '),
  );
}

test('who writes comes to own, and the time of an entry moves only with its fields', () => {
  const ask = serve();
  const map = { metadata: { name: 'a', labels: { x: '1' } }, data: { k: '1' } };
  assert.deepEqual(owners(ask('POST', MAPS, map)), [
    'test Update  04:02 {"f:data":{".":{},"f:k":{}},"f:metadata":{"f:labels":{".":{},"f:x":{}}}}',
  ]);
  const same = ask('PUT', `${MAPS}/a?fieldManager=other`, map);
  assert.deepEqual(owners(same), owners(ask('GET', `${MAPS}/a`)));
  const changed = ask('PUT', `${MAPS}/a?fieldManager=other`, { ...map, data: { k: '2', l: '3' } });
  assert.deepEqual(owners(changed), [
    'test Update  04:02 {"f:data":{},"f:metadata":{"f:labels":{".":{},"f:x":{}}}}',
    'other Update  04:05 {"f:data":{"f:k":{},"f:l":{}}}',
  ]);
  const gone = ask('PATCH', `${MAPS}/a`, { data: { l: null } }, { 'content-type': MERGE });
  assert.deepEqual(owners(gone), [
    'test Update  04:02 {"f:data":{},"f:metadata":{"f:labels":{".":{},"f:x":{}}}}',
    'other Update  04:05 {"f:data":{"f:k":{}}}',
  ]);
});

test('an empty entry ends the tracking, and what is no list of entries changes nothing', () => {
  const ask = serve();
  ask('POST', MAPS, { metadata: { name: 'a' }, data: { k: '1' } });
  const before = owners(ask('GET', `${MAPS}/a`));
  const bad = { metadata: { managedFields: [{ operation: 'Nope' }] } };
  const headers = { 'content-type': MERGE };
  assert.deepEqual(owners(ask('PATCH', `${MAPS}/a`, bad, headers)), before);
  const reset = { metadata: { managedFields: [{}] } };
  assert.deepEqual(owners(ask('PATCH', `${MAPS}/a`, reset, headers)), []);
  assert.deepEqual(owners(ask('PATCH', `${MAPS}/a`, { data: { l: '1' } }, headers)), []);
  const made = ask('POST', MAPS, { metadata: { name: 'b' }, data: { k: '1' } });
  const shown = metadataOf(made);
  const object = (managedFields: unknown): object => ({
    metadata: { ...shown, resourceVersion: undefined, managedFields },
    data: { k: '1' },
  });
  assert.deepEqual(owners(ask('PUT', `${MAPS}/b`, object(shown['managedFields']))), owners(made));
  assert.deepEqual(owners(ask('PUT', `${MAPS}/b`, object(undefined))), owners(made));
  assert.deepEqual(owners(ask('PUT', `${MAPS}/b`, object([]))), []);
  const again = ask('POST', MAPS, { metadata: { name: 'c' }, data: { k: '1' } });
  const json = { 'content-type': 'application/json-patch+json' };
  const patch = (op: object): string[] => owners(ask('PATCH', `${MAPS}/c`, [op], json));
  const path = '/metadata/managedFields';
  assert.deepEqual(patch({ op: 'remove', path }), owners(again));
  assert.deepEqual(patch({ op: 'replace', path, value: [] }), []);
});

test('kubectl moves its entries by a JSON patch that tests the revision', () => {
  const ask = serve();
  const made = ask('POST', `${MAPS}?fieldManager=kubectl-client-side-apply`, {
    metadata: { name: 'a' },
    data: { k: '1' },
  });
  const list = metadataOf(made)['managedFields'] as unknown as Owned[];
  const moved = list.map((one) => ({ ...one, manager: 'kubectl', operation: 'Apply' }));
  const patch = [
    { op: 'replace', path: '/metadata/managedFields', value: moved },
    {
      op: 'replace',
      path: '/metadata/resourceVersion',
      value: metadataOf(made)['resourceVersion'],
    },
  ];
  const answer = ask('PATCH', `${MAPS}/a`, patch, {
    'content-type': 'application/json-patch+json',
  });
  assert.equal(answer.status, 200);
  assert.deepEqual(owners(answer), ['kubectl Apply  04:02 {"f:data":{".":{},"f:k":{}}}']);
});

test('a client-side annotation lets kubectl take its fields over, and follows it', () => {
  const ask = serve();
  const name = 'kubectl.kubernetes.io/last-applied-configuration';
  const config = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { k: '1' } };
  ask('POST', `${MAPS}?fieldManager=kubectl-client-side-apply`, {
    ...config,
    metadata: { name: 'a', annotations: { [name]: JSON.stringify(config) } },
  });
  const next = { ...config, data: { k: '2' } };
  const refused = ask('PATCH', `${MAPS}/a?fieldManager=x`, next, { 'content-type': APPLY });
  assert.equal(refused.status, 409);
  const taken = ask('PATCH', `${MAPS}/a?fieldManager=kubectl`, next, { 'content-type': APPLY });
  assert.equal(taken.status, 200, taken.text);
  assert.deepEqual(JSON.parse(stringAt(metadataOf(taken), 'annotations', name)), next);
});

test('every encoding shows the owners, but for the one that leaves them out', () => {
  const ask = serve();
  ask('POST', MAPS, { metadata: { name: 'a' }, data: { k: '1' } });
  const [wanted] = metadataOf(ask('GET', `${MAPS}/a`))['managedFields'] as JsonObject[];
  const accept = (type: string, path = `${MAPS}/a`): ExchangeModel =>
    ask('GET', path, undefined, { accept: type });
  const as = 'as=PartialObjectMetadata;g=meta.k8s.io;v=v1';
  const partial = accept(`application/json;${as}`);
  assert.deepEqual(metadataOf(partial)['managedFields'], [wanted]);
  const table = JSON.parse(accept('application/json;as=Table;g=meta.k8s.io;v=v1').text) as {
    rows: { object: { metadata: JsonObject } }[];
  };
  assert.deepEqual(table.rows[0]?.object.metadata['managedFields'], [wanted]);
  const bytes = accept('application/vnd.kubernetes.protobuf').bytes;
  const decoded = decodeProtobuf(bytes, 0, bytes.length);
  assert.ok(decoded.ok);
  assert.deepEqual((decoded.object['metadata'] as JsonObject)['managedFields'], [wanted]);
  assert.match(accept('application/yaml').text, /managedFields:\n {2}- apiVersion: v1/);
  assert.equal(metadataOf(accept(LEAN_JSON_TYPE))['managedFields'], undefined);
  assert.equal(metadataOf(accept(LEAN_JSON_TYPE))['name'], 'a');
  const list = JSON.parse(accept(LEAN_JSON_TYPE, MAPS).text) as {
    items: { metadata: JsonObject }[];
  };
  assert.equal(list.items[0]?.metadata['managedFields'], undefined);
});

test('owners survive a restart of the store', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'megaplane-managed-'));
  const open = (): EmbeddedStorage => {
    const options = { dataDir, durability: 'buffered', prefixes: [], historyBytesMax: 1 << 20 };
    const opened = openStore(options as Parameters<typeof openStore>[0]);
    return new EmbeddedStorage(opened.store, () => opened.close());
  };
  try {
    const first = open();
    const ask = serve(first);
    const map = { metadata: { name: 'a', finalizers: ['x/y'] }, data: { restart: '1' } };
    const before = owners(ask('POST', MAPS, map));
    assert.equal(before.length, 1);
    await first.close();
    const second = open();
    assert.deepEqual(owners(serve(second)('GET', `${MAPS}/a`)), before);
    await second.close();
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});

test('documents that are no configuration are refused in upstream’s words', () => {
  const ask = serve();
  const apply = (body: string, query = 'fieldManager=m'): string => {
    const answer = ask('PATCH', `${MAPS}/a?${query}`, body, { 'content-type': APPLY });
    const { message } = JSON.parse(answer.text) as { message?: string };
    return `${answer.status} ${message ?? ''}`;
  };
  const head = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n';
  assert.equal(apply(''), '400 invalid object type: /, Kind=');
  assert.equal(
    apply('[]'),
    '400 error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot ' +
      'unmarshal array into Go value of type map[string]interface {}',
  );
  assert.equal(apply(head.replace('v1', 'v2')), '400 invalid object type: /v2, Kind=ConfigMap');
  assert.equal(
    apply(`${head}nope: 1\n`),
    '500 failed to create typed patch object (/a; /v1, Kind=ConfigMap): ' +
      '.nope: field not declared in schema',
  );
  assert.equal(
    apply('apiVersion: v1\nkind: ConfigMap\n'),
    '400 the name of the object (a based on URL) was undeterminable: name must be provided',
  );
  assert.equal(
    apply(head.replace('{name: a}', '{name: a, managedFields: []}')),
    '400 metadata.managedFields must be nil',
  );
  const doubled = `${head}data: {}\ndata: {a: "1"}\n`;
  const strict = 'fieldManager=m&fieldValidation=Strict';
  assert.equal(
    apply(doubled, strict),
    '400 error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n' +
      '  line 5: key "data" already set in map',
  );
  assert.equal(apply(doubled), '201 ');
  const json = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":';
  assert.equal(
    apply(`${json}{"a":"{:","\\u0061":"2"}}`, strict),
    '400 error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n' +
      '  line 1: key "a" already set in map',
  );
  assert.equal(apply(`${json}{"a":"{:","b":"\\":"}}`, strict), '200 ');
});

test('an update that only leaves the time of an entry out changes nothing', () => {
  const ask = serve();
  const made = ask('POST', MAPS, { metadata: { name: 'a' }, data: { k: 'v' } }).text;
  const { metadata } = JSON.parse(made) as { metadata: { managedFields: Owned[] } };
  const managedFields = metadata.managedFields.map((entry) => ({ ...entry, time: undefined }));
  const patch = { metadata: { managedFields } };
  const answer = ask('PATCH', `${MAPS}/a?fieldManager=other`, patch, { 'content-type': MERGE });
  assert.equal(answer.text, made);
});
