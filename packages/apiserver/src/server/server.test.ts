import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createApiServer } from './assembly.ts';
import { ExchangeModel } from '../testing/exchange-model.sim.ts';
import { StorageModel } from '../storage/storage-model.sim.ts';
import { SHARED_AHEAD_BYTES_MAX } from '../watchcache/watcher.ts';

function server() {
  const storage = new StorageModel();
  let uuids = 0;
  const later: (() => void)[] = [];
  const edge = {
    nowMs: () => Date.UTC(2026, 0, 2, 3, 4, 5),
    below: () => 0,
    uuid: () => `00000000-0000-4000-8000-${String(++uuids).padStart(12, '0')}`,
    defer: (work: () => void) => void later.push(work),
    deferPiece: (work: () => void) => void later.push(work),
  };
  const api = createApiServer({ storage, edge, address: '127.0.0.1:6443' });
  const ask = (
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): ExchangeModel => {
    const exchange = new ExchangeModel(method, path, body, headers);
    api.handle(exchange);
    return exchange;
  };
  const created = ask('POST', '/api/v1/namespaces', { metadata: { name: 'default' } });
  assert.equal(created.status, 201, created.text);
  return { api, storage, ask, later };
}

const CONFIG = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { k: 'v' } };
const MAPS = '/api/v1/namespaces/default/configmaps';

test('an object is created, read, changed, listed and deleted', () => {
  const { ask } = server();
  const created = ask('POST', MAPS, CONFIG);
  assert.equal(created.status, 201);
  const object = JSON.parse(created.text) as { metadata: Record<string, string> };
  assert.equal(object.metadata['namespace'], 'default');
  assert.match(object.metadata['resourceVersion'] ?? '', /^\d+$/);
  assert.equal(ask('GET', `${MAPS}/a`).text, created.text);
  const patched = ask(
    'PATCH',
    `${MAPS}/a`,
    { data: { k: 'w' } },
    {
      'content-type': 'application/merge-patch+json',
    },
  );
  assert.equal(patched.status, 200);
  const list = JSON.parse(ask('GET', MAPS).text) as { kind: string; items: { data: unknown }[] };
  assert.equal(list.kind, 'ConfigMapList');
  assert.deepEqual(
    list.items.map((item) => item.data),
    [{ k: 'w' }],
  );
  const removed = JSON.parse(ask('DELETE', `${MAPS}/a`).text) as { status: string };
  assert.equal(removed.status, 'Success');
  assert.equal(ask('GET', `${MAPS}/a`).status, 404);
});

test('annotations count for the generation of a Deployment, and not of a ReplicaSet', () => {
  const { ask } = server();
  const template = {
    metadata: { labels: { app: 'web' } },
    spec: { containers: [{ name: 'c', image: 'img:1' }] },
  };
  const spec = { selector: { matchLabels: { app: 'web' } }, template };
  const merge = { 'content-type': 'application/merge-patch+json' };
  const generations = (['Deployment', 'ReplicaSet'] as const).map((kind) => {
    const path = `/apis/apps/v1/namespaces/default/${kind.toLowerCase()}s`;
    const made = ask('POST', path, { apiVersion: 'apps/v1', kind, metadata: { name: 'w' }, spec });
    assert.equal(made.status, 201, made.text);
    const patched = ask(
      'PATCH',
      `${path}/w`,
      { metadata: { annotations: { team: 'b' }, labels: { l: 'x' } } },
      merge,
    );
    const object = JSON.parse(patched.text) as { metadata: { generation: number } };
    return object.metadata.generation;
  });
  assert.deepEqual(generations, [2, 1]);
});

test('a scale is shown as a table where one is asked for', () => {
  const { ask } = server();
  const path = '/apis/apps/v1/namespaces/default/deployments';
  const spec = {
    replicas: 3,
    selector: { matchLabels: { app: 'w' } },
    template: {
      metadata: { labels: { app: 'w' } },
      spec: { containers: [{ name: 'c', image: 'i' }] },
    },
  };
  ask('POST', path, { metadata: { name: 'w' }, spec });
  const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';
  interface Table {
    readonly kind: string;
    readonly columnDefinitions: readonly { readonly name: string }[];
    readonly rows: readonly { readonly cells: unknown[]; readonly object: { kind: string } }[];
  }
  const shown = (method: string, body?: object): unknown[] => {
    const fields = { accept, 'content-type': 'application/merge-patch+json' };
    const answer = ask(method, `${path}/w/scale`, body, fields);
    const { kind, columnDefinitions, rows } = JSON.parse(answer.text) as Table;
    const names = columnDefinitions.map(({ name }) => name).join(' ');
    return [kind, names, rows[0]?.cells, rows[0]?.object.kind];
  };
  const columns = 'Name Desired Available Age';
  const metadata = 'PartialObjectMetadata';
  assert.deepEqual(shown('GET'), ['Table', columns, ['w', 3, 0, '0s'], metadata]);
  const change = { spec: { replicas: 5 } };
  assert.deepEqual(shown('PATCH', change), ['Table', columns, ['w', 5, 0, '0s'], metadata]);
});

