import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type OpenStore, openStore } from '@megaplane/store/open';
import { has, startEtcd } from '../testing/peer.sim.ts';
import { type EtcdServer, serveEtcd } from '../server/run-store.ts';

const SKIP =
  has('etcd') && has('etcdctl') ? false : 'needs etcd: apt-get install etcd-server etcd-client';

let opened: OpenStore;
let server: EtcdServer;
let ours = '';

before(async () => {
  opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  server = await serveEtcd(opened, { listen: [{ port: 0 }], origins: ['https://shown.example'] });
  ours = `http://127.0.0.1:${server.addresses[0]?.port}`;
});

after(async () => {
  await server.close();
  await opened.close();
});

const b64 = (text: string): string => Buffer.from(text).toString('base64');
const FOO = b64('foo');

/** Requests in order; what they answer depends on those before. */
const SCRIPT: readonly (readonly [string, unknown])[] = [
  ['kv/put', { key: FOO, value: b64('bar') }],
  ['kv/put', { key: FOO, value: b64('baz'), prevKv: true }],
  ['kv/range', { key: FOO }],
  ['kv/range', { key: FOO, rangeEnd: b64('fop'), limit: 1, sort_order: 2 }],
  ['kv/range', { key: FOO, range_end: b64('fop'), limit: '1', sort_order: 'DESCEND' }],
  ['kv/range', { key: FOO, count_only: true, serializable: true }],
  ['kv/range', { key: FOO, revision: '2' }],
  ['kv/range', { key: 'AA==', range_end: 'AA==', keys_only: true }],
  ['kv/range', { key: FOO, revision: '999' }],
  ['kv/range', { key: null, limit: null }],
  ['kv/range', {}],
  ['kv/range', ''],
  ['kv/range', '  \n'],
  ['kv/range', { unknown: 1 }],
  ['kv/range', { key: 1 }],
  ['kv/range', { key: true }],
  ['kv/range', { key: [] }],
  ['kv/range', { key: [102, 111, 111] }],
  ['kv/range', { key: [256] }],
  ['kv/range', { key: 'AA' }],
  ['kv/range', { key: 'A' }],
  ['kv/range', { key: 'Zm9v-_8=' }],
  ['kv/range', { key: 'Zm9=v' }],
  ['kv/range', { key: 'Zm=v' }],
  ['kv/range', { key: 'Zm==v' }],
  ['kv/range', { key: 'Zm9v\nZm9v' }],
  ['kv/range', { key: '\n1' }],
  ['kv/range', { key: FOO, limit: 'é' }],
  ['kv/range', `{"key":\u00a0"${FOO}"}`],
  ['kv/range', { key: [null] }],
  ['kv/range', { key: ['a'] }],
  ['kv/range', { key: 7, limit: 'abc' }],
  ['kv/range', { limit: 'abc', key: 7 }],
  ['kv/range', { range_end: FOO, rangeEnd: 'AA==', key: 'AA==', limit: '1' }],
  ['kv/range', { key: FOO, limit: ' 2 ' }],
  ['kv/range', { key: FOO, limit: 'null' }],
  ['kv/range', { key: FOO, limit: '[1]' }],
  ['kv/range', { key: FOO, limit: '010' }],
  ['kv/range', { key: FOO, limit: '\0' }],
  ['kv/range', { key: FOO, limit: '{' }],
  ['kv/range', { key: FOO, sort_order: [1] }],
  ['kv/range', { key: FOO, sort_order: 1e20 }],
  ['kv/range', { key: FOO, limit: 'abc' }],
  ['kv/range', { key: FOO, limit: '' }],
  ['kv/range', { key: FOO, limit: 1.5 }],
  ['kv/range', { key: FOO, limit: true }],
  ['kv/range', { key: FOO, limit: {} }],
  ['kv/range', `{"key":"${FOO}","limit":9223372036854775808}`],
  ['kv/range', `{"key":"${FOO}","limit":9223372036854775807}`],
  ['kv/range', `{"key":"${FOO}","limit":1e2}`],
  ['kv/range', { key: FOO, sort_order: 'FOO' }],
  ['kv/range', { key: FOO, serializable: 'true' }],
  ['kv/range', { key: FOO, serializable: 1 }],
  ['kv/range', 'xx'],
  ['kv/range', '"text"'],
  ['kv/range', '[1]'],
  ['kv/range', '12'],
  ['kv/range', 'null'],
  ['kv/range', '{'],
  ['kv/range', '{"key"'],
  ['kv/range', '{"key" 1}'],
  ['kv/range', '{"key":1 2}'],
  ['kv/range', '{1:2}'],
  ['kv/range', '{"key":tru}'],
  ['kv/range', '{"key":[1 2]}'],
  ['kv/range', String.raw`{"key":"\x"}`],
  ['kv/range', String.raw`{"key":"\u12g4"}`],
  ['kv/range', '{"key":"a\nb"}'],
  ['kv/range', `{"key":"${FOO}"} trailing`],
  ['lease/grant', { TTL: '600', ID: '7587863094' }],
  ['lease/grant', '{"TTL":600,"ID":7587863094123456789}'],
  ['lease/grant', { TTL: 600, ID: '7587863094' }],
  ['lease/grant', { TTL: '90000000000', ID: 3 }],
  ['kv/put', { key: b64('l'), value: '', lease: '7587863094' }],
  ['kv/put', { key: b64('l'), value: '', lease: '5' }],
  ['lease/timetolive', { ID: '12', keys: true }],
  ['lease/leases', {}],
  ['kv/lease/leases', {}],
  ['lease/keepalive', { ID: '7587863094' }],
  ['lease/keepalive', '{"ID":"7587863094"}{"ID":"8"}'],
  ['lease/keepalive', { ID: true }],
  ['lease/keepalive', '{"'],
  ['lease/keepalive', ''],
  ['lease/keepalive', '{"ID":"7587863094"} x'],
  ['lease/revoke', { ID: '9' }],
  ['lease/revoke', { ID: '7587863094' }],
  [
    'kv/txn',
    {
      compare: [{ target: 'VERSION', key: FOO, version: '2' }],
      success: [
        { requestRange: { key: FOO } },
        { request_delete_range: { key: FOO, prev_kv: true } },
      ],
      failure: [],
    },
  ],
  [
    'kv/txn',
    {
      compare: [{ result: 'EQUAL', target: 'MOD', key: FOO, mod_revision: '0' }],
      success: [{ request_put: { key: FOO } }, { request_txn: { success: [] } }],
      failure: [{ request_txn: {} }],
    },
  ],
  ['kv/txn', { success: [{ request_range: { key: FOO, revision: -1 } }] }],
  ['kv/txn', { success: [{ request_range: { key: FOO, revision: -2 } }] }],
  ['kv/txn', { success: [{}] }],
  ['kv/txn', { success: {} }],
  ['kv/txn', { success: [{ request_put: { key: FOO } }, { request_put: { key: FOO } }] }],
  ['kv/deleterange', { key: FOO, prev_kv: true }],
  ['kv/compaction', { revision: '3' }],
  ['kv/compaction', { revision: '3' }],
  ['kv/range', { key: FOO, revision: 2 }],
  ['kv/txn', { success: [{ request_range: { key: FOO, revision: -1 } }] }],
  ['lease/grant', { TTL: '600', ID: '119' }],
  ['lock/lock', { name: FOO, lease: '119' }],
  ['lock/lock', { name: FOO, lease: 5 }],
  ['lock/unlock', { key: b64('foo/77') }],
  ['lock/unlock', {}],
  ['election/campaign', { name: FOO, lease: '119', value: b64('me') }],
  ['election/leader', { name: FOO }],
  ['election/leader', { name: b64('none') }],
  ['election/proclaim', { leader: { name: FOO, key: b64('foo/77'), rev: 99, lease: '119' } }],
  ['election/proclaim', {}],
  ['election/resign', { leader: { name: FOO, key: b64('foo/77'), rev: '99', lease: '119' } }],
  ['election/nothing', {}],
  ['auth/enable', {}],
  ['auth/user/list', {}],
  ['auth/role/list', {}],
  ['auth/authenticate', { name: 'a', password: 'b' }],
  ['nowhere', {}],
  ['kv/nowhere', {}],
];

