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
  return (path: string, method = 'GET', headers: Record<string, string> = {}): ExchangeModel => {
    const body = method === 'GET' ? undefined : { apiVersion: 'v1', kind: 'ConfigMap' };
    const exchange = new ExchangeModel(method, path, body, headers);
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

test('what alerts and dashboards ask for is there, once', () => {
  const ask = server();
  ask('/api/v1/nodes');
  ask('/api/v1/nodes?dryRun=All');
  ask('/api/v1/endpoints');
  ask('/readyz');
  const type = { 'content-type': 'application/apply-patch+yaml' };
  ask('/api/v1/namespaces/a/configmaps/c', 'PATCH', type);
  const { text } = ask('/metrics');
  const has = (start: string, end = ''): void => {
    const found = text.split('\n').filter((line) => line.startsWith(start) && line.endsWith(end));
    assert.equal(found.length, 1, `${start} ${found.join(' ')}`);
  };
  const nodes = 'group="",resource="nodes",scope="cluster",subresource="",verb="LIST",version="v1"';
  const sli = 'apiserver_request_sli_duration_seconds';
  has(`${sli}_bucket{component="apiserver",${nodes},le="0.05"}`, ' 1');
  has(`${sli}_count{component="apiserver",${nodes}}`, ' 1');
  assert(!text.includes(`${sli}_bucket{component="apiserver",${nodes},le="0.005"}`));
  has(
    'apiserver_request_total{code="200",component="",dry_run="",group="",resource="",scope="",' +
      'subresource="/readyz",verb="GET",version=""}',
    ' 1',
  );
  has(
    'apiserver_request_total{code="422",component="apiserver",dry_run="",group="",' +
      'resource="configmaps",scope="resource",subresource="",verb="APPLY",version="v1"}',
    ' 1',
  );
  has(
    'apiserver_requested_deprecated_apis{group="",removed_release="",resource="endpoints",' +
      'subresource="",version="v1"}',
    ' 1',
  );
  has('authentication_attempts{result="success"}');
  has('authorization_attempts_total{result="allowed"}');
  has('kubernetes_build_info{build_date=', ' 1');
  has('apiserver_client_certificate_expiration_seconds_bucket{le="604800"}', ' 0');
  has('apiserver_storage_objects{resource="leases.coordination.k8s.io"}');
  const series = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const names = series.map((line) => line.slice(0, line.lastIndexOf(' ')));
  assert.equal(new Set(names).size, names.length, 'a series is told of twice');
});