test('a patch of no known kind is told of before a table that cannot be made', () => {
  const { ask } = server();
  const path = '/api/v1/namespaces/default/configmaps/c';
  const accept = 'application/json;as=Table;v=v9;g=meta.k8s.io';
  const status = (type: string): number =>
    ask('PATCH', path, {}, { accept, 'content-type': type }).status;
  assert.equal(status('application/yaml'), 415);
  assert.equal(status('application/merge-patch+json'), 406);
  assert.equal(ask('PATCH', path, {}, { accept: 'text/html', 'content-type': 'x/y' }).status, 415);
});

test('a generation comes with a new object at most, and is 1 for a priority class', () => {
  const { ask } = server();
  const merge = { 'content-type': 'application/merge-patch+json' };
  const generations = (path: string, more: object): (number | undefined)[] => {
    const made = ask('POST', path, { metadata: { name: 'p', generation: 7 }, ...more });
    const change = { metadata: { generation: 9, labels: { a: 'b' } } };
    const changed = ask('PATCH', `${path}/p`, change, merge);
    assert.equal(changed.status, 200, changed.text);
    return [made, changed].map(
      ({ text }) => (JSON.parse(text) as { metadata: { generation?: number } }).metadata.generation,
    );
  };
  const classes = '/apis/scheduling.k8s.io/v1/priorityclasses';
  assert.deepEqual(generations(classes, { value: 5 }), [1, 1]);
  assert.deepEqual(generations(MAPS, {}), [7, 7]);
});

test('a certificate request names who asks, and changes only where it may', () => {
  const { ask } = server();
  const path = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
  // of jane, in the group dev, with a key of its own
  const request = [
    'LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIWE1IOENBUUF3SFRFTU1Bb0dBMVVF',
    'Q2d3RFpHVjJNUTB3Q3dZRFZRUUREQVJxWVc1bE1Ga3dFd1lIS29aSQp6ajBDQVFZSUtvWkl6ajBEQVFj',
    'RFFnQUV0V1lBZzBJSXgxeGVwNDBtTjg5MDQxTG11SGoxdUZaSTA2VWhtUVUzCnFueDJ1ZmdtS0NBTGFa',
    'd1dobUloVU1qNG9hOFh2NjI1NkRuamVBYVhBTUZGUUtBQU1Bb0dDQ3FHU000OUJBTUMKQTBnQU1FVUNJ',
    'UURqQktQT2RDalBhY2hZWVRXWDJSUG1vSlh4TTc1WFVKNkhPQ1hXTUlQTVlnSWdRay94TFdSUQpOOUVa',
    'QmVVMUhpei82R2RZYlF6SmFlbHZuejlTVCsvRXc5Zz0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVT',
    'VC0tLS0tCg==',
  ].join('');
  const signerName = 'example.com/signer';
  const spec = { request, signerName, usages: ['client auth'], username: 'somebody-else' };
  const approved = { type: 'Approved', status: 'True', reason: 'r' };
  interface Shown {
    readonly spec: Readonly<Record<string, unknown>>;
    readonly status: { readonly conditions?: readonly Readonly<Record<string, unknown>>[] };
  }
  const shown = (text: string): Shown => JSON.parse(text) as Shown;
  const made = ask('POST', path, {
    metadata: { name: 'a' },
    spec,
    status: { conditions: [approved] },
  });
  assert.equal(made.status, 201, made.text);
  assert.notEqual(shown(made.text).spec['username'], 'somebody-else');
  assert.deepEqual(shown(made.text).status, {});
  const merge = { 'content-type': 'application/merge-patch+json' };
  const change = { spec: { signerName: 'example.com/other' }, status: { conditions: [approved] } };
  const byStatus = shown(ask('PATCH', `${path}/a/status`, change, merge).text);
  assert.deepEqual(byStatus.status.conditions ?? [], []);
  const byApproval = shown(ask('PATCH', `${path}/a/approval`, change, merge).text);
  assert.equal(byApproval.spec['signerName'], signerName);
  const [condition] = byApproval.status.conditions ?? [];
  assert.equal(condition?.['lastUpdateTime'], '2026-01-02T03:04:05Z');
  assert.equal(condition?.['lastTransitionTime'], '2026-01-02T03:04:05Z');
});

