// shell
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { request, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { connect } from 'node:tls';
import { createApiServer } from './assembly.ts';
import { ConnectionModel, ExchangeModel } from '../testing/exchange-model.sim.ts';
import { issue } from '../testing/kubelet.sim.ts';
import { runApiserver } from './run.ts';
import { StorageModel } from '../storage/storage-model.sim.ts';
import { Audit } from '../audit/audit.ts';
import { readPolicy } from '../audit/audit-policy.ts';
import { readLimits } from './limits.ts';
import type { TrackerOptions } from './request-tracker.ts';

const dir = mkdtempSync(join(tmpdir(), 'megaplane-operations-'));
after(() => rmSync(dir, { recursive: true, force: true }));
const MAPS = '/api/v1/namespaces/default/configmaps';
const MAP = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { k: 'v' } };

/** A server whose consistent reads wait until `answer` is called. */
function server(tracking: TrackerOptions, nowMs: () => number = () => 1_000_000) {
  const storage = new StorageModel();
  const waiting: ((fault: string | null) => void)[] = [];
  storage.refresh = (_key, done) => void waiting.push(done);
  const edge = {
    nowMs,
    below: () => 0,
    uuid: () => '00000000-0000-4000-8000-000000000001',
    defer: (work: () => void) => work(),
    deferPiece: (work: () => void) => work(),
  };
  const tokens = new Map([
    ['t', { user: 'u', uid: '', groups: ['g'], extra: {}, isMaster: false }],
  ]);
  const api = createApiServer({
    storage,
    edge,
    address: '',
    tracking,
    // the limits alone
    clockMs: null,
    tokenReaders: () => [(token) => tokens.get(token) ?? null],
    authorizers: [() => ({ allowed: true, reason: 'test' })],
  });
  const ask = (
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
    connection = new ConnectionModel(false),
  ): ExchangeModel => {
    const all = { authorization: 'Bearer t', ...headers };
    const exchange = new ExchangeModel(method, path, body, all, connection);
    api.handle(exchange);
    return exchange;
  };
  ask('POST', '/api/v1/namespaces', { metadata: { name: 'default' } });
  storage.isShared = true;
  return { api, storage, ask, waiting };
}

test('requests above the limits get 429, masters and lasting requests do not', () => {
  const { api, ask, waiting } = server({ readsMax: 2, writesMax: 1 });
  const [one, two] = [ask('GET', `${MAPS}/a`), ask('GET', `${MAPS}/b`)];
  assert.deepEqual([one.status, two.status], [0, 0]);
  const third = ask('GET', `${MAPS}/c`);
  assert.equal(third.status, 429);
  assert.equal(third.text, 'Too many requests, please try again later.\n');
  assert.equal(third.answerHeader('retry-after'), '1');
  assert.equal(ask('GET', `${MAPS}?watch=true&resourceVersion=1`).status, 200);
  const master = ask('GET', `${MAPS}/c`, undefined, {}, new ConnectionModel(true));
  assert.equal(master.status, 0);
  const acting = { 'impersonate-user': 'u', 'impersonate-group': 'system:masters' };
  assert.equal(ask('GET', `${MAPS}/c`, undefined, acting).status, 0, 'as whom one acts counts');
  const fallen = ask('GET', `${MAPS}/c`, undefined, { 'impersonate-user': 'v' });
  assert.equal(fallen.status, 429);
  assert.equal(ask('POST', MAPS, MAP).status, 201);
  for (const done of waiting.splice(0)) done(null);
  assert.deepEqual([one.status, two.status], [200, 404]);
  assert.equal(ask('GET', `${MAPS}/a?resourceVersion=0`).status, 200);
  const metrics = ask('GET', '/metrics').text;
  assert.match(metrics, /apiserver_current_inflight_requests\{request_kind="mutating"\} 0\n/);
  api.tick(1000);
  const peaks = ask('GET', '/metrics').text;
  assert.match(peaks, /apiserver_current_inflight_requests\{request_kind="mutating"\} 1\n/);
  assert.match(metrics, /apiserver_dropped_requests_total 2\n/);
  assert.match(metrics, /apiserver_request_terminations_total\{code="429",.*"configmaps",.*\} 2\n/);
  assert.match(metrics, /apiserver_request_total\{code="429",.*resource="configmaps",.*\} 2\n/);
  assert.match(
    metrics,
    /request_total\{code="404",component="apiserver",dry_run="",group="",resource="configmaps",/,
  );
  assert.match(
    metrics,
    /resource="configmaps",scope="resource",subresource="",verb="GET",version="v1"\} 3\n/,
  );
});

