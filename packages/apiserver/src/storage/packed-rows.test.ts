import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { Store } from '@megaplane/store/store';
import { createApiServer } from '../server/assembly.ts';
import { bootstrap } from '../controlplane/bootstrap.ts';
import { EmbeddedStorage } from './embedded/embedded-storage.ts';
import { ConnectionModel, ExchangeModel } from '../testing/exchange-model.sim.ts';
import { keyOf, rangeOf, findServed, DEFINITIONS_PREFIX } from './served.ts';
import { emptyRow } from './storage.ts';
import { isStoredAs } from '../handlers/writing.ts';

const PODS = 1600;
const POD_PATH = '/api/v1/namespaces/default/pods';
const store = new Store({ dataDir: null, durability: 'none', prefixes: [], packAfterMs: 1000 }, 11);
const later: (() => void)[] = [];
let drawn = 0;
let nowMs = Date.parse('2026-01-02T03:04:05Z');

/** A server that remembers nothing of what others were asked. */
function freshServer() {
  return createApiServer({
    storage: new EmbeddedStorage(store, () => Promise.resolve()),
    edge: {
      nowMs: () => nowMs,
      below: (n) => ++drawn % n,
      uuid: () => `00000000-0000-4000-8000-${String(++drawn).padStart(12, '0')}`,
      defer: (work) => void later.push(work),
      deferPiece: (work) => void later.push(work),
    },
    address: '127.0.0.1:6443',
    authorizers: [() => ({ allowed: true, reason: '' })],
  });
}
type Server = ReturnType<typeof freshServer>;

const connection = new ConnectionModel();

function ask(api: Server, method: string, path: string, accept: string, body?: object) {
  const headers = { 'content-type': 'application/json', accept };
  const exchange = new ExchangeModel(method, path, body, headers, connection);
  api.handle(exchange);
  store.flush();
  for (let work = later.shift(); work !== undefined; work = later.shift()) work();
  return exchange;
}

const JSON_TYPE = 'application/json';
const PROTOBUF = 'application/vnd.kubernetes.protobuf';
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';
const METADATA = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io';

/** Whatever shows pods in another way or finds them by another. */
function answers(since: number): string[] {
  const api = freshServer();
  const lists = [JSON_TYPE, PROTOBUF, TABLE, METADATA].map(
    (accept) => ask(api, 'GET', POD_PATH, accept).text,
  );
  const selectors = [
    'labelSelector=team%3Dtwo',
    'fieldSelector=spec.nodeName%3Dnode-3',
    'fieldSelector=status.phase%3DRunning',
    'limit=70',
    `resourceVersion=${since}&resourceVersionMatch=Exact&limit=20`,
  ];
  const found = selectors.map((one) => ask(api, 'GET', `${POD_PATH}?${one}`, JSON_TYPE).text);
  const gets = [3, 500, 1300].map((n) => ask(api, 'GET', `${POD_PATH}/pod-${n}`, JSON_TYPE).text);
  const watches = ['', '&labelSelector=team%3Dtwo', '&fieldSelector=spec.nodeName%3Dnode-3'].map(
    (selector) => {
      const path = `${POD_PATH}?watch=1&resourceVersion=${since}${selector}`;
      const exchange = ask(api, 'GET', path, JSON_TYPE);
      for (let i = 0; i < 20; i++) {
        store.tick(storeMs);
        for (let work = later.shift(); work !== undefined; work = later.shift()) work();
      }
      return exchange.text;
    },
  );
  return [...lists, ...found, ...gets, ...watches];
}

let storeMs = 0;

function pod(n: number): object {
  const env = Array.from({ length: 25 }, (_, k) => ({ name: `S_${k}`, value: `value-of-${k}` }));
  const metadata = { name: `pod-${n}`, labels: { app: 'web', team: n % 9 === 0 ? 'two' : 'one' } };
  const spec = {
    nodeName: `node-${n % 40}`,
    containers: [{ name: 'c', image: `i:${n % 3}`, env }],
  };
  return { metadata, spec };
}

