import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createApiServer } from './assembly.ts';
import { ExchangeModel } from './exchange-model.sim.ts';
import { StorageModel } from './storage-model.sim.ts';

function server() {
  const edge = {
    nowMs: () => Date.UTC(2026, 0, 2, 3, 4, 5),
    below: () => 0,
    uuid: () => '00000000-0000-4000-8000-000000000001',
    defer: () => undefined,
    deferPiece: () => undefined,
  };
  const api = createApiServer({ storage: new StorageModel(), edge, address: '' });
  return (path: string): ExchangeModel => {
    const exchange = new ExchangeModel('GET', path);
    api.handle(exchange);
    return exchange;
  };
}

test('requests are counted by what they ask for, and made-up paths do not grow memory', () => {
  const ask = server();
  ask('/api/v1/pods');
  for (let index = 0; index < 6000; index++) ask(`/apis/g${index}.example.com/v1/a/b/c`);
  const { text } = ask('/metrics');
  assert.match(
    text,
    /apiserver_request_total\{code="200",component="apiserver",.*resource="pods".*\} 1\n/,
  );
  const series = text.match(/^apiserver_request_duration_seconds_count/gm) ?? [];
  assert.ok(series.length <= 4097, `${series.length} series`);
  assert.match(text, /resource="other"/);
});

test('requests of many kinds, by turns, are counted each in its place', () => {
  const ask = server();
  const paths = [
    '/api/v1/pods',
    '/api/v1/namespaces/a/pods',
    '/api/v1/namespaces/a/pods/p',
    '/api/v1/namespaces/a/pods/p/status',
    '/api/v1/nodes',
    '/api/v1/nodes/n',
    '/api/v1/nodes?watch=0',
    '/apis/apps/v1/deployments',
    '/apis/apps/v1/namespaces/a/deployments/d/scale',
    '/apis/batch/v1/jobs',
    '/apis/nowhere.example.com/v1/jobs',
    '/healthz',
  ];
  for (let round = 0; round < 3; round++) for (const path of paths) ask(path);
  const { text } = ask('/metrics');
  const count = (labels: string): string =>
    text.split('\n').find((line) => line.includes('request_total{') && line.includes(labels)) ?? '';
  const pods = 'group="",resource="pods"';
  assert.match(count(`code="200",component="apiserver",dry_run="",${pods},scope="cluster"`), / 3$/);
  assert.match(count(`${pods},scope="namespace"`), / 3$/);
  assert.match(count(`${pods},scope="resource",subresource="",`), / 3$/);
  assert.match(count(`${pods},scope="resource",subresource="status"`), / 3$/);
  assert.match(count('resource="nodes",scope="cluster"'), / 6$/);
  assert.match(count('resource="nodes",scope="resource"'), / 3$/);
  assert.match(count('resource="deployments",scope="resource",subresource="scale"'), / 3$/);
  assert.match(count('code="404",component="apiserver",dry_run="",group="nowhere'), / 3$/);
  const line = (name: string): number =>
    Number(new RegExp(`${name}{[^}]*${pods},scope="cluster"[^}]*} (\\d+)`).exec(text)?.[1]);
  assert.equal(line('apiserver_request_duration_seconds_bucket'), 3);
  assert.equal(line('apiserver_request_duration_seconds_count'), 3);
});
