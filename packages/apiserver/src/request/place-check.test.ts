import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createApiServer } from '../server/assembly.ts';
import { ExchangeModel } from '../testing/exchange-model.sim.ts';
import { StorageModel } from '../storage/storage-model.sim.ts';

test('paths without a namespace or a name that could be one are refused as upstream does', () => {
  let uuids = 0;
  const edge = {
    nowMs: () => Date.UTC(2026, 0, 2, 3, 4, 5),
    below: () => 0,
    uuid: () => `00000000-0000-4000-8000-${String(++uuids).padStart(12, '0')}`,
    defer: (work: () => void) => work(),
    deferPiece: (work: () => void) => work(),
  };
  const storage = new StorageModel();
  const api = createApiServer({ storage, edge, address: '127.0.0.1:6443' });
  const ask = (method: string, path: string, body?: unknown): ExchangeModel => {
    const headers = method === 'PATCH' ? { 'content-type': 'application/merge-patch+json' } : {};
    const exchange = new ExchangeModel(method, path, body, headers);
    api.handle(exchange);
    return exchange;
  };
  ask('POST', '/api/v1/namespaces', { metadata: { name: 'default' } });
  const map = { metadata: { name: 'x' } };
  assert.equal(ask('POST', '/api/v1/namespaces/default/configmaps', map).status, 201);
  const nowhere = '400 Namespace parameter required.';
  const nameless = '400 name must be provided';
  const cases: readonly [method: string, path: string, answer: string][] = [
    ['GET', 'namespaces//configmaps', '200'],
    ['GET', 'namespaces//configmaps/x', nowhere],
    ['PUT', 'namespaces//configmaps/x', nowhere],
    ['PATCH', 'namespaces//configmaps/x', nowhere],
    ['DELETE', 'namespaces//configmaps/x', nowhere],
    ['DELETE', 'namespaces//configmaps', nowhere],
    ['DELETE', 'namespaces//secrets', '200'],
    [
      'POST',
      'namespaces//configmaps',
      '422 ConfigMap "x" is invalid: metadata.namespace: Required value',
    ],
    ['GET', 'namespaces//pods/x/status', nowhere],
    ['GET', 'namespaces//pods/x/log', nowhere],
    ['GET', 'configmaps/x', '404 the server could not find the requested resource'],
    ['GET', 'nodes//status', nameless],
    ['PUT', 'nodes//status', nameless],
    ['GET', 'nodes/a%25b', `400 Name parameter invalid: "a%b": may not contain '%'`],
    ['DELETE', 'nodes/..', `400 Name parameter invalid: "..": may not be '..'`],
    ['GET', 'namespaces/./configmaps', '500 invalid key: "/configmaps/."'],
    ['PATCH', 'namespaces/../configmaps/x', '500 invalid key: "/configmaps/../x"'],
    [
      'POST',
      'namespaces/./configmaps',
      `500 Internal error occurred: invalid resource name ".": [may not be '.']`,
    ],
  ];
  for (const [method, path, answer] of cases) {
    const { status, text } = ask(method, `/api/v1/${path}`, method === 'GET' ? undefined : map);
    const { message } = JSON.parse(text) as { message?: string };
    assert.equal([status, message].join(' ').trim(), answer, `${method} ${path}`);
  }
  assert.equal(ask('GET', '/api/v1/namespaces/default/configmaps/x').status, 200);
  for (const path of ['/apis//', '/apis//apps/v1', '/apis//apps/v1/deployments']) {
    assert.equal(ask('GET', path).text, '404 page not found\n', path);
  }
  assert.equal(ask('GET', '/apis/apps/v1//').status, 200);
});
