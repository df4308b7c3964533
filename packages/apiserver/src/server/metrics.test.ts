import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ClientRequests } from '../webhook/client-requests.ts';
import { createApiServer } from './assembly.ts';
import { Store } from '@megaplane/store/store';
import { EmbeddedStorage } from '../storage/embedded/embedded-storage.ts';
import { EtcdRequests } from '../storage/etcd3/etcd-requests.ts';
import { ExchangeModel } from '../testing/exchange-model.sim.ts';
import { StorageModel } from '../storage/storage-model.sim.ts';

function server() {
  const edge = {
    nowMs: () => Date.UTC(2026, 0, 2, 3, 4, 5),
    below: () => 0,
    uuid: () => '00000000-0000-4000-8000-000000000001',
    defer: () => undefined,
    deferPiece: () => undefined,
  };
  const api = createApiServer({ storage: new StorageModel(), edge, address: '' });
  return (
    path: string,
    method = 'GET',
    headers: Record<string, string> = {},
    sent: object = { apiVersion: 'v1', kind: 'ConfigMap' },
  ): ExchangeModel => {
    const body = method === 'GET' ? undefined : sent;
    const exchange = new ExchangeModel(method, path, body, headers);
    api.handle(exchange);
    return exchange;
  };
}

test('requests are counted by what they ask for, and made-up paths do not grow memory', () => {
  const ask = server();
  ask('/api/v1/pods');
  for (let index = 0; index < 200; index++) ask(`/apis/g${index}.example.com/v1/a/b/c`);
  for (let index = 0; index < 200; index++) ask(`/api/v1/namespaces/a/pods/p/s${index}`);
  for (let index = 0; index < 200; index++) ask(`/made/up/${index}`);
  const { text } = ask('/metrics');
  assert.match(
    text,
    /apiserver_request_total\{code="200",component="apiserver",.*resource="pods".*\} 1\n/,
  );
  const series = text.match(/^apiserver_request_duration_seconds_count/gm) ?? [];
  assert.equal(series.length, 1, series.join(' '));
});

