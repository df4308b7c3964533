import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { createApiServer } from '../server/assembly.ts';
import { ConnectionModel, ExchangeModel } from '../testing/exchange-model.sim.ts';
import { StorageModel } from '../storage/storage-model.sim.ts';
import { Audit } from './audit.ts';
import { readPolicy } from './audit-policy.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';

type Event = Readonly<Record<string, unknown>> & { readonly stage: string };

/** A field of an event that is an object. */
function part(event: Event | undefined, name: string): Readonly<Record<string, unknown>> {
  return (event?.[name] ?? {}) as Readonly<Record<string, unknown>>;
}

/** A server whose policy has the rules; `ask` gives what its log has of a request. */
function audited(...rules: readonly JsonObject[]) {
  const lines: string[] = [];
  const clock = { tookMs: 500, steps: 0 };
  const policy = readPolicy({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [...rules] });
  const edge = {
    nowMs: () => 1_000_000,
    below: () => 0,
    uuid: () => '00000000-0000-4000-8000-000000000001',
    defer: (work: () => void) => work(),
    deferPiece: (work: () => void) => work(),
  };
  const known = { user: 'u', uid: '', groups: ['g'], extra: {}, isMaster: false };
  const stale = { ...known, notes: { annotations: {}, warning: '', staleFromMs: 900_000 } };
  const auditor = new Audit(
    policy,
    {
      take: (events, told) => {
        lines.push(...events.map(({ text }) => text));
        told(true);
      },
      close: () => Promise.resolve(),
    },
    () => 1_000_000 + clock.tookMs,
    () => clock.steps++,
  );
  const api = createApiServer({
    storage: new StorageModel(),
    edge,
    address: '',
    tracking: { auditor },
    clockMs: null,
    tokenReaders: () => [(token) => (token === 't' ? known : token === 'old' ? stale : null)],
    authorizers: [({ user }) => ({ allowed: user !== 'mallory', reason: '' })],
  });
  const ask = (
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Event[] => {
    lines.length = 0;
    const all = { authorization: 'Bearer t', ...headers };
    api.handle(new ExchangeModel(method, path, body, all, new ConnectionModel(false)));
    return lines.map((line) => JSON.parse(line) as Event);
  };
  ask('POST', '/api/v1/namespaces', { metadata: { name: 'default' } });
  return { ask, auditor, clock };
}

const ALL = { level: 'RequestResponse' };

test('an event shows what was sent as the server reads it, whichever way it came', () => {
  const { ask } = audited(ALL);
  const [, made] = ask('POST', MAPS, { metadata: { generateName: 'g-' }, data: { a: 'b' } });
  assert.deepEqual(made?.['requestObject'], {
    kind: 'ConfigMap',
    apiVersion: 'v1',
    metadata: { generateName: 'g-' },
    data: { a: 'b' },
  });
  const account = '/api/v1/namespaces/default/serviceaccounts';
  const yaml = { 'content-type': 'application/yaml' };
  const [, named] = ask('POST', account, 'metadata:\n  name: x\n', yaml);
  assert.deepEqual(named?.['requestObject'], {
    kind: 'ServiceAccount',
    apiVersion: 'v1',
    metadata: { name: 'x' },
  });
  assert.deepEqual(named?.['objectRef'], {
    resource: 'serviceaccounts',
    namespace: 'default',
    name: 'x',
    apiVersion: 'v1',
  });
  const service = { metadata: { name: 's' }, spec: { type: 'ExternalName', externalName: 'x.y' } };
  const [, defaulted] = ask('POST', '/api/v1/namespaces/default/services', service);
  const { spec, status } = part(defaulted, 'requestObject');
  assert.deepEqual(status, { loadBalancer: {} });
  assert.equal((spec as JsonObject)['sessionAffinity'], 'None');
});

test('patches are shown as they came, options of deletions in their own version', () => {
  const { ask } = audited(ALL);
  ask('POST', MAPS, { metadata: { name: 'a' } });
  const patch = [{ op: 'add', path: '/data', value: { k: 'v' } }];
  const json = { 'content-type': 'application/json-patch+json' };
  const [, patched] = ask('PATCH', `${MAPS}/a`, patch, json);
  assert.deepEqual(patched?.['requestObject'], patch);
  const apply = { 'content-type': 'application/apply-patch+yaml' };
  const text = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n';
  const [, applied] = ask('PATCH', `${MAPS}/a?fieldManager=m`, text, apply);
  assert.deepEqual(applied?.['requestObject'], {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'a' },
  });
  const stale = { metadata: { name: 'a', resourceVersion: '1' } };
  const [, refused] = ask('PUT', `${MAPS}/a`, stale);
  assert.equal(part(refused, 'objectRef')['resourceVersion'], '1');
  const options = { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 0 };
  const [, deleted] = ask('DELETE', `${MAPS}/a`, options);
  assert.deepEqual(deleted?.['requestObject'], {
    kind: 'DeleteOptions',
    apiVersion: 'meta.k8s.io/__internal',
    gracePeriodSeconds: 0,
  });
  assert.deepEqual(deleted?.['responseStatus'], {
    metadata: {},
    status: 'Success',
    details: { name: 'a', kind: 'configmaps', uid: '00000000-0000-4000-8000-000000000001' },
    code: 200,
  });
});

