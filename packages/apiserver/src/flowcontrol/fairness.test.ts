import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Rest } from '@megaplane/wire/exchange';
import { Store } from '@megaplane/store/store';
import { createApiServer } from '../server/assembly.ts';
import { bootstrap } from '../controlplane/bootstrap.ts';
import { EmbeddedStorage } from '../storage/embedded/embedded-storage.ts';
import { ConnectionModel, ExchangeModel } from '../testing/exchange-model.sim.ts';
import { identityOf, type Identity } from '../request/identity.ts';
import type { ApiServer } from '../server/server.ts';
import { upkeepFlows } from './flow-upkeep.ts';

const FLOWS = '/apis/flowcontrol.apiserver.k8s.io/v1';
const MAPS = '/api/v1/namespaces/default/configmaps';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';

interface Rig {
  readonly api: ApiServer;
  /** Asks as `user`; `''`: as an administrator. */
  ask(user: string, method: string, path: string, body?: unknown): ExchangeModel;
  /** Works off what was put off. */
  settle(): void;
  /** The time, and how long each look at the clock takes. */
  readonly time: { cost: number; nowMs: number };
}

function rig(readsMax = 400): Rig {
  const time = { cost: 0, nowMs: 1_800_000_000_000 };
  const store = new Store({ dataDir: null, durability: 'none', prefixes: [] }, 1);
  const later: (() => void)[] = [];
  let uuids = 0;
  const edge = {
    nowMs: () => Math.floor(time.nowMs),
    below: () => 0,
    uuid: () => `00000000-0000-4000-8000-${String(++uuids).padStart(12, '0')}`,
    defer: (work: () => void) => void later.push(work),
    deferPiece: (work: () => void) => void later.push(work),
  };
  const people = new Map<string, Identity>();
  const api = createApiServer({
    storage: new EmbeddedStorage(store, () => Promise.resolve()),
    edge,
    address: '',
    clockMs: () => (time.nowMs += time.cost),
    tracking: { readsMax, writesMax: 0 },
    tokenReaders: () => [(name) => people.get(name) ?? null],
    authorizers: [() => ({ allowed: true, reason: 'test' })],
  });
  const ask: Rig['ask'] = (user, method, path, body) => {
    if (!people.has(user)) {
      const groups = user.startsWith('system:node:') ? ['system:nodes'] : [];
      people.set(user, identityOf(user, groups));
    }
    const fields: Record<string, string> = {
      'content-type': 'application/json',
      ...(user === '' ? {} : { authorization: `Bearer ${user}` }),
    };
    const connection = new ConnectionModel(user === '');
    const exchange = new ExchangeModel(method, path, body, fields, connection);
    api.handle(exchange);
    exchange.endTurn();
    return exchange;
  };
  const settle = (): void => {
    store.flush();
    for (let work = later.shift(); work !== undefined; work = later.shift()) work();
  };
  const own: Rig = { api, ask, settle, time };
  bootstrap(api.parts.world, { serviceAddress: '10.96.0.1', address: '127.0.0.1', port: 1 });
  settle();
  return own;
}

interface Flow {
  readonly metadata: { readonly name: string; readonly uid: string; readonly generation: number };
  readonly spec: Record<string, unknown>;
  readonly status?: { readonly conditions?: readonly Record<string, string>[] };
}

function read(exchange: ExchangeModel): Flow {
  return JSON.parse(exchange.text) as Flow;
}