test('a DELETE of the metrics counts from nothing again', () => {
  const ask = server();
  ask('/api/v1/pods');
  assert.equal(ask('/metrics', 'DELETE').text, 'metrics reset\n');
  assert.doesNotMatch(ask('/metrics').text, /apiserver_request_total\{.*resource="pods"/);
  ask('/api/v1/pods');
  assert.match(ask('/metrics').text, /apiserver_request_total\{.*resource="pods".*\} 1\n/);
});

test('bodies of writes are measured by resource and verb, as those of renewals are', () => {
  const ask = server();
  const space = '/api/v1/namespaces/a';
  ask('/api/v1/namespaces', 'POST', {}, { metadata: { name: 'a' } });
  const sent = { metadata: { name: 'c' }, data: { x: 'y'.repeat(60_000) } };
  ask(`${space}/configmaps`, 'POST', {}, sent);
  ask(`${space}/configmaps/c`, 'PUT', {}, { metadata: { name: 'c' } });
  ask(`${space}/configmaps`);
  const leases = '/apis/coordination.k8s.io/v1/namespaces/a/leases';
  const metadata = { name: 'l', namespace: 'a' };
  const text = ask(leases, 'POST', {}, { metadata, spec: { holderIdentity: 'l' } }).text;
  const renewed = JSON.parse(text) as { spec: Record<string, unknown> };
  renewed.spec['renewTime'] = '2026-01-02T03:04:05.000000Z';
  const size = JSON.stringify(renewed).length;
  ask(`${leases}/l`, 'PUT', { 'content-type': 'application/json' }, renewed);
  const lines = ask('/metrics').text.split('\n');
  const of = (labels: string, kind: string): string | undefined =>
    lines
      .find((line) => line.startsWith(`apiserver_request_body_size_bytes_${kind}{${labels}`))
      ?.split(' ')[1];
  const create = 'group="",resource="configmaps",verb="create"';
  assert.equal(of(`${create},le="50000"`, 'bucket'), '0');
  assert.equal(of(`${create},le="150000"`, 'bucket'), '1');
  assert.equal(of(`${create},le="3.05e+06"`, 'bucket'), '1');
  assert.equal(of(create, 'sum'), String(JSON.stringify(sent).length));
  assert.equal(of('group="",resource="configmaps",verb="update"', 'count'), '1');
  const lease = 'group="coordination.k8s.io",resource="leases",verb="update"';
  assert.deepEqual([of(lease, 'count'), of(lease, 'sum')], ['1', String(size)]);
  assert.equal(of('group="",resource="configmaps",verb="list"', 'count'), undefined);
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
  assert.equal(count('group="nowhere'), '');
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

test('what counts as a request is what reaches one of upstream’s routes', () => {
  const ask = server();
  for (const path of ['/version', '/metrics', '/apis', '/api/v1', '/openapi/v2', '/livez/ping']) {
    ask(path);
  }
  ask('/api/v1/namespaces/a/configmaps', 'FOO');
  ask('/version', 'POST');
  ask('/statusz');
  ask('/livez');
  const watch = ask('/api/v1/namespaces/a/configmaps?watch=1');
  const open = 'apiserver_longrunning_requests{component="apiserver",group=""';
  const labels =
    'resource="configmaps",scope="namespace",subresource="",verb="WATCH",version="v1"}';
  const during = ask('/metrics').text;
  assert(during.includes(`${open},${labels} 1\n`), during.slice(0, 2000));
  assert(!/apiserver_request_total\{.*verb="WATCH"/.test(during), 'counted before its end');
  watch.end();
  const { text } = ask('/metrics');
  assert(text.includes(`${open},${labels} 0\n`));
  const counted = text.match(/^apiserver_request_total\{.*/gm) ?? [];
  assert.deepEqual(
    counted.map((line) => /,(?:resource|subresource)="[^"]+.*/.exec(line)?.[0] ?? line).toSorted(),
    [
      `,${labels} 1`,
      ',resource="statusz",scope="",subresource="",verb="GET",version=""} 1',
      ',subresource="/livez",verb="GET",version=""} 1',
    ],
  );
  assert(!/sli_duration_seconds_count\{.*verb="WATCH"/.test(text), 'no service level of watches');
  assert.match(text, /^apiserver_response_sizes_count\{.*subresource="\/livez".*\} 1$/m);
  assert.match(
    text,
    /^authentication_duration_seconds_bucket\{result="success",le="0.001"\} \d+$/m,
  );
  assert.match(text, /^authorization_duration_seconds_count\{result="allowed"\} \d+$/m);
  for (const [, name = ''] of text.matchAll(/^# TYPE (\S+)/gm)) {
    assert(text.includes(`# HELP ${name} `), name);
  }
});

test('lists are counted with what they looked at and what they showed', () => {
  const ask = server();
  const make = (name: string): void => {
    ask('/apis/node.k8s.io/v1/runtimeclasses', 'POST', {}, { metadata: { name }, handler: 'h' });
  };
  for (const name of ['a', 'b', 'c']) make(name);
  const list = '/apis/node.k8s.io/v1/runtimeclasses';
  ask(list);
  ask(`${list}?fieldSelector=metadata.name!=a`);
  ask(`${list}?limit=2`);
  const { text } = ask('/metrics');
  const own = 'group="node.k8s.io"';
  const labels = `${own},index="",resource="runtimeclasses"`;
  assert(text.includes(`apiserver_cache_list_total{${labels}} 3\n`));
  assert(text.includes(`apiserver_cache_list_fetched_objects_total{${labels}} 8\n`));
  const returned = `apiserver_cache_list_returned_objects_total{${own},resource="runtimeclasses"}`;
  assert(text.includes(`${returned} 7\n`));
});

test('requests to etcd are counted by what they do to which resource', () => {
  const requests = new EtcdRequests();
  const count = (key: string, isDone = true): void =>
    requests.count('update', Buffer.from(key), 30, isDone);
  count('/registry/pods/a.b/c');
  count('/registry/pods/d/e', false);
  count('/registry/services/specs/a/b');
  count('/registry/apiregistration.k8s.io/apiservices/v1.');
  count('/registry/things.example.com/made/a/b');
  count('nonsense');
  const lines: string[] = [];
  requests.print(lines);
  const text = lines.join('\n');
  const has = (
    group: string,
    resource: string,
    value: number,
    name = 'etcd_requests_total',
  ): void => {
    const line = `${name}{group="${group}",operation="update",resource="${resource}"} ${value}`;
    assert(lines.includes(line), `${line}\n${text}`);
  };
  has('', 'pods', 2);
  has('', 'pods', 1, 'etcd_request_errors_total');
  has('', 'pods', 0.06, 'etcd_request_duration_seconds_sum');
  has('', 'services', 1);
  has('apiregistration.k8s.io', 'apiservices', 1);
  has('', '/registry/things.example.com/made/', 1);
  assert.match(
    text,
    /duration_seconds_bucket\{.*resource="pods",le="0.025"\} 0\n.*le="0.05"\} 2\n/,
  );
});

test('calls of webhooks are counted by host and code', () => {
  const requests = new ClientRequests();
  const body = Buffer.alloc(0);
  requests.count('h:1', { ok: true, status: 200, contentType: '', body }, 300);
  requests.count('h:1', { ok: false, why: 'EOF' }, 1);
  const lines: string[] = [];
  requests.print(lines);
  assert(lines.includes('rest_client_requests_total{code="200",host="h:1",method="POST"} 1'));
  assert(lines.includes('rest_client_requests_total{code="<error>",host="h:1",method="POST"} 1'));
  const bucket = 'rest_client_request_duration_seconds_bucket{host="h:1",verb="POST",le="0.25"} 1';
  assert(lines.includes(bucket), lines.join('\n'));
});

test('the embedded store tells how large it is, as upstream does of etcd', () => {
  const store = new Store({ dataDir: null, durability: 'none', prefixes: [] }, 11);
  const storage = new EmbeddedStorage(store, () => Promise.resolve());
  const key = Buffer.from('/registry/configmaps/a/b');
  storage.put(key, Buffer.alloc(100_000, 0x20), 0, () => undefined);
  const lines: string[] = [];
  storage.print(lines);
  const size = /^apiserver_storage_size_bytes\{storage_cluster_id="embedded"\} (\d+)$/m;
  assert.ok(Number(size.exec(lines.join('\n'))?.[1]) >= 100_000, lines.join('\n'));
});

test('objects and lists of custom kinds are counted under their names', () => {
  const ask = server();
  const names = { plural: 'widgets', singular: 'widget', kind: 'Widget' };
  const schema = { openAPIV3Schema: { type: 'object' } };
  const versions = [{ name: 'v1', served: true, storage: true, schema }];
  const spec = { group: 'example.com', scope: 'Cluster', names, versions };
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  ask(definitions, 'POST', {}, { metadata: { name: 'widgets.example.com' }, spec });
  const widgets = '/apis/example.com/v1/widgets';
  const widget = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'w' } };
  assert.equal(ask(widgets, 'POST', {}, widget).status, 201);
  ask(widgets);
  const lines = ask('/metrics').text.split('\n');
  const own = 'group="example.com",resource="widgets"';
  for (const line of [
    `apiserver_resource_objects{${own}} 1`,
    'apiserver_storage_objects{resource="widgets.example.com"} 1',
    'apiserver_cache_list_total{group="example.com",index="",resource="widgets"} 1',
    `apiserver_cache_list_returned_objects_total{${own}} 1`,
  ]) {
    assert.ok(lines.includes(line), line);
  }
});
