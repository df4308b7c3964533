import assert from 'node:assert/strict';
import { request } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { after, before, test } from 'node:test';
import { ALARM_CORRUPT, ALARM_NO_SPACE } from '@megaplane/store/alarms';
import { type OpenStore, openStore } from '@megaplane/store/open';
import { Peer } from '../testing/peer.sim.ts';
import { type EtcdServer, serveEtcd } from '../server/run-store.ts';

let opened: OpenStore;
let server: EtcdServer;
let base = '';
let probes = '';

before(async () => {
  opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  server = await serveEtcd(opened, {
    listen: [{ port: 0 }],
    listenMetrics: [{ port: 0 }],
    timesCalls: true,
  });
  base = `http://127.0.0.1:${server.addresses[0]?.port}`;
  probes = `http://127.0.0.1:${server.metricsAddresses[0]?.port}`;
});

after(async () => {
  await server.close();
  await opened.close();
});

async function get(url: string, method = 'GET'): Promise<string> {
  const response = await fetch(url, { method });
  return `${response.status} ${await response.text()}`;
}

const MEMBER = { memberHigh: 0, memberLow: 1 };

test('probes answer as in etcd, with their checks, exclusions and alarms', async () => {
  const all = '[+]data_corruption ok\n[+]serializable_read ok\n[+]linearizable_read ok\n';
  const script: readonly (readonly [string, string])[] = [
    ['/health', '200 {"health":"true","reason":""}'],
    ['/health?serializable=true', '200 {"health":"true","reason":""}'],
    ['/livez', '200 ok\n'],
    ['/livez?verbose', '200 [+]serializable_read ok\nok\n'],
    ['/readyz', '200 ok\n'],
    ['/readyz?verbose', `200 ${all}[+]non_learner ok\nok\n`],
    ['/readyz?exclude=non_learner&verbose=1', `200 ${all}ok\n`],
    ['/readyz/linearizable_read?verbose', '200 [+]linearizable_read ok\nok\n'],
    ['/readyz/nothing', '404 404 page not found\n'],
    ['/livez/', '404 404 page not found\n'],
    ['/livez/linearizable_read', '404 404 page not found\n'],
    ['/healthz', '404 404 page not found\n'],
  ];
  for (const url of [base, probes]) {
    for (const [path, expected] of script) assert.equal(await get(url + path), expected, path);
  }
  assert.match(await get(`${probes}/metrics`, 'POST'), /^200 # HELP /);
  assert.equal(await get(`${base}/health`, 'POST'), '405 Method Not Allowed\n');
  assert.equal(await get(`${probes}/readyz`, 'DELETE'), '405 Method Not Allowed\n');
});

test('raised alarms show in health, and a corrupt store is not ready', async () => {
  opened.store.setAlarm({ kind: ALARM_NO_SPACE, ...MEMBER }, true);
  assert.equal(await get(`${base}/health`), '503 {"health":"false","reason":"ALARM NOSPACE"}\n');
  assert.equal(await get(`${base}/health?exclude=NOSPACE`), '200 {"health":"true","reason":""}');
  assert.equal(await get(`${base}/readyz`), '200 ok\n');
  opened.store.setAlarm({ kind: ALARM_CORRUPT, ...MEMBER }, true);
  const both = '?exclude=NOSPACE&exclude=CORRUPT';
  assert.equal(await get(`${base}/health${both}`), '200 {"health":"true","reason":""}');
  const failed = '503 [-]data_corruption failed: alarm activated: CORRUPT\n';
  assert.equal(await get(`${base}/readyz/data_corruption`), `${failed}\n`);
  assert.equal((await get(`${base}/readyz`)).startsWith(failed), true);
  assert.equal(await get(`${base}/readyz?exclude=data_corruption`), '200 ok\n');
  assert.equal(await get(`${base}/livez`), '200 ok\n');
  for (const kind of [ALARM_NO_SPACE, ALARM_CORRUPT]) {
    opened.store.setAlarm({ kind, ...MEMBER }, false);
  }
});

test('what etcd publishes as variables is there, on the client port alone', async () => {
  const text = await get(`${base}/debug/vars`);
  const vars = JSON.parse(text.slice(4)) as Record<string, { readonly raftState?: string }>;
  const names = ['cmdline', 'file_descriptor_limit', 'memstats', 'raft.status'];
  assert.deepEqual(Object.keys(vars), names);
  assert.equal(vars['raft.status']?.raftState, 'StateLeader');
  assert.equal(await get(`${base}/debug/vars`, 'POST'), '405 Method Not Allowed\n');
  assert.equal(await get(`${probes}/debug/vars`), '404 404 page not found\n');
});

test('a port for probes and scrapers tells no version and has no gateway', async () => {
  assert.match(
    await get(`${base}/version`),
    /"etcdserver":"3\.\d+\.\d+","etcdcluster":"3\.\d+\.0"/,
  );
  assert.equal(await get(`${probes}/version`), '404 404 page not found\n');
  assert.equal(await get(`${probes}/v3/kv/range`, 'POST'), '404 404 page not found\n');
});

test('paths are read and cleaned as by a Go server', async () => {
  const script: readonly (readonly [string, string, string])[] = [
    ['GET', '//version', '301 /version <a href="/version">Moved Permanently</a>.\n\n'],
    ['GET', '/v3', '301 /v3/ <a href="/v3/">Moved Permanently</a>.\n\n'],
    ['POST', '/x/../v3/./kv//put?a=b', '301 /v3/kv/put?a=b '],
    ['POST', '/health/..', '301 / '],
    ['POST', '/health/.', '301 /health '],
    ['GET', '/%68ealth', '200 - {"health":"true","reason":""}'],
    ['GET', '/v3%2fkv%2Frange', '405 - Method Not Allowed\n'],
    ['GET', '/%zz', '400 - 400 Bad Request'],
    ['GET', '/%ff', '404 - 404 page not found\n'],
    ['GET', '/health/', '404 - 404 page not found\n'],
  ];
  for (const [method, path, expected] of script) {
    const found = await new Promise<string>((resolve, reject) => {
      // `fetch` would clean the path itself.
      const { port } = new URL(base);
      const asked = request({ host: '127.0.0.1', port, path, method }, (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (text: string) => (body += text));
        const { statusCode, headers } = response;
        response.on('end', () => resolve(`${statusCode} ${headers.location ?? '-'} ${body}`));
      });
      asked.on('error', reject).end();
    });
    assert.equal(found, expected, path);
  }
});