test('every answer tells which schema and level its request belonged to', () => {
  const own = rig();
  const ask: Rig['ask'] = (...args) => own.ask(...args);
  const named = (user: string, path: string): string[] => {
    const exchange = ask(user, 'GET', path);
    const find = (kind: string, field: string): string => {
      const list = JSON.parse(ask('', 'GET', `${FLOWS}/${kind}`).text) as { items: Flow[] };
      const uid = exchange.answerHeader(field);
      return list.items.find(({ metadata }) => metadata.uid === uid)?.metadata.name ?? '?';
    };
    return [
      find('flowschemas', 'x-kubernetes-pf-flowschema-uid'),
      find('prioritylevelconfigurations', 'x-kubernetes-pf-prioritylevel-uid'),
    ];
  };
  assert.deepEqual(named('', MAPS), ['exempt', 'exempt']);
  assert.deepEqual(named('joe', MAPS), ['global-default', 'global-default']);
  assert.deepEqual(named('joe', '/readyz'), ['probes', 'exempt']);
  assert.deepEqual(named('system:node:n', `${LEASES}/n`), ['system-node-high', 'node-high']);
  assert.deepEqual(named('system:node:n', MAPS), ['system-nodes', 'system']);
  assert.deepEqual(named('system:kube-scheduler', MAPS), ['kube-scheduler', 'workload-high']);
  const election = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler';
  assert.deepEqual(named('system:kube-scheduler', election), [
    'system-leader-election',
    'leader-election',
  ]);
  const account = 'system:serviceaccount:kube-system:x';
  assert.deepEqual(named(account, MAPS), ['kube-system-service-accounts', 'workload-high']);
});