test('a watch tells changes in order, with transitions of its selector', () => {
  const { ask } = server();
  const watch = ask('GET', `${MAPS}?watch=1&labelSelector=x%3D1`);
  assert.equal(watch.status, 200);
  ask('POST', MAPS, { ...CONFIG, metadata: { name: 'a', labels: { x: '1' } } });
  const merge = { 'content-type': 'application/merge-patch+json' };
  ask('PATCH', `${MAPS}/a`, { data: { k: '2' } }, merge);
  ask('PATCH', `${MAPS}/a`, { metadata: { labels: { x: '2' } } }, merge);
  ask('PATCH', `${MAPS}/a`, { metadata: { labels: { x: '1' } } }, merge);
  ask('DELETE', `${MAPS}/a`);
  const events = watch.text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { type: string });
  assert.deepEqual(
    events.map(({ type }) => type),
    ['ADDED', 'MODIFIED', 'DELETED', 'ADDED', 'DELETED'],
  );
});

test('a reader that stops keeps its place, and loses it when history is gone', () => {
  const { ask, storage, later } = server();
  const settle = (): void => {
    for (let work = later.shift(); work !== undefined; work = later.shift()) work();
  };
  const watch = ask('GET', `${MAPS}?watch=1&resourceVersion=1`);
  const data = { k: 'x'.repeat(900_000) };
  const ahead = Math.ceil(SHARED_AHEAD_BYTES_MAX / 900_000);
  const names = Array.from({ length: ahead + 2 }, (_, index) => `large-${index}`);
  const events = (): number => watch.text.split('\n').length - 1;
  watch.room = 0;
  for (const name of names) ask('POST', MAPS, { ...CONFIG, metadata: { name }, data });
  settle();
  assert.equal(events(), ahead, 'it is let run ahead by a bounded number of bytes');
  watch.read(Infinity);
  assert.equal(events(), names.length);
  watch.room = 0;
  for (const name of names) ask('DELETE', `${MAPS}/${name}`);
  settle();
  assert.equal(events(), names.length + ahead);
  storage.compact(storage.appliedRevision + 1);
  watch.read(Infinity);
  assert.match(watch.text, /"type":"ERROR".*"code":410/);
  assert.equal(watch.isEnded, true);
});

test('answers wait until what they saw is published', () => {
  const { api, storage } = server();
  storage.isHolding = true;
  const exchange = new ExchangeModel('POST', MAPS, CONFIG);
  api.handle(exchange);
  assert.equal(exchange.connection.held, 1);
  storage.publish();
  assert.equal(exchange.connection.held, 0);
});

test('a lease is renewed on the short way when only its spec changes', () => {
  const { ask, storage } = server();
  const path = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
  const lease = {
    kind: 'Lease',
    apiVersion: 'coordination.k8s.io/v1',
    metadata: { name: 'n' },
    spec: { holderIdentity: 'n', renewTime: '2026-01-02T03:04:05.000000Z' },
  };
  const created = ask('POST', path, lease);
  assert.equal(created.status, 201, created.text);
  const stored = JSON.parse(created.text) as { spec: Record<string, string> };
  stored.spec['renewTime'] = '2026-01-02T03:04:15.000000Z';
  const before = storage.appliedRevision;
  const renewed = ask('PUT', `${path}/n`, stored);
  assert.equal(renewed.status, 200, renewed.text);
  assert.equal(storage.appliedRevision, before + 1);
  const answer = JSON.parse(renewed.text) as typeof stored & { metadata: object };
  assert.deepEqual(answer.spec, stored.spec);
  assert.equal(ask('GET', `${path}/n`).text, renewed.text);
  assert.equal(ask('PUT', `${path}/n`, stored).status, 409);
});

