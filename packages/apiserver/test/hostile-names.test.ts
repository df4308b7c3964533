import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tellErrors } from '@megaplane/base/deferred';
import { createApiServer } from '../src/server/assembly.ts';
import { ExchangeModel } from '../src/testing/exchange-model.sim.ts';
import { StorageModel } from '../src/storage/storage-model.sim.ts';

/** Names that every plain object has, or that are its prototype. */
const NAMES = ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf'];
const MAPS = '/api/v1/namespaces/default/configmaps';

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
  const faults: unknown[] = [];
  tellErrors((error) => faults.push(error));
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
  ask('POST', '/api/v1/namespaces', { metadata: { name: 'default' } });
  return { api, ask, later, faults };
}

/** A document as it is written, whatever its members are called. */
function written(text: string): unknown {
  return JSON.parse(text) as unknown;
}

test('methods that HTTP does not know are refused first of all', () => {
  const { ask, faults } = server();
  for (const method of [...NAMES, 'get', 'PURGE', 'G', 'PROPFIND']) {
    for (const path of ['/api/v1/pods', '/healthz', `${MAPS}/a?timeout=1s`]) {
      assert.equal(ask(method, path).status, 501, method);
    }
  }
  assert.deepEqual(faults, []);
});

test('any name may stand in paths and queries', () => {
  const { ask, faults } = server();
  for (const name of NAMES) {
    const paths = [
      ...[`/apis/${name}/v1/pods`, `/api/${name}/pods`, `/apis/apps/${name}/deployments`],
      ...[`/api/v1/${name}`, `/api/v1/namespaces/${name}/pods`, `${MAPS}/${name}`, `/${name}`],
      ...[`${MAPS}/a/${name}`, `/api/v1/namespaces/default/${name}/a/${name}`],
      ...[`/openapi/v3/apis/${name}/v1`, `/api/v1/pods?${name}=${name}&labelSelector=${name}`],
      ...[`/api/v1/pods?fieldSelector=${name}%3Dx`, `/livez/${name}`, `/metrics/${name}`],
    ];
    for (const path of paths) {
      for (const method of ['GET', 'PUT', 'DELETE', 'PATCH', 'POST', 'OPTIONS']) {
        const { status } = ask(method, path, {});
        assert.ok(status > 0 && status !== 500, `${method} ${path}: ${status}`);
      }
    }
  }
  assert.deepEqual(faults, []);
});

test('any name may stand in header fields', () => {
  const { ask, faults } = server();
  for (const name of NAMES) {
    const headers = [
      { [name]: name },
      { 'impersonate-user': 'u', [`impersonate-extra-${name.toLowerCase()}`]: 'x' },
      { [`x-remote-extra-${name.toLowerCase()}`]: 'x', 'x-remote-user': 'u' },
      { accept: name, 'content-type': name, authorization: `${name} ${name}` },
      { accept: `application/json;as=${name};g=${name};v=${name}` },
    ];
    for (const one of headers) {
      const { status, text } = ask('GET', '/api/v1/namespaces', undefined, one);
      assert.ok(status > 0 && status !== 500, `${JSON.stringify(one)}: ${text}`);
    }
  }
  assert.deepEqual(faults, []);
});

const PATCHES = ['application/merge-patch+json', 'application/strategic-merge-patch+json'];

test('a member of any name is created, patched and kept', () => {
  for (const name of NAMES) {
    for (const type of PATCHES) {
      const { ask } = server();
      const metadata = '"metadata":{"name":"a"}';
      const first = written(`{${metadata},"data":{"k":"v",${JSON.stringify(name)}:"1"}}`);
      assert.equal(ask('POST', MAPS, first).status, 201);
      const dataOf = (text: string): unknown => (JSON.parse(text) as { data: unknown }).data;
      const shown = (value: string): unknown =>
        written(`{"k":"v",${JSON.stringify(name)}:${value}}`);
      const patch = (value: string): ExchangeModel =>
        ask('PATCH', `${MAPS}/a`, written(`{"data":{${JSON.stringify(name)}:${value}}}`), {
          'content-type': type,
        });
      assert.equal(
        JSON.stringify(sorted(dataOf(ask('GET', `${MAPS}/a`).text))),
        JSON.stringify(sorted(shown('"1"'))),
      );
      const second = patch('"2"');
      assert.equal(second.status, 200, second.text);
      assert.equal(
        JSON.stringify(sorted(dataOf(ask('GET', `${MAPS}/a`).text))),
        JSON.stringify(sorted(shown('"2"'))),
        `${name} by ${type}`,
      );
      assert.equal(patch('null').status, 200);
      assert.deepEqual(dataOf(ask('GET', `${MAPS}/a`).text), { k: 'v' });
    }
  }
});

/** Entries of an object in the order of their names. */
function sorted(object: unknown): unknown {
  return Object.entries(object as object).toSorted(([left], [right]) => (left < right ? -1 : 1));
}

test('labels and annotations of any name are kept and selected', () => {
  const { ask } = server();
  for (const name of NAMES.filter((one) => !one.startsWith('_'))) {
    const labels = { [name]: 'x' };
    const made = ask('POST', MAPS, { metadata: { name: name.toLowerCase(), labels } });
    assert.equal(made.status, 201, made.text);
    const count = (selector: string): number => {
      const { text } = ask('GET', `${MAPS}?labelSelector=${encodeURIComponent(selector)}`);
      return (JSON.parse(text) as { items: unknown[] }).items.length;
    };
    assert.equal(count(name), 1);
    assert.equal(count(`${name}=x`), 1);
    assert.equal(count(`${name}=y`), 0);
  }
});

test('a request that breaks the server is answered, told of, and holds nothing', () => {
  const { api, ask, faults, later } = server();
  const { discovery } = api.parts;
  const planted = new Error('planted');
  Object.defineProperty(discovery, 'aggregated', {
    configurable: true,
    value: () => {
      throw planted;
    },
  });
  const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
  for (let count = 1; count <= 3; count++) {
    const exchange = ask('GET', '/apis', undefined, { accept });
    for (const work of later.splice(0)) work();
    assert.equal(exchange.status, 500);
    assert.match(exchange.text, /caused apiserver to panic/);
    assert.deepEqual(
      faults,
      Array.from({ length: count }, () => planted),
    );
  }
  Reflect.deleteProperty(discovery, 'aggregated');
  assert.equal(ask('GET', '/apis', undefined, { accept }).status, 200);
  const { text } = ask('GET', '/metrics');
  const held = text.split('\n').filter((line) => line.startsWith(EXECUTING));
  // the scrape itself
  assert.equal(
    held.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0),
    1,
  );
});

const EXECUTING = 'apiserver_flowcontrol_current_executing_requests';
