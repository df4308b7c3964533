import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { encodeProtobuf } from '@megaplane/machinery/protobuf';
import { createApiServer } from '../server/assembly.ts';
import { ConnectionModel, ExchangeModel } from '../testing/exchange-model.sim.ts';
import { StorageModel } from '../storage/storage-model.sim.ts';

const PATH = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
const RUNS = process.env['MEGAPLANE_LONG'] === undefined ? 150 : 20_000;

interface Lease {
  kind: string;
  apiVersion: string;
  metadata: Record<string, unknown>;
  spec: Record<string, unknown>;
}

function server(shortRenewals: boolean) {
  const storage = new StorageModel();
  let seconds = 0;
  const edge = {
    nowMs: () => Date.UTC(2026, 0, 2, 3, 4, seconds),
    below: () => 0,
    uuid: () => '00000000-0000-4000-8000-000000000001',
    defer: () => undefined,
    deferPiece: () => undefined,
  };
  const api = createApiServer({ storage, edge, address: '', shortRenewals });
  const { renewals } = api.parts;
  const tryRenew = renewals?.tryRenew.bind(renewals);
  let shortened = 0;
  if (renewals !== null && tryRenew !== undefined) {
    renewals.tryRenew = (exchange, identity) => {
      const isShort = tryRenew(exchange, identity);
      if (isShort) shortened++;
      return isShort;
    };
  }
  const ask = (
    method: string,
    path: string,
    body: unknown,
    agent = 'one/1',
    headers: Readonly<Record<string, string>> = {},
    protocol: 'h2' | 'http/1.1' = 'h2',
  ): ExchangeModel => {
    seconds++;
    const fields = { 'user-agent': agent, ...headers };
    const connection = new ConnectionModel(true, null, protocol);
    const exchange = new ExchangeModel(method, path, body, fields, connection);
    if (protocol === 'http/1.1') exchange.fields = () => assert.fail('a list is made');
    api.handle(exchange);
    return exchange;
  };
  return Object.assign(ask, { shortened: () => shortened });
}

function leaseOf(metadata: Record<string, unknown>): Lease {
  return {
    kind: 'Lease',
    apiVersion: 'coordination.k8s.io/v1',
    metadata: { name: 'n', ...metadata },
    spec: { holderIdentity: 'n', leaseDurationSeconds: 40 },
  };
}

/** One edit of a lease as it was answered last; most are what kubelets do, some are not. */
const edits = fc.oneof(
  fc.record({
    kind: fc.constant('spec' as const),
    field: fc.constantFrom('renewTime', 'acquireTime', 'holderIdentity', 'leaseTransitions', 'x'),
    value: fc.constantFrom<unknown>(
      '2026-01-02T03:04:05.000001Z',
      '2026-02-29T03:04:05.000001Z',
      '2026-02-28T24:04:05.000001Z',
      '2026-01-02T03:04:05Z',
      'node "é" <&>',
      'other',
      7,
      0,
      -1,
      1.5,
      null,
    ),
  }),
  fc.record({
    kind: fc.constant('metadata' as const),
    field: fc.constantFrom(
      'labels',
      'resourceVersion',
      'uid',
      'generation',
      'creationTimestamp',
      'managedFields',
    ),
    value: fc.constantFrom<unknown>({ a: 'b' }, '1', '', 'x', 5, null, undefined, [{}]),
  }),
);
const agents = fc.constantFrom('one/1', 'one/2', 'one', 'two/1 (x)', '');

test('the short way answers and stores what the long way does', () => {
  fc.assert(
    fc.property(
      fc.boolean(),
      fc.array(fc.tuple(edits, agents), { maxLength: 6 }),
      (isPadded, list) => {
        const [short, long] = [server(true), server(false)];
        for (const ask of [short, long]) ask('POST', '/api/v1/namespaces', NAMESPACE);
        const first = short(
          'POST',
          PATH,
          leaseOf({ labels: { app: 'x' }, ownerReferences: OWNERS }),
        );
        long('POST', PATH, leaseOf({ labels: { app: 'x' }, ownerReferences: OWNERS }));
        let current = JSON.parse(first.text) as Lease;
        for (const [{ kind, field, value }, agent] of list) {
          const next = structuredClone(current);
          next[kind][field] = value;
          const body = JSON.stringify(next, null, isPadded ? 1 : 0);
          const one = short('PUT', `${PATH}/n`, body, agent);
          const other = long('PUT', `${PATH}/n`, body, agent);
          assert.equal(one.status, other.status, body);
          assert.equal(one.text, other.text, body);
          if (one.status === 200) current = JSON.parse(one.text) as Lease;
        }
      },
    ),
    { numRuns: RUNS },
  );
});