test('pods that were packed are shown, found, watched and changed as they were before', () => {
  const api = freshServer();
  const address = { serviceAddress: '10.96.0.1', address: '127.0.0.1', port: 6443 };
  bootstrap(api.parts.world, address);
  const account = { metadata: { name: 'default' } };
  ask(api, 'POST', '/api/v1/namespaces/default/serviceaccounts', JSON_TYPE, account);
  for (let n = 0; n < PODS; n++) ask(api, 'POST', POD_PATH, JSON_TYPE, pod(n));
  const since = store.appliedRevision - 60;
  for (let n = 0; n < 30; n++) {
    const status = { phase: 'Running', podIP: `10.0.0.${n}` };
    const body = { ...pod(n * 50), status };
    ask(api, 'PUT', `${POD_PATH}/pod-${n * 50}/status`, JSON_TYPE, body);
  }
  const before = answers(since);
  for (let i = 0; i < 400; i++) store.tick((storeMs += 50));
  const { rawBytes, liveBytes } = store.arenas;
  assert(liveBytes < rawBytes / 2, `${liveBytes} of ${rawBytes} bytes are left`);
  const after = answers(since);
  assert.deepEqual(after, before);
  assert(before.every((text) => text.length > 100));

  nowMs += 1000;
  const path = `${POD_PATH}/pod-1000`;
  const shown = JSON.parse(ask(freshServer(), 'GET', path, JSON_TYPE).text) as {
    metadata: { labels: Record<string, string> };
  };
  shown.metadata.labels['team'] = 'three';
  const changed = ask(freshServer(), 'PUT', path, JSON_TYPE, shown);
  assert.equal(changed.status, 200, changed.text);
  const listed = ask(freshServer(), 'GET', `${POD_PATH}?labelSelector=team%3Dthree`, JSON_TYPE);
  assert.equal((JSON.parse(listed.text) as { items: unknown[] }).items.length, 1);
  assert.equal(ask(freshServer(), 'DELETE', `${POD_PATH}/pod-1001`, JSON_TYPE).status, 200);
});

test('an update that changes nothing is known though much was read since', () => {
  const api = freshServer();
  const { world } = api.parts;
  const served = findServed('', 'v1', 'pods');
  assert(served !== undefined);
  const key = keyOf(served, 'default', 'pod-700');
  const row = emptyRow();
  assert(world.storage.get(key, row));
  const text = Buffer.from(row.bytes.subarray(row.start, row.end));
  const stored = { revision: row.modRevision, bytes: text.length };
  const range = rangeOf(served, 'default');
  for (let round = 0; round < 2; round++) {
    let bytes = 0;
    world.storage.page(
      range.start,
      range.end,
      0,
      (other) => (bytes += other.end - other.start) > 0,
    );
    assert(bytes > 1_000_000, 'more than is kept of what was read');
    assert(isStoredAs(world.storage, key, stored, text));
  }
  const revision = stored.revision + 1;
  assert(!isStoredAs(world.storage, key, { ...stored, revision }, text), 'others wrote since');
  const other = Buffer.from(text);
  other.write('X', text.indexOf('value-of-3'));
  assert(!isStoredAs(world.storage, key, stored, other));
  const path = `${POD_PATH}/pod-700`;
  const shown = JSON.parse(ask(api, 'GET', path, JSON_TYPE).text) as object;
  const again = JSON.parse(ask(freshServer(), 'PUT', path, JSON_TYPE, shown).text) as object;
  assert.deepEqual(again, shown);
});

test('a definition that was deflated is inflated though its like were packed', () => {
  const own = new Store({ dataDir: null, durability: 'none', prefixes: [], packAfterMs: 0 }, 11);
  const storage = new EmbeddedStorage(own, () => Promise.resolve());
  const random = new Random(4);
  const text = Array.from({ length: 2000 }, () => random.below(2 ** 30).toString(36)).join(' ');
  const value = Buffer.from(JSON.stringify({ text }));
  const keyFor = (n: number): Buffer => Buffer.from(`${DEFINITIONS_PREFIX}kinds-${n}`);
  for (let n = 0; n < 600; n++) storage.put(keyFor(n), value, 0, () => {});
  own.flush();
  for (let n = 0; n < 400; n++) own.tick(n * 50);
  assert(own.arenas.liveBytes < own.arenas.rawBytes / 2);
  const row = emptyRow();
  for (const n of [1, 90, 500]) {
    assert(new EmbeddedStorage(own, () => Promise.resolve()).get(keyFor(n), row));
    assert.deepEqual(row.bytes.subarray(row.start, row.end), value);
  }
});