test('a large collection is removed over several turns, and others are answered in between', () => {
  const { ask, later } = server();
  const count = 350;
  for (let index = 0; index < count; index++) {
    ask('POST', MAPS, { ...CONFIG, metadata: { name: `m-${index}` } });
  }
  const removal = ask('DELETE', MAPS);
  assert.equal(removal.status, 0);
  const between = JSON.parse(ask('GET', MAPS).text) as { items: unknown[] };
  assert(between.items.length > 0 && between.items.length < count);
  while (later.length > 0) later.shift()?.();
  assert.equal(removal.status, 200);
  const removed = JSON.parse(removal.text) as { items: unknown[] };
  assert.equal(removed.items.length, count);
  assert.deepEqual((JSON.parse(ask('GET', MAPS).text) as { items: unknown[] }).items, []);
});

test('paths are taken as written: empty segments, slashes at the end, escapes', () => {
  const { ask } = server();
  const cases: readonly (readonly [string, string, number, string])[] = [
    ['GET', '/version/', 200, 'gitVersion'],
    ['GET', '/healthz/', 404, '404 page not found\n'],
    ['GET', '/metrics/', 404, '404 page not found\n'],
    ['GET', '/version/x', 404, 'the server could not find the requested resource'],
    ['GET', '/openid/v1/jwks/x', 404, 'the server could not find the requested resource'],
    ['GET', '//api', 404, '404 page not found\n'],
    ['GET', '//api/v1/pods', 404, '404 page not found\n'],
    ['GET', '/index.html', 200, '/openapi/v3'],
    ['POST', '/', 200, '/openapi/v3'],
    ['OPTIONS', '/apis/apps', 200, 'APIGroup'],
    ['OPTIONS', '/apis/apps/v1', 405, 'does not allow this method'],
    ['GET', '/api//v1', 404, 'could not find the requested resource'],
    ['GET', '/api/v1//pods', 404, 'could not find the requested resource'],
    ['GET', '/api/v1/namespaces//pods', 200, 'PodList'],
    ['GET', '/api/v1/namespaces/a/namespaces/a', 404, 'could not find'],
    [
      'GET',
      '/api/v1/namespaces/a/pods/..',
      400,
      'Name parameter invalid: \\"..\\": may not be \'..\'',
    ],
    ['GET', '/api/v1/namespaces/a/pods/a%2Fb', 404, 'could not find the requested resource'],
    ['GET', '/api/v1/namespaces/a/pods/%zz', 400, '400 Bad Request'],
    ['GET', '/api/v1/namespaces/a/pods?limit=%zz&a;b', 200, 'PodList'],
    ['GET', '/api/v1/watch', 500, 'unable to determine kind and namespace from url, /api/v1/watch'],
    ['GET', '/api/v1/proxy/nodes/x', 404, 'could not find the requested resource'],
    ['POST', '/api/v1/watch/pods', 405, 'does not allow this method'],
  ];
  for (const [method, path, status, text] of cases) {
    const answer = ask(method, path);
    assert.equal(answer.status, status, `${method} ${path}: ${answer.text}`);
    assert(answer.text.includes(text), `${method} ${path}: ${answer.text}`);
  }
});

test('documents and failures come in what the client takes, or indented', () => {
  const { ask } = server();
  const first = (path: string, accept: string): string => {
    const { status, text } = ask('GET', path, undefined, { accept });
    return `${status} ${text.slice(0, 22).replaceAll('\n', '|')}`;
  };
  const json = 'application/json';
  const table = `${json};as=Table;v=v1;g=meta.k8s.io`;
  const cases: readonly (readonly [string, string, string])[] = [
    ['/apis/apps', 'application/yaml', '200 apiVersion: v1|kind: A'],
    ['/apis/apps/v1', 'application/vnd.kubernetes.protobuf', '200 k8s\0'],
    ['/apis/apps', 'application/*', '200 {"kind":"APIGroup","ap'],
    ['/apis/apps/v1', 'application/*', '406 {"kind":"Status","apiV'],
    ['/api', 'image/png', '406 {|  "kind": "Status",|'],
    ['/version', 'application/yaml', '406 apiVersion: v1|code: 4'],
    ['/version', table, '200 {|  "major": "1",|  "m'],
    ['/api/v1/nope', 'application/yaml', '404 apiVersion: v1|code: 4'],
    [`${MAPS}/none`, table, '404 {|  "kind": "Status",|'],
    [`${MAPS}/none`, `${table},${json}`, '404 {"kind":"Status","apiV'],
    [`${MAPS}/none`, `${json};q=0`, '404 {"kind":"Status","apiV'],
  ];
  for (const [path, accept, expected] of cases) {
    const found = first(path, accept);
    assert.equal(found.slice(0, expected.length), expected, `${path} as ${accept}`);
  }
  const list = ask('GET', MAPS, undefined, { accept: 'image/png' }).text;
  assert(list.includes('application/vnd.kubernetes.protobuf;stream=watch'));
});