const NAMESPACE = { metadata: { name: 'default' } };
const OWNERS = [{ apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'a-b' }];

test('a client that says how long it waits takes the short way, as kubelets do', () => {
  const ask = server(true);
  ask('POST', '/api/v1/namespaces', NAMESPACE);
  let last = ask('POST', PATH, leaseOf({}));
  let renewals = 0;
  const renew = (query: string): ExchangeModel => {
    const lease = JSON.parse(last.text) as Lease;
    const spec = { ...lease.spec, renewTime: `2026-01-02T03:04:1${++renewals}.000001Z` };
    return ask('PUT', `${PATH}/n${query}`, { ...lease, spec });
  };
  last = renew('');
  assert.equal(ask.shortened(), 0, 'a field is new');
  last = renew('?timeout=10s');
  assert.deepEqual([last.status, ask.shortened()], [200, 1], last.text);
  for (const query of ['?dryRun=All', '?timeout=10s&fieldManager=x', '?timeout=x', '?']) {
    renew(query);
    assert.equal(ask.shortened(), 1, query);
  }
});

test('renewals in protobuf go the short way too, and are answered as the long way does', () => {
  const type = 'application/vnd.kubernetes.protobuf';
  const [short, long] = [true, false].map((isShort) => {
    const ask = server(isShort);
    ask('POST', '/api/v1/namespaces', NAMESPACE);
    const made = JSON.parse(ask('POST', PATH, leaseOf({})).text) as Lease;
    const renewTime = '2026-01-02T03:04:09.000001Z';
    const sent = { ...made, spec: { ...made.spec, renewTime } };
    const body = encodeProtobuf(sent as unknown as JsonObject);
    const plain = ask('PUT', `${PATH}/n`, Buffer.from(body ?? []), 'one/1', {
      'content-type': type,
    });
    const again = JSON.parse(plain.text) as Lease;
    again.spec['renewTime'] = '2026-01-02T03:04:10.000001Z';
    const next = Buffer.from(encodeProtobuf(again as unknown as JsonObject) ?? []);
    const headers = { 'content-type': type, accept: `${type},application/json` };
    const encoded = ask('PUT', `${PATH}/n`, next, 'one/1', headers);
    assert.equal(encoded.contentType, type);
    // the first brings a field that nobody owned
    assert.equal(ask.shortened(), isShort ? 1 : 0);
    return [plain.text, encoded.bytes.toString('latin1'), ask('GET', `${PATH}/n`, '').text];
  });
  assert.deepEqual(short, long);
  assert.match(short?.[2] ?? '', /03:04:10\.000001Z/);
});

test('over HTTP/1.1 each renewal is read by its own fields, and no list of them is made', () => {
  const ask = server(true);
  ask('POST', '/api/v1/namespaces', NAMESPACE);
  let lease = JSON.parse(ask('POST', PATH, leaseOf({})).text) as Lease;
  lease.spec['renewTime'] = '2026-01-02T03:04:09.000001Z';
  lease = JSON.parse(ask('PUT', `${PATH}/n`, lease).text) as Lease;
  const type = 'application/vnd.kubernetes.protobuf';
  const types = ['application/json', type, 'application/json'].map((accept, at) => {
    lease.spec['renewTime'] = `2026-01-02T03:04:1${at}.000001Z`;
    const answer = ask('PUT', `${PATH}/n`, lease, 'one/1', { accept }, 'http/1.1');
    const text = ask('GET', `${PATH}/n`, '').text;
    lease = JSON.parse(text) as Lease;
    return answer.contentType;
  });
  assert.deepEqual(types, ['application/json', type, 'application/json']);
  assert.equal(ask.shortened(), 3);
});