const RANGE = 'grpc_method="Range",grpc_service="etcdserverpb.KV",grpc_type="unary"';

/** What etcd's stock alerts and its Grafana dashboards ask for. */
const QUERIED = [
  ...['etcd_server_has_leader', 'etcd_server_is_leader', 'etcd_server_leader_changes_seen_total'],
  ...['etcd_server_heartbeat_send_failures_total', 'etcd_server_proposals_failed_total'],
  ...['etcd_server_proposals_pending', 'etcd_server_proposals_committed_total'],
  ...['etcd_server_proposals_applied_total', 'etcd_server_quota_backend_bytes'],
  ...['etcd_server_slow_apply_total', 'etcd_server_slow_read_indexes_total'],
  ...['etcd_server_health_success', 'etcd_server_health_failures', 'etcd_server_id{'],
  ...['etcd_server_healthcheck{', 'etcd_server_healthchecks_total{', 'etcd_server_version{'],
  ...['etcd_cluster_version{', 'etcd_server_client_requests_total{'],
  ...['etcd_server_apply_duration_seconds_bucket{', 'etcd_server_range_duration_seconds_bucket{'],
  ...['etcd_mvcc_db_total_size_in_bytes', 'etcd_mvcc_db_total_size_in_use_in_bytes'],
  ...['etcd_mvcc_put_total', 'etcd_mvcc_delete_total', 'etcd_mvcc_txn_total'],
  ...['etcd_mvcc_range_total', 'etcd_debugging_mvcc_keys_total'],
  ...['etcd_debugging_mvcc_db_total_size_in_bytes', 'etcd_debugging_mvcc_slow_watcher_total'],
  ...['etcd_debugging_mvcc_watcher_total', 'etcd_debugging_mvcc_watch_stream_total'],
  ...['etcd_debugging_mvcc_events_total', 'etcd_debugging_mvcc_pending_events_total'],
  ...['etcd_debugging_mvcc_current_revision', 'etcd_debugging_mvcc_compact_revision'],
  ...['etcd_debugging_lease_granted_total', 'etcd_debugging_server_lease_expired_total'],
  ...['etcd_disk_wal_fsync_duration_seconds_bucket{le="8.192"}'],
  ...['etcd_disk_wal_fsync_duration_seconds_sum', 'etcd_disk_wal_fsync_duration_seconds_count'],
  ...['etcd_disk_backend_commit_duration_seconds_bucket{le="0.001"}'],
  ...['etcd_disk_backend_snapshot_duration_seconds_bucket{le="0.01"}'],
  ...['etcd_disk_backend_defrag_duration_seconds_bucket{le="0.1"}'],
  ...['etcd_network_client_grpc_received_bytes_total', 'etcd_network_known_peers'],
  ...['etcd_network_client_grpc_sent_bytes_total', 'etcd_network_peer_sent_bytes_total'],
  ...['etcd_network_peer_received_bytes_total', 'etcd_network_peer_sent_failures_total'],
  ...['etcd_network_peer_round_trip_time_seconds_bucket{'],
  `grpc_server_started_total{${RANGE}}`,
  'grpc_server_started_total{grpc_method="Watch",grpc_service="etcdserverpb.Watch",',
  `grpc_server_handled_total{grpc_code="OK",${RANGE}}`,
  `grpc_server_handled_total{grpc_code="InvalidArgument",${RANGE}}`,
  `grpc_server_handled_total{grpc_code="Unavailable",${RANGE}} 0`,
  ...['etcd_debugging_mvcc_put_total', 'etcd_debugging_mvcc_range_total'],
  `grpc_server_handling_seconds_bucket{${RANGE},le="0.005"}`,
  ...['grpc_server_msg_received_total{', 'grpc_server_msg_sent_total{'],
  ...['process_resident_memory_bytes', 'process_cpu_seconds_total', 'process_start_time_seconds'],
  ...['process_open_fds', 'process_max_fds', 'megaplane_store_durability{'],
  ...['go_goroutines', 'go_threads', 'go_info{', 'go_gc_duration_seconds{quantile="0.75"}'],
  ...['go_gc_duration_seconds_count', 'go_memstats_alloc_bytes', 'go_memstats_sys_bytes'],
  ...['go_memstats_heap_inuse_bytes', 'promhttp_metric_handler_requests_total{code="200"}'],
  ...['promhttp_metric_handler_requests_in_flight', 'etcd_server_feature_enabled{name="Lease'],
];