async function post(base: string, path: string, body: unknown): Promise<string> {
  const response = await fetch(`${base}/v3/${path}`, {
    method: 'POST',
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await response.text();
  return `${response.status} ${text.replaceAll(/"(cluster_id|member_id|raft_term)":"\d+",?/g, '')}`;
}

/** Status and body of a request with a `Grpc-Timeout`, ids left out. */
async function limited(base: string, path: string, body: unknown, limit: string): Promise<string> {
  const headers = { 'grpc-timeout': limit };
  const init = { method: 'POST', headers, body: JSON.stringify(body) };
  const answer = await fetch(`${base}/v3/${path}`, init);
  return `${answer.status} ${await answer.text()}`.replace(
    /"(cluster_id|member_id|raft_term)":"\d+",?/g,
    '',
  );
}

/** etcd's stream and its gateway both see the time go by; the gateway says it by another code. */
function timely(answer: string): string {
  return answer.replace(
    '"grpc_code":2,"http_code":500,"message":"context deadline exceeded",' +
      '"http_status":"Internal Server Error"',
    '"grpc_code":4,"http_code":504,"message":"context deadline exceeded",' +
      '"http_status":"Gateway Timeout"',
  );
}

const LIMITED: readonly (readonly [string, unknown, string])[] = [
  ...['1X', 'S', '1.5S', '-1S', '9223372036854775808n', '9223372036854775807H'].map(
    (limit) => ['kv/range', { key: FOO }, limit] as const,
  ),
  ...['1S', '0S', '+5M', '99999999H'].map((limit) => ['kv/range', { key: FOO }, limit] as const),
  ['kv/range', 'junk', '1X'],
  ['watch', { create_request: { key: FOO } }, '60m'],
  ['watch', { create_request: { key: FOO } }, '1x'],
];

test('the gateway answers as that of a real etcd does', { skip: SKIP }, async () => {
  const etcd = await startEtcd();
  try {
    const differences: string[] = [];
    for (const [path, body] of SCRIPT) {
      const theirs = await post(`http://127.0.0.1:${etcd.port}`, path, body);
      const found = await post(ours, path, body);
      const [a, b] = [found, theirs].map((text) => text.replaceAll(',}', '}'));
      if (a !== b)
        differences.push(`${path} ${JSON.stringify(body)}\n  ours   ${a}\n  theirs ${b}`);
    }
    for (const [path, body, limit] of LIMITED) {
      const a = await limited(ours, path, body, limit);
      const b = timely(await limited(`http://127.0.0.1:${etcd.port}`, path, body, limit));
      if (a !== b) differences.push(`${path} within ${limit}\n  ours   ${a}\n  theirs ${b}`);
    }
    assert.deepEqual(differences, []);
  } finally {
    await etcd.stop();
  }
});

/** Lines of a stream as they come. */
async function* lines(response: Response): AsyncGenerator<string> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
      yield text.slice(0, end);
      text = text.slice(end + 1);
    }
  }
}