test('lists and protobuf answers are shown, without owners where the rule says so', () => {
  const { ask } = audited({ ...ALL, omitManagedFields: true });
  ask('POST', MAPS, { metadata: { name: 'a' } });
  const shown = (accept: string, path: string): Readonly<Record<string, unknown>> => {
    const [, event] = ask('GET', path, undefined, { accept });
    return part(event, 'responseObject');
  };
  const list = shown('application/json', MAPS);
  assert.equal(list['kind'], 'ConfigMapList');
  const { items } = list as { items: { metadata: object }[] };
  const fields = Object.keys(items[0]?.metadata ?? {})
    .sort()
    .join();
  assert.equal(fields, 'creationTimestamp,name,namespace,resourceVersion,uid');
  const one = shown('application/vnd.kubernetes.protobuf', `${MAPS}/a`);
  assert.deepEqual(
    [one['kind'], 'managedFields' in (one['metadata'] as object)],
    ['ConfigMap', false],
  );
  const many = shown('application/vnd.kubernetes.protobuf', MAPS);
  assert.equal((many['items'] as object[]).length, 1);
});

test('an agent’s name is UTF-8', () => {
  const { ask } = audited({ level: 'Metadata' });
  const agent = Buffer.from('café/1.0').toString('latin1');
  const [event] = ask('GET', MAPS, undefined, { 'user-agent': agent });
  assert.equal(event?.['userAgent'], 'café/1.0');
});

test('watches that are refused begin and end, and who is not known is told once', () => {
  const { ask } = audited(ALL);
  const stages = (events: readonly Event[]): string[] => events.map(({ stage }) => stage);
  const bad = ask('GET', `${MAPS}?watch=true&resourceVersion=abc`);
  assert.deepEqual(stages(bad), ['RequestReceived', 'ResponseStarted', 'ResponseComplete']);
  const unknown = ask('GET', MAPS, undefined, { authorization: 'Bearer none' });
  assert.deepEqual(stages(unknown), ['ResponseStarted']);
  assert.deepEqual(unknown[0]?.['user'], {});
  assert.equal(part(unknown[0], 'responseStatus')['code'], 401);
});

test('sources, long agents, selected names and groups of any name are upstream’s', () => {
  const { ask, auditor } = audited(
    { level: 'Metadata', resources: [{ group: '*', resources: ['*'], resourceNames: ['a'] }] },
    { level: 'None' },
  );
  const headers = {
    'x-forwarded-for': '1.2.3.4, nobody',
    'x-real-ip': '9.9.9.9',
    'user-agent': 'a'.repeat(1100),
  };
  const [event] = ask('GET', `${MAPS}?fieldSelector=metadata.name%3Da`, undefined, headers);
  assert.deepEqual(event?.['sourceIPs'], ['1.2.3.4', '9.9.9.9', '127.0.0.1']);
  assert.equal(event?.['userAgent'], `${'a'.repeat(1024)}...TRUNCATED`);
  assert.equal(part(event, 'objectRef')['name'], 'a');
  assert.equal(event?.['stageTimestamp'], event?.['requestReceivedTimestamp']);
  assert.deepEqual(ask('GET', MAPS), []);
  assert.deepEqual([auditor.levels.get('Metadata'), auditor.levels.get('None')], [1, 2]);
});

test('what the client could not take is told by its code alone, and empty lists have items', () => {
  const { ask } = audited(ALL);
  const told = (accept: string, path: string): Event | undefined =>
    ask('GET', path, undefined, { accept }).at(-1);
  for (const accept of ['text/html', 'application/json;as=Table;v=v1;g=meta.k8s.io']) {
    const event = told(accept, `${MAPS}/none`);
    const code = accept === 'text/html' ? 406 : 404;
    assert.deepEqual(event?.['responseStatus'], { metadata: {}, code });
    assert.equal(event?.['responseObject'], undefined);
  }
  const empty = told('application/vnd.kubernetes.protobuf', MAPS);
  assert.deepEqual(part(empty, 'responseObject')['items'], []);
});

test('where the time of a request went is told where it took more than half a second', () => {
  const { ask, clock } = audited({ level: 'Metadata' });
  const parts = (event: Event | undefined): string[] =>
    Object.entries(part(event, 'annotations'))
      .filter(([name]) => name.startsWith('apiserver.latency.k8s.io/'))
      .map(([name, value]) => `${name.split('/')[1]} ${String(value)}`)
      .sort();
  const write = (name: string): Event | undefined =>
    ask('POST', MAPS, { metadata: { name } }).at(-1);
  assert.deepEqual(parts(write('a')), []);
  clock.tookMs = 501;
  assert.deepEqual(parts(write('b')), [
    'authentication 1ms',
    'authorization 1ms',
    'etcd 1ms',
    'total 501ms',
  ]);
  const [, acting] = ask('GET', `${MAPS}/a`, undefined, { 'impersonate-user': 'joe' });
  assert.ok(parts(acting).some((text) => text.startsWith('impersonation ')));
  assert.deepEqual(parts(ask('GET', `${MAPS}?watch=true`).at(-1)), []);
});

test('a token that should have been renewed is told of', () => {
  const { ask } = audited({ level: 'Metadata' });
  const [, event] = ask('GET', MAPS, undefined, { authorization: 'Bearer old' });
  const told = 'subject: u, seconds after warning threshold: 100';
  assert.equal(part(event, 'annotations')['authentication.k8s.io/stale-token'], told);
});