test('metrics have every name that the stock alerts and dashboards query', async () => {
  const peer = new Peer(server.addresses[0]?.port ?? 0);
  await peer.call('KV/Range', [[1, 'a']]);
  await peer.call('KV/Range', []);
  peer.close();
  for (const url of [base, probes]) {
    const text = await (await fetch(`${url}/metrics`)).text();
    const missing = QUERIED.filter((name) => !text.includes(`\n${name}`));
    assert.deepEqual(missing, []);
    // Every line is a comment or a series, every family is opened once.
    const types = text.split('\n').filter((line) => line.startsWith('# TYPE'));
    assert.equal(new Set(types).size, types.length);
    for (const line of text.trim().split('\n')) {
      assert.match(line, /^(# (HELP|TYPE) \w+ .+|\w+(\{.*\})? [\d.e+-]+)$/);
    }
  }
});

test('metrics tell what compactions, hashes, leases and late answers did', async () => {
  const peer = new Peer(server.addresses[0]?.port ?? 0);
  const read = async (): Promise<(name: string) => number> => {
    const text = await (await fetch(`${base}/metrics`)).text();
    return (name) =>
      Number(
        text
          .split('\n')
          .find((line) => line.startsWith(`${name} `))
          ?.split(' ')[1],
      );
  };
  const before = await read();
  await peer.call('KV/Put', [
    [1, 'measured'],
    [2, 'x'.repeat(92)],
  ]);
  await peer.call('KV/Put', [
    [1, 'measured'],
    [2, 'y'.repeat(92)],
  ]);
  await peer.call('Lease/LeaseGrant', [[1, 100]]);
  await peer.call('KV/Compact', [
    [1, opened.store.appliedRevision],
    [2, 1],
  ]);
  await peer.call('Maintenance/HashKV', []);
  await peer.call('Maintenance/Defragment', []);
  assert.match(
    await peer.show('Auth/Authenticate', [
      [1, 'a'],
      [2, 'b'],
    ]),
    /^9 .*not enabled/,
  );
  await peer.call('KV/Put', [
    [1, 'measured'],
    [2, 'z'.repeat(200_000)],
  ]);
  await peer.call('KV/Range', [[1, 'measured']]);
  peer.close();
  // The slice that ends a compaction tells of it, and comes with the next tick.
  for (let after = await read(); ; after = await read()) {
    const grown = (name: string): number => after(name) - before(name);
    const compactions = 'etcd_debugging_mvcc_db_compaction';
    if (grown(`${compactions}_total_duration_milliseconds_count`) === 0) continue;
    const labels = 'grpc_method="Authenticate",grpc_service="etcdserverpb.Auth",grpc_type="unary"';
    assert.equal(grown('etcd_debugging_mvcc_total_put_size_in_bytes'), 200 + 200_008);
    assert.equal(grown('etcd_debugging_lease_ttl_total_sum'), 100);
    assert.equal(grown('etcd_mvcc_hash_rev_duration_seconds_count'), 1);
    assert.equal(grown('etcd_disk_backend_defrag_duration_seconds_count'), 1);
    assert(grown(`${compactions}_keys_total`) >= 1);
    assert(Math.abs(after(`${compactions}_last`) - Date.now() / 1000) < 60);
    assert.equal(grown(`grpc_server_handled_total{grpc_code="OK",${labels}}`), 0);
    assert.equal(grown(`grpc_server_handled_total{grpc_code="FailedPrecondition",${labels}}`), 1);
    assert.equal(grown(`grpc_server_handling_seconds_count{${labels}}`), 1);
    assert(grown('etcd_network_client_grpc_sent_bytes_total') > 200_000, 'large answers count');
    return;
  }
});

test('every change and read is counted, and in some bucket', async () => {
  const peer = new Peer(server.addresses[0]?.port ?? 0);
  const count = async (series: string): Promise<number> => {
    const text = await (await fetch(`${base}/metrics`)).text();
    return Number(text.split(`\netcd_server_${series} `)[1]?.split('\n')[0] ?? 0);
  };
  const [puts, failed, ranges] = [
    'apply_duration_seconds_count{version="v3",op="Put",success="true"}',
    'apply_duration_seconds_count{version="v3",op="Put",success="false"}',
    'range_duration_seconds_bucket{success="true",le="52.4288"}',
  ];
  const before = [await count(puts), await count(failed), await count(ranges)];
  for (let i = 0; i < 13; i++) {
    await peer.call('KV/Put', [
      [1, 'counted'],
      [3, i === 5 ? 77 : 0],
    ]);
    await peer.call('KV/Range', [[1, 'counted']]);
    if (i === 2) assert.equal(await count(puts), (before[0] ?? 0) + 3);
  }
  const compactions = 'apply_duration_seconds_count{version="v3",op="Compaction",success=';
  const done = await count(`${compactions}"true"}`);
  const refused = await count(`${compactions}"false"}`);
  const now = opened.store.appliedRevision;
  for (const revision of [now - 1, now - 1, now]) await peer.call('KV/Compact', [[1, revision]]);
  assert.equal(await count(`${compactions}"true"}`), done + 2);
  assert.equal(await count(`${compactions}"false"}`), refused + 1);
  peer.close();
  const after = [await count(puts), await count(failed), await count(ranges)];
  assert.deepEqual(
    after.map((value, index) => value - (before[index] ?? 0)),
    [12, 1, 13],
  );
});

test('metrics are compressed for those who ask for it', async () => {
  const ask = (encoding: string): Promise<{ told: string; body: Buffer }> =>
    new Promise((resolve, reject) => {
      const asked = request(`${base}/metrics`, { headers: { 'accept-encoding': encoding } });
      asked.on('response', (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        const told = response.headers['content-encoding'] ?? '';
        response.on('end', () => resolve({ told, body: Buffer.concat(chunks) }));
      });
      asked.on('error', reject).end();
    });
  for (const encoding of ['gzip', 'deflate, gzip;q=0.5', 'gzip, zstd', 'identity,gzip ; q=1']) {
    const { told, body } = await ask(encoding);
    assert.equal(told, 'gzip', encoding);
    assert.match(gunzipSync(body).toString(), /^# HELP etcd_cluster_version .*\n# TYPE/);
  }
  for (const encoding of ['', 'identity', 'x-gzip', 'gzip;q=0', 'gzip; q=0.0, br', '*']) {
    const { told, body } = await ask(encoding);
    assert.equal(told, '', encoding);
    assert.match(body.toString(), /^# HELP etcd_cluster_version /);
  }
});

test('HTTP may have ports and hosts of its own, and the gateway may be off', async () => {
  const apart = await serveEtcd(opened, {
    listen: [{ port: 0 }],
    listenHttp: [{ port: 0 }],
    listenMetrics: [{ port: 0 }],
    hosts: ['127.0.0.1'],
    hasGateway: false,
  });
  const [grpc, http] = [apart.addresses, apart.httpAddresses].map((all) => all[0]?.port ?? 0);
  try {
    const peer = new Peer(grpc ?? 0);
    assert.match(await peer.show('KV/Range', [[1, 'k']]), /^revision/);
    peer.close();
    assert.match(await get(`http://127.0.0.1:${grpc}/health`), /^404 HTTP is served on --listen-/);
    assert.match(await get(`http://127.0.0.1:${http}/version`), /^200 \{"etcdserver"/);
    assert.match(await get(`http://localhost:${http}/version`), /^421 the host asked for is not/);
    const probes = apart.metricsAddresses[0]?.port;
    assert.match(await get(`http://localhost:${probes}/readyz`), /^200 ok/);
    assert.equal(
      await get(`http://127.0.0.1:${http}/v3/kv/range`, 'POST'),
      '404 404 page not found\n',
    );
  } finally {
    await apart.close();
  }
});