test('a watch through the gateway tells one result a line, from history on', async () => {
  const from = opened.store.appliedRevision + 1;
  await post(ours, 'kv/put', { key: b64('w'), value: b64('1') });
  const request = { create_request: { key: b64('w'), start_revision: `${from}`, prev_kv: true } };
  const controller = new AbortController();
  const response = await fetch(`${ours}/v3/watch`, {
    method: 'POST',
    body: JSON.stringify(request),
    signal: controller.signal,
  });
  assert.equal(response.headers.get('content-type'), 'application/json');
  const read = lines(response);
  const next = async (): Promise<Record<string, unknown>> => {
    const { value } = await read.next();
    return (JSON.parse(String(value)) as { result: Record<string, unknown> }).result;
  };
  assert.equal((await next())['created'], true);
  const past = await next();
  assert.equal(JSON.stringify(past['events']).includes(`"value":"${b64('1')}"`), true);
  await post(ours, 'kv/deleterange', { key: b64('w') });
  const live = JSON.stringify((await next())['events']);
  assert.match(live, /^\[\{"type":"DELETE","kv":\{"key":"dw==","mod_revision":"\d+"\},"prev_kv"/);
  controller.abort();
  for (let i = 0; opened.store.hub.size > 0; i++) {
    assert(i < 3000, 'the watch was not given up');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
});

test('a page of another origin is refused, one of a listed origin is told so', async () => {
  const ask = (origin: string, method: string): Promise<Response> =>
    fetch(`${ours}/v3/kv/range`, { method, headers: { origin } });
  assert.equal((await ask('https://evil.example', 'POST')).status, 403);
  const allowed = await ask('https://shown.example', 'OPTIONS');
  assert.equal(allowed.status, 200);
  assert.equal(allowed.headers.get('access-control-allow-origin'), 'https://shown.example');
});

test('every path tells listed pages that they may read, and answers OPTIONS', async () => {
  const origin = 'https://shown.example';
  for (const path of ['version', 'health', 'readyz', 'metrics', 'nothing', 'v3/kv/nothing', 'v3']) {
    const init = { headers: { origin }, redirect: 'manual' } as const;
    for (const method of ['GET', 'OPTIONS']) {
      const { headers, status } = await fetch(`${ours}/${path}`, { ...init, method });
      assert.equal(headers.get('access-control-allow-origin'), origin, `${method} ${path}`);
      if (method === 'OPTIONS') assert.equal(status, 200);
    }
  }
  const { headers } = await fetch(`${ours}/version`, { headers: { origin: 'https://other' } });
  assert.equal(headers.get('access-control-allow-origin'), null);
});

test('Grpc-Timeout ends waiting calls and refuses what is none', async () => {
  const watched = await limited(ours, 'watch', { create_request: { key: FOO } }, '60m');
  assert.match(
    watched,
    /"created":true\}\}\n\{"error":\{"grpc_code":4,"http_code":504,"message":"con/,
  );
  const refused = await limited(ours, 'kv/range', { key: FOO }, '1X');
  assert.match(refused, /^400 \{"error":"invalid grpc-timeout: 1X",.*"code":3\}$/);
  assert.equal(opened.store.hub.size, 0);
});

test('what the gateway has no method for, or too much of, is refused', async () => {
  assert.equal((await fetch(`${ours}/v3/kv/range`)).status, 405);
  const large = await post(ours, 'kv/put', { key: FOO, value: 'A'.repeat(3 * 1024 * 1024) });
  assert.match(large, /^429 .*grpc: received message larger than max \(\d+ vs\. 2097152\)/);
  const late = await post(ours, 'watch', '{"create_request":');
  assert.equal(late, '500 {"error":"unexpected EOF","message":"unexpected EOF","code":2}');
});