test('a turn that lasts puts off what comes late, and a lease goes before the flood', () => {
  const own = rig();
  const spec = { holderIdentity: 'n', leaseDurationSeconds: 40 };
  const lease = { metadata: { name: 'n' }, spec };
  const made = own.ask('system:node:n', 'POST', LEASES, lease);
  assert.equal(made.status, 201);
  const { resourceVersion } = (JSON.parse(made.text) as { metadata: { resourceVersion: string } })
    .metadata;
  own.settle();
  own.time.cost = 1;
  const flood = Array.from({ length: 300 }, () => own.ask('noisy', 'GET', `${MAPS}/none`));
  const served = flood.filter(({ status }) => status === 404).length;
  assert.ok(served > 0 && served < 10, `${served} were served at once`);
  const renewal = own.ask('system:node:n', 'PUT', `${LEASES}/n`, {
    metadata: { name: 'n', resourceVersion },
    spec: { ...spec, renewTime: '2026-01-01T00:00:00.000000Z' },
  });
  assert.equal(renewal.status, 0);
  const waited = 300 - served;
  own.time.cost = 0;
  own.api.tick(own.time.nowMs);
  const queued = own.ask('', 'GET', '/metrics').text;
  const name = 'apiserver_current_inqueue_requests';
  assert.ok(queued.includes(`${name}{request_kind="readOnly"} ${waited}\n`));
  assert.ok(queued.includes(`${name}{request_kind="mutating"} 1\n`));
  own.settle();
  assert.equal(renewal.status, 200);
  assert.equal(flood.filter(({ status }) => status === 404).length, 300);
  const metrics = own.ask('', 'GET', '/metrics').text;
  assert.match(
    metrics,
    /dispatched_requests_total\{flow_schema="global-default",priority_level="global-default"\} 300/,
  );
  assert.match(metrics, /current_inqueue_requests\{[^}]*global-default"\} 0/);
  assert.match(metrics, /queue_length_after_enqueue_count\{[^}]*global-default"\} 300/, 'all');
});

test('levels take turns by the time they use, whoever came first', () => {
  const own = rig();
  own.time.cost = 1;
  const order: string[] = [];
  const watch = (exchange: ExchangeModel, name: string): ExchangeModel => {
    const respond = exchange.respond.bind(exchange);
    exchange.respond = (...args) => {
      order.push(name);
      respond(...args);
    };
    return exchange;
  };
  // the turn is used up
  for (let index = 0; index < 12; index++) own.ask('first', 'GET', `${MAPS}/none`);
  order.length = 0;
  for (let index = 0; index < 60; index++) watch(own.ask('noisy', 'GET', `${MAPS}/none`), 'noisy');
  for (let index = 0; index < 5; index++) {
    watch(own.ask('system:node:n', 'GET', `${LEASES}/none`), 'node');
  }
  own.time.cost = 0.5;
  own.settle();
  const last = order.lastIndexOf('node');
  assert.equal(order.filter((name) => name === 'node').length, 5);
  assert.ok(last < 20, order.join(' '));
});

test('a renewal that had to wait takes the short way when its turn has come', () => {
  const own = rig();
  const { renewals } = own.api.parts;
  assert.ok(renewals !== null);
  const lease = {
    metadata: { name: 'n' },
    spec: { holderIdentity: 'n', leaseDurationSeconds: 40 },
  };
  const kind = { kind: 'Lease', apiVersion: 'coordination.k8s.io/v1' };
  const made = own.ask('', 'POST', LEASES, { ...kind, ...lease });
  own.settle();
  assert.equal(made.status, 201, made.text);
  const sent = (seen: ExchangeModel, seconds: number): object => {
    const body = JSON.parse(seen.text) as object;
    const renewTime = `2027-01-15T08:00:${seconds}.000000Z`;
    return { ...body, spec: { ...lease.spec, renewTime } };
  };
  const first = own.ask('system:node:n', 'PUT', `${LEASES}/n`, sent(made, 10));
  own.settle();
  assert.equal(first.status, 200, first.text);
  let short = 0;
  const tryRenew = renewals.tryRenew.bind(renewals);
  renewals.tryRenew = (...args): boolean => {
    const isShort = tryRenew(...args);
    if (isShort) short++;
    return isShort;
  };
  own.time.cost = 1;
  for (let index = 0; index < 12; index++) own.ask('first', 'GET', `${MAPS}/none`);
  const waited = own.ask('system:node:n', 'PUT', `${LEASES}/n`, sent(first, 20));
  assert.equal(waited.status, 0, 'the turn is used up');
  own.time.cost = 0.01;
  own.settle();
  assert.equal(waited.status, 200, waited.text);
  assert.match(waited.text, /08:00:20/);
  assert.equal(short, 1);
  assert.ok(waited.answerHeader('x-kubernetes-pf-flowschema-uid') !== undefined);
});

test('a renewal in another namespace belongs to the schema that is for it', () => {
  const own = rig();
  const election = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases';
  const kind = { kind: 'Lease', apiVersion: 'coordination.k8s.io/v1' };
  const spec = { holderIdentity: 'a', leaseDurationSeconds: 15 };
  const made = own.ask('', 'POST', election, { ...kind, metadata: { name: 's' }, spec });
  own.settle();
  const renewTime = '2027-01-15T08:00:10.000000Z';
  const body = { ...(JSON.parse(made.text) as object), spec: { ...spec, renewTime } };
  const scheduler = 'system:kube-scheduler';
  const seen = own.ask(scheduler, 'GET', `${election}/s`);
  const renewed = own.ask(scheduler, 'PUT', `${election}/s`, body);
  assert.equal(renewed.status, 200, renewed.text);
  const field = 'x-kubernetes-pf-flowschema-uid';
  assert.equal(renewed.answerHeader(field), seen.answerHeader(field));
});

test('renewals that find no room to wait are refused, and counted', () => {
  const own = rig();
  const spec = { holderIdentity: 'n', leaseDurationSeconds: 40 };
  const kind = { kind: 'Lease', apiVersion: 'coordination.k8s.io/v1' };
  own.ask('', 'POST', LEASES, { ...kind, metadata: { name: 'n' }, spec });
  own.settle();
  own.time.cost = 1;
  for (let index = 0; index < 12; index++) own.ask('first', 'GET', `${MAPS}/none`);
  const body = { ...kind, metadata: { name: 'n' }, spec };
  const all = Array.from({ length: 9000 }, () =>
    own.ask('system:node:n', 'PUT', `${LEASES}/n`, body),
  );
  const refused = all.filter(({ status }) => status === 429);
  assert.ok(refused.length > 0 && refused.length < 9000, `${refused.length} were refused`);
  assert.equal(refused[0]?.text, 'Too many requests, please try again later.\n');
  assert.ok(refused[0]?.answerHeader('retry-after') !== undefined);
  own.time.cost = 0;
  own.settle();
  assert.ok(all.every(({ status }) => status !== 0));
  const metrics = own.ask('', 'GET', '/metrics').text;
  assert.match(metrics, /apiserver_request_total\{code="429",[^}]*resource="leases"/);
});

test('who renews on one level is read later, unless other levels renew as much', () => {
  const own = rig();
  const spec = { holderIdentity: 'n', leaseDurationSeconds: 40 };
  const kind = { kind: 'Lease', apiVersion: 'coordination.k8s.io/v1', metadata: { name: 'n' } };
  own.ask('', 'POST', LEASES, { ...kind, spec });
  own.settle();
  const restOf = (user: string, count = 1): Rest => {
    for (let index = 1; index < count; index++) own.ask(user, 'PUT', `${LEASES}/n`, kind);
    return own.ask(user, 'PUT', `${LEASES}/n`, kind).connection.rest;
  };
  const tick = (): void => {
    own.settle();
    own.api.tick((own.time.nowMs += 1000));
  };
  assert.equal(restOf('system:node:n', 20), 'never', 'nothing was counted before');
  tick();
  assert.equal(restOf('system:node:n', 19), 'late');
  assert.equal(restOf('somebody'), 'never', 'of a level with few renewals');
  assert.equal(own.ask('system:node:n', 'GET', `${LEASES}/n`).connection.rest, 'never');
  tick();
  own.time.cost = 1;
  assert.equal(restOf('system:node:n', 20), 'now', 'some wait');
  own.time.cost = 0;
  own.settle();
  assert.equal(restOf('system:node:n'), 'late');
  restOf('somebody', 20);
  tick();
  assert.equal(restOf('system:node:n'), 'never', 'queues must see the renewals of both');
  assert.equal(restOf('somebody'), 'never');
});

test('where no seat is free requests wait for one, and not for ever', () => {
  const own = rig(49);
  const { storage } = own.api.parts.world;
  const held: (() => void)[] = [];
  storage.refresh = (_key, done): void => void held.push(() => done(null));
  Object.defineProperty(storage, 'isShared', { value: true, configurable: true });
  const asked = Array.from({ length: 200 }, () => own.ask('joe', 'GET', `${MAPS}/none`));
  const level = own.api.parts.fairness?.config.levels.find('global-default');
  assert.ok(level !== undefined);
  own.settle();
  assert.equal(level.executing, level.seats);
  assert.equal(level.waiting, 200 - level.seats);
  const dump = own.ask('', 'GET', '/debug/api_priority_and_fairness/dump_priority_levels');
  assert.match(dump.text, /^PriorityLevelName, ActiveQueues, IsIdle, /);
  assert.match(dump.text, /^global-default, {4}\d+, {12}false, /m);
  const requests = own.ask('', 'GET', '/debug/api_priority_and_fairness/dump_requests');
  const rows = requests.text.trim().split('\n').slice(1);
  const running = rows.filter((row) => /^global-default, +global-default, +-?\d+, +-1, /.test(row));
  assert.equal(running.length, level.executing);
  assert.match(running[0] ?? '', /, +joe, +20[^,]+, 1, +0, +0s, +20[^,]+$/);
  assert.match(rows.at(-1) ?? '', /^exempt, +exempt, +-1, +-1, +, /);
  assert.equal(rows.length, level.waiting + level.executing + 1);
  for (const release of held.splice(0)) release();
  own.settle();
  assert.ok(asked.filter(({ status }) => status === 404).length >= level.seats);
  own.time.nowMs += 16_000;
  own.api.tick(own.time.nowMs);
  own.settle();
  const refused = asked.filter(({ status }) => status === 429);
  assert.ok(refused.length > 0);
  assert.equal(refused[0]?.text, 'Too many requests, please try again later.\n');
  assert.equal(refused[0]?.answerHeader('retry-after'), '1');
  while (held.length > 0) {
    for (const release of held.splice(0)) release();
    own.settle();
  }
  assert.ok(asked.every(({ status }) => status !== 0));
  assert.ok(level.isIdle);
  const metrics = own.ask('', 'GET', '/metrics').text;
  assert.match(metrics, /rejected_requests_total\{[^}]*reason="time-out"\} \d+/);
  assert.doesNotMatch(metrics, /request_wait_duration_seconds_count\{[^}]*"exempt"/);
});

test('a method named constructor waits for no seat; what waits with a timeout ends alone', () => {
  const own = rig(49);
  const { storage } = own.api.parts.world;
  const held: (() => void)[] = [];
  storage.refresh = (_key, done): void => void held.push(() => done(null));
  Object.defineProperty(storage, 'isShared', { value: true, configurable: true });
  const holders = [own.ask('joe', 'GET', `${MAPS}/a`)];
  const level = own.api.parts.fairness?.config.levels.find('global-default');
  assert.ok(level !== undefined);
  while (level.executing < level.seats) {
    holders.push(own.ask('joe', 'GET', `${MAPS}/a`));
    own.settle();
  }
  assert.deepEqual([level.executing, level.waiting], [level.seats, 0]);
  const path = `${MAPS}/none?timeout=1s`;
  for (const method of ['constructor', '__proto__', 'toString']) {
    assert.equal(own.ask('joe', method, path).status, 501);
  }
  assert.equal(level.waiting, 0);
  const known = ['GET', 'HEAD', 'PUT', 'POST', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'];
  const waiting = known.map((method) => own.ask('joe', method, path));
  own.settle();
  assert.ok(waiting.some(({ status }) => status === 0));
  own.time.nowMs += 1_500;
  own.api.tick(own.time.nowMs);
  own.settle();
  for (const [index, { status }] of waiting.entries()) {
    assert.ok(status >= 400 && status !== 500, `${known[index]}: ${status}`);
  }
  assert.equal(own.ask('', 'GET', '/readyz').status, 200);
  while (held.length > 0) {
    for (const release of held.splice(0)) release();
    own.settle();
  }
  assert.ok(holders.every(({ status }) => status === 404));
  assert.ok(level.isIdle);
});

test('watches are counted apart, and for the writes that they are told of', () => {
  const own = rig();
  const samples = (sum: number, count: number): void => {
    const metrics = own.ask('', 'GET', '/metrics').text;
    const labels = 'flow_schema="global-default",priority_level="global-default"';
    const name = `apiserver_flowcontrol_watch_count_samples`;
    assert.ok(metrics.includes(`${name}_sum{${labels}} ${sum}\n`));
    assert.ok(metrics.includes(`${name}_count{${labels}} ${count}\n`));
  };
  const watched = (path: string): void => void own.ask('joe', 'GET', `${path}?watch=true`);
  own.ask('joe', 'POST', MAPS, { metadata: { name: 'a' } });
  samples(0, 1);
  own.settle();
  watched(MAPS);
  watched('/api/v1/configmaps');
  watched('/api/v1/namespaces/kube-system/configmaps');
  for (const name of ['a', 'b']) {
    own.ask('joe', 'GET', `${MAPS}?watch=true&fieldSelector=metadata.name%3D${name}`);
  }
  own.settle();
  own.ask('joe', 'DELETE', `${MAPS}/a`);
  samples(3, 2);
  const metrics = own.ask('', 'GET', '/metrics').text;
  assert.match(metrics, /execution_seconds_count\{[^}]*"global-default",type="watch"\} 5\n/);
});

test('a level that rejects does so when its seats are taken, an exempt one never', () => {
  const own = rig(49);
  own.ask('', 'DELETE', `${FLOWS}/flowschemas/global-default`);
  own.settle();
  const { storage } = own.api.parts.world;
  storage.refresh = (): void => {};
  Object.defineProperty(storage, 'isShared', { value: true, configurable: true });
  const level = own.api.parts.fairness?.config.levels.find('catch-all');
  assert.ok(level !== undefined);
  const asked = Array.from({ length: 20 }, () => own.ask('joe', 'GET', `${MAPS}/none`));
  assert.equal(asked.filter(({ status }) => status === 0).length, level.seats);
  assert.equal(asked.filter(({ status }) => status === 429).length, 20 - level.seats);
  const masters = Array.from({ length: 600 }, () => own.ask('', 'GET', `${MAPS}/none`));
  assert.ok(masters.every(({ status }) => status === 0));
});

test('queues of a level without seats wait for those that it may borrow, or in vain', () => {
  const codes = (borrowingLimitPercent: number | null): readonly number[] => {
    const own = rig();
    const queuing = { queues: 1, handSize: 1, queueLengthLimit: 5 };
    const limitResponse = { type: 'Queue', queuing };
    const limited = { nominalConcurrencyShares: 0, borrowingLimitPercent, limitResponse };
    own.ask('', 'POST', `${FLOWS}/prioritylevelconfigurations`, {
      metadata: { name: 'none' },
      spec: { type: 'Limited', limited },
    });
    const subjects = [{ kind: 'User', user: { name: 'joe' } }];
    const nonResourceRules = [{ verbs: ['*'], nonResourceURLs: ['*'] }];
    own.ask('', 'POST', `${FLOWS}/flowschemas`, {
      metadata: { name: 'none' },
      spec: {
        matchingPrecedence: 2,
        priorityLevelConfiguration: { name: 'none' },
        rules: [{ subjects, nonResourceRules }],
      },
    });
    own.settle();
    const asked = own.ask('joe', 'GET', '/version');
    return [0, 11_000, 5000].map((passedMs) => {
      for (let leftMs = passedMs; leftMs > 0; leftMs -= 1000) {
        own.time.nowMs += 1000;
        own.api.tick(own.time.nowMs);
        own.settle();
      }
      return asked.status;
    });
  };
  assert.deepEqual(codes(0), [0, 0, 429]);
  assert.deepEqual(codes(null), [0, 200, 200]);
});

test('a list holds its seats until it was read', () => {
  const own = rig(200);
  const data = { text: 'x'.repeat(20_000) };
  for (let index = 0; index < 40; index++) {
    const map = { metadata: { name: `m${index}` }, data };
    assert.equal(own.ask('', 'POST', MAPS, map).status, 201);
  }
  own.settle();
  const level = own.api.parts.fairness?.config.levels.find('global-default');
  assert.ok(level !== undefined);
  const exchange = new ExchangeModel('GET', MAPS, undefined, { authorization: 'Bearer joe' });
  own.ask('joe', 'GET', `${MAPS}/m1`);
  const slow = new ExchangeModel(
    'GET',
    MAPS,
    undefined,
    { authorization: 'Bearer joe' },
    new ConnectionModel(false),
  );
  slow.room = 1000;
  own.api.handle(slow);
  assert.equal(exchange.status, 0);
  assert.equal(level.executing, 1);
  // 40 objects of 20 KB, a seat for each 100 KB, but no more than one may have
  assert.equal(level.seatsInUse, level.seatsMax);
  slow.room = Infinity;
  slow.onWritable?.();
  own.settle();
  assert.ok(slow.isEnded);
  assert.deepEqual([level.executing, level.seatsInUse], [0, 0]);
});

test('schemas tell whether their level exists, and count only where it does', () => {
  const own = rig();
  const schema = {
    metadata: { name: 'mine' },
    spec: {
      priorityLevelConfiguration: { name: 'mine' },
      matchingPrecedence: 50,
      rules: [
        {
          subjects: [{ kind: 'User', user: { name: 'joe' } }],
          resourceRules: [
            { verbs: ['get'], apiGroups: [''], resources: ['configmaps'], namespaces: ['*'] },
          ],
        },
      ],
    },
  };
  assert.equal(own.ask('', 'POST', `${FLOWS}/flowschemas`, schema).status, 201);
  own.settle();
  const dangling = read(own.ask('', 'GET', `${FLOWS}/flowschemas/mine`)).status?.conditions?.[0];
  assert.equal(dangling?.['status'], 'True');
  assert.equal(dangling?.['reason'], 'NotFound');
  assert.match(dangling?.['message'] ?? '', /named "mine" but there is no such object$/);
  const level = {
    metadata: { name: 'mine' },
    spec: {
      type: 'Limited',
      limited: { nominalConcurrencyShares: 5, limitResponse: { type: 'Reject' } },
    },
  };
  const made = own.ask('', 'POST', `${FLOWS}/prioritylevelconfigurations`, level);
  assert.equal(made.status, 201, made.text);
  own.settle();
  const found = read(own.ask('', 'GET', `${FLOWS}/flowschemas/mine`));
  assert.equal(found.status?.conditions?.[0]?.['status'], 'False');
  const answer = own.ask('joe', 'GET', `${MAPS}/none`);
  assert.equal(answer.answerHeader('x-kubernetes-pf-flowschema-uid'), found.metadata.uid);
});

test('standard objects come back, unless an administrator has taken them over', () => {
  const own = rig();
  const path = `${FLOWS}/prioritylevelconfigurations/workload-low`;
  const shares = (value: number): Record<string, unknown> => ({
    spec: { limited: { nominalConcurrencyShares: value } },
  });
  const patch = (body: unknown): ExchangeModel => {
    const exchange = new ExchangeModel('PATCH', path, body, {
      'content-type': 'application/merge-patch+json',
    });
    own.api.handle(exchange);
    return exchange;
  };
  assert.equal(patch(shares(7)).status, 200);
  upkeepFlows(own.api.parts.world);
  own.settle();
  assert.deepEqual(JSON.parse(JSON.stringify(read(own.ask('', 'GET', path)).spec['limited'])), {
    nominalConcurrencyShares: 100,
    lendablePercent: 90,
    limitResponse: { type: 'Queue', queuing: { queues: 128, handSize: 6, queueLengthLimit: 50 } },
  });
  const mine = { metadata: { annotations: { 'apf.kubernetes.io/autoupdate-spec': 'false' } } };
  assert.equal(patch({ ...mine, ...shares(7) }).status, 200);
  upkeepFlows(own.api.parts.world);
  own.settle();
  const kept = read(own.ask('', 'GET', path)).spec['limited'] as Record<string, unknown>;
  assert.equal(kept['nominalConcurrencyShares'], 7);
  assert.equal(own.ask('', 'DELETE', path).status, 200);
  upkeepFlows(own.api.parts.world);
  own.settle();
  assert.equal(own.ask('', 'GET', path).status, 200);
  const fixed = own.ask('', 'PUT', `${FLOWS}/flowschemas/exempt`, {
    ...read(own.ask('', 'GET', `${FLOWS}/flowschemas/exempt`)),
    spec: { priorityLevelConfiguration: { name: 'exempt' }, matchingPrecedence: 1, rules: [] },
  });
  assert.equal(fixed.status, 422);
  const shown =
    '{"PriorityLevelConfiguration":{"Name":"exempt"},"MatchingPrecedence":1,' +
    '"DistinguisherMethod":null,"Rules":[]}';
  const { message } = JSON.parse(fixed.text) as { message: string };
  assert.ok(
    message.endsWith(`Invalid value: ${shown}: spec of 'exempt' must equal the fixed value`),
    message,
  );
  const made = JSON.parse(own.ask('', 'GET', `${FLOWS}/flowschemas/probes`).text) as {
    metadata: { managedFields: { manager: string }[] };
  };
  const owners = made.metadata.managedFields.map(({ manager }) => manager);
  assert.ok(owners.includes('api-priority-and-fairness-config-producer-v1'), String(owners));
});

test('a renewal that waited and is no plain one is answered the long way, once', () => {
  const own = rig();
  const spec = { holderIdentity: 'n', leaseDurationSeconds: 40 };
  const lease = { metadata: { name: 'n' }, spec };
  const made = own.ask('system:node:n', 'POST', LEASES, lease);
  const { resourceVersion } = (JSON.parse(made.text) as { metadata: { resourceVersion: string } })
    .metadata;
  own.settle();
  const renew = (at: number): ExchangeModel =>
    own.ask('system:node:n', 'PUT', `${LEASES}/n`, {
      metadata: { name: 'n', resourceVersion },
      spec: { ...spec, renewTime: `2026-01-01T00:00:0${at}.000000Z` },
    });
  own.time.cost = 1;
  for (let i = 0; i < 20; i++) own.ask('noisy', 'GET', `${MAPS}/none`);
  const [first, stale] = [renew(1), renew(2)];
  const misspelt = own.ask('system:node:n', 'PUT', `${LEASES}/n`, { metadata: 'none' });
  assert.deepEqual([first.status, stale.status, misspelt.status], [0, 0, 0]);
  own.time.cost = 0;
  own.settle();
  assert.deepEqual([first.status, stale.status, misspelt.status], [200, 409, 400]);
  assert.match(stale.text, /the object has been modified/);
  const renewTime = /"renewTime":"([^"]*)"/.exec(own.ask('', 'GET', `${LEASES}/n`).text)?.[1];
  assert.equal(renewTime, '2026-01-01T00:00:01.000000Z');
  const metrics = own.ask('', 'GET', '/metrics').text;
  const level = 'flow_schema="system-node-high",priority_level="node-high"';
  for (const name of ['inqueue_requests', 'executing_requests']) {
    assert.ok(metrics.includes(`apiserver_flowcontrol_current_${name}{${level}} 0\n`), name);
  }
});