test('a request that nobody answers ends after its time, a slow one is told about', () => {
  let nowMs = 0;
  const told: string[] = [];
  const { api, ask, waiting } = server(
    { requestMsMax: 5000, log: (text) => void told.push(text) },
    () => nowMs,
  );
  const late = ask('GET', `${MAPS}/a`, undefined, { 'user-agent': 'tests', 'audit-id': 'mine' });
  assert.equal(late.status, 0);
  nowMs = 4999;
  api.tick(nowMs);
  assert.equal(late.status, 0);
  nowMs = 5000;
  api.tick(nowMs);
  assert.equal(late.status, 504);
  assert.match(late.text, /did not complete within the allotted timeout/);
  assert.equal(late.answerHeader('audit-id'), 'mine');
  const impatient = ask('GET', `${MAPS}/a?timeout=2s`);
  nowMs = 7000;
  api.tick(nowMs);
  assert.equal(impatient.status, 504);
  told.length = 1;
  // what comes later is no answer any more
  for (const done of waiting.splice(0)) done(null);
  assert.equal(late.status, 504);
  assert.deepEqual(told, [
    `slow request: GET ${MAPS}/a by u took 5000 ms, answered 504 (audit-id mine, tests)`,
  ]);
});

const RULES = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [
    { level: 'None', nonResourceURLs: ['/metrics', '/healthz*'] },
    { level: 'None', users: ['nobody'] },
    {
      level: 'Metadata',
      resources: [{ group: '', resources: ['secrets', 'pods/log', '*/status'] }],
    },
    {
      level: 'RequestResponse',
      verbs: ['create', 'update', 'patch', 'delete'],
      omitManagedFields: true,
    },
    { level: 'Metadata', omitStages: ['ResponseStarted'], verbs: ['watch'] },
    { level: 'Request', userGroups: ['g'], namespaces: ['default'] },
  ],
};

test('the audit log holds what the policy says of each request', () => {
  const lines: string[] = [];
  const audit = new Audit(
    readPolicy(RULES),
    {
      take: (events, told) => {
        lines.push(...events.map(({ text }) => text));
        told(true);
      },
      close: () => Promise.resolve(),
    },
    () => 1_000_500,
    () => 0,
  );
  const { api, ask, storage } = server({ auditor: audit });
  storage.isShared = false;
  lines.length = 0;
  const taken = (): Record<string, unknown>[] =>
    lines.splice(0).map((line) => JSON.parse(line) as Record<string, unknown>);

  ask('GET', '/healthz/ping');
  ask('GET', '/metrics');
  assert.deepEqual(taken(), []);

  const headers = { 'user-agent': 'tests', 'x-forwarded-for': '10.0.0.7' };
  ask('POST', `${MAPS}?fieldManager=m`, MAP, headers);
  const [created] = taken();
  assert(created !== undefined);
  const { requestObject, responseObject, auditID, ...rest } = created as {
    requestObject: object;
    responseObject: { metadata: object };
    auditID: string;
  };
  assert.match(auditID, /^[0-9a-f-]{36}$/);
  assert.deepEqual(requestObject, MAP);
  assert.equal('managedFields' in responseObject.metadata, false);
  assert.equal('uid' in responseObject.metadata, true);
  assert.deepEqual(rest, {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'RequestResponse',
    stage: 'ResponseComplete',
    requestURI: `${MAPS}?fieldManager=m`,
    verb: 'create',
    user: { username: 'u', groups: ['g'] },
    sourceIPs: ['10.0.0.7', '127.0.0.1'],
    userAgent: 'tests',
    objectRef: { resource: 'configmaps', namespace: 'default', name: 'a', apiVersion: 'v1' },
    responseStatus: { metadata: {}, code: 201 },
    requestReceivedTimestamp: '1970-01-01T00:16:40.000000Z',
    stageTimestamp: '1970-01-01T00:16:40.500000Z',
    annotations: {
      'authorization.k8s.io/decision': 'allow',
      'authorization.k8s.io/reason': 'test',
    },
  });

  ask('GET', '/api/v1/namespaces/default/secrets/none');
  const [secret] = taken();
  assert.equal(secret?.['level'], 'Metadata');
  const status = secret?.['responseStatus'] as Record<string, unknown>;
  assert.deepEqual([status['code'], status['reason']], [404, 'NotFound']);
  assert.equal(secret !== undefined && 'responseObject' in secret, false);

  const watch = ask('GET', `${MAPS}?watch=true`);
  assert.deepEqual(taken(), []);
  watch.cancel();
  api.tick(1_000_500);
  assert.deepEqual(
    taken().map((event) => [event['verb'], event['stage']]),
    [['watch', 'ResponseComplete']],
  );
});