test('a page goes on with its limit, whatever revision is asked for beside its token', () => {
  const { ask } = server();
  for (const name of ['a', 'b', 'c']) ask('POST', MAPS, { ...CONFIG, metadata: { name } });
  const list = (query: string): { metadata: { continue?: string }; items: unknown[] } =>
    JSON.parse(ask('GET', `${MAPS}?${query}`).text) as ReturnType<typeof list>;
  const first = list('limit=1');
  const token = first.metadata.continue ?? '';
  assert.equal(list('resourceVersion=0&limit=1').items.length, 3);
  const next = list(`resourceVersion=0&limit=1&continue=${encodeURIComponent(token)}`);
  assert.equal(next.items.length, 1);
  assert(next.metadata.continue !== undefined);
});

test('a list can leave out what has changed, and says so where it does', () => {
  const { ask, storage } = server();
  const names = ['a', 'b', 'c', 'd', 'e'];
  for (const name of names) ask('POST', MAPS, { ...CONFIG, metadata: { name } });
  const since = storage.appliedRevision;
  ask('PUT', `${MAPS}/b`, { ...CONFIG, metadata: { name: 'b' }, data: {} });
  ask('DELETE', `${MAPS}/d`);
  ask('POST', MAPS, { ...CONFIG, metadata: { name: 'f' } });
  const merge = { 'content-type': 'application/merge-patch+json' };
  ask('PATCH', `${MAPS}/f`, { data: { k: 'w' } }, merge);
  interface Listed {
    metadata: { continue?: string; unchanged?: { since: string; of: number } };
    items: { metadata: { name: string } }[];
  }
  const list = (query: string, accept = 'application/json'): Listed =>
    JSON.parse(ask('GET', `${MAPS}?${query}`, undefined, { accept }).text) as Listed;
  const namesOf = ({ items }: Listed): string =>
    items.map(({ metadata }) => metadata.name).join('');
  const whole = list(`unchangedSince=${since}`);
  assert.equal(namesOf(whole), 'acef');
  assert.deepEqual(whole.metadata.unchanged, { since: `${since}`, of: 5 });
  const first = list(`limit=2&unchangedSince=${since}`);
  assert.deepEqual([namesOf(first), first.metadata.unchanged], ['ac', whole.metadata.unchanged]);
  const token = encodeURIComponent(first.metadata.continue ?? '');
  const last = list(`limit=9&unchangedSince=${since}&continue=${token}`);
  assert.deepEqual([namesOf(last), last.metadata.continue], ['ef', undefined]);
  const none = list(
    `limit=9&unchangedSince=${storage.appliedRevision}&fieldSelector=metadata.name=b`,
  );
  assert.deepEqual(
    [namesOf(none), none.metadata.unchanged],
    ['b', undefined],
    'selectors are alone',
  );
  for (const odd of ['x', '0', `${storage.appliedRevision + 1}`]) {
    const all = list(`unchangedSince=${odd}`);
    assert.deepEqual([namesOf(all), all.metadata.unchanged], ['abcef', undefined], odd);
  }
  const partial = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';
  assert.equal(namesOf(list(`unchangedSince=${since}`, partial)), 'abcef', 'it cannot tell');
});

test('a timeout that is none is told before anybody is asked who they are, watches aside', () => {
  const { ask } = server();
  const fault = 'invalid timeout specified in the request URL - time: ';
  for (const [path, told] of [
    ['/version?timeout=abc', `${fault}invalid duration "abc"`],
    [`${MAPS}?timeout=9`, `${fault}missing unit in duration "9"`],
  ] as const) {
    const answer = ask('GET', path, undefined, { authorization: 'Bearer nobody' });
    assert.equal(answer.status, 400);
    assert.equal((JSON.parse(answer.text) as { message: string }).message, told);
  }
  assert.equal(ask('GET', `${MAPS}?watch=1&timeout=abc`).status, 200);
  assert.equal(ask('GET', `${MAPS}?timeout=1m30s`).status, 200);
});