test('policies that cannot be used are refused at the field that is wrong', () => {
  const refused = (value: object, words: RegExp): void => {
    const head = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy' };
    assert.throws(() => readPolicy({ ...head, ...value }), words);
  };
  refused({ kind: 'Pod' }, /not of audit.k8s.io\/v1, Policy/);
  refused({}, /rules: at least one/);
  refused({ rules: [{ level: 'Everything' }] }, /rules\[0\]\.level: one of None/);
  refused({ rules: [{ level: 'None', omitStages: ['End'] }] }, /rules\[0\]\.omitStages: End/);
  refused({ omitStages: ['End'], rules: [{ level: 'None' }] }, /^Error: omitStages: End/);
  refused({ rules: [{ level: 'None', nonResourceURLs: ['a*b'] }] }, /a\*b is no path/);
  const both = { level: 'None', nonResourceURLs: ['/a'], namespaces: ['b'] };
  refused({ rules: [both] }, /not for both/);
  assert.throws(() => readLimits({ goawayChance: '0.5' }), /--goaway-chance: 0.5 is no number/);
  assert.throws(() => readLimits({ requestTimeout: 'x' }), /--request-timeout: x is no duration/);
});

test('a server that stops says so first, serves on, and ends its watches cleanly', async () => {
  const socketPath = join(dir, 'stop.sock');
  const service = await runApiserver({
    dataDir: join(dir, 'stop'),
    bindAddress: '127.0.0.1',
    securePort: 0,
    unixSocket: socketPath,
    shutdownDelayDuration: '1s',
    log: () => {},
  });
  const open = async (path: string): Promise<IncomingMessage> => {
    const sent = request({ socketPath, path });
    sent.end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    return answer;
  };
  const ask = async (path: string): Promise<{ readonly code: number; readonly text: string }> => {
    const answer = await open(path);
    let text = '';
    for await (const piece of answer) text += String(piece);
    return { code: answer.statusCode ?? 0, text };
  };
  assert.equal((await ask('/readyz')).code, 200);
  const watch = await open('/api/v1/namespaces?watch=true');
  watch.resume();
  const isEnded = once(watch, 'end');
  const stopped = service.stop();
  // At once: a busy machine may need most of the delay for one.
  const asked = ['/readyz', '/livez', '/api/v1/namespaces'].map(ask);
  const [ready, live, list] = await Promise.all(asked);
  assert.equal(ready?.code, 500);
  assert.match(ready.text, /\[-\]shutdown failed: reason withheld/);
  assert.deepEqual([live?.code, list?.code], [200, 200]);
  await isEnded;
  await stopped;
  await assert.rejects(ask('/readyz'), /ENOENT|ECONNREFUSED/);
});

test('a renewed certificate is shown to new connections without a restart', async () => {
  const authority = issue('authority', 'authority', null);
  const files = { cert: join(dir, 'tls.crt'), key: join(dir, 'tls.key') };
  const put = (name: string): void => {
    const { certificate, key } = issue(name, 'server', authority);
    for (const [file, text] of [
      [files.cert, certificate],
      [files.key, key],
    ] as const) {
      writeFileSync(`${file}.new`, text);
      renameSync(`${file}.new`, file);
    }
  };
  put('first');
  const service = await runApiserver({
    dataDir: join(dir, 'data'),
    bindAddress: '127.0.0.1',
    securePort: 0,
    tlsCertFile: files.cert,
    tlsPrivateKeyFile: files.key,
    tlsReloadMs: 20,
    log: () => {},
  });
  const port = Number(new URL(service.url).port);
  const shown = async (): Promise<string> => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    const name = socket.getPeerCertificate().subject.CN;
    socket.destroy();
    return String(name);
  };
  assert.equal(await shown(), 'first');
  put('second');
  for (let tries = 0; (await shown()) === 'first' && tries < 3000; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.equal(await shown(), 'second');
  await service.stop();
});
