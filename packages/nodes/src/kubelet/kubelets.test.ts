import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClient } from '../../test/fake-client.ts';
import { CATCH_UP_FACTOR, JITTER_FACTOR, Kubelets } from './kubelets.ts';
import { SimulatorMetrics } from '../metrics/simulator-metrics.ts';

const LEASE_MS = 40_000;
const PERIOD_MS = LEASE_MS / 4;

interface World {
  readonly client: FakeClient;
  readonly kubelets: Kubelets;
  readonly metrics: SimulatorMetrics;
  readonly seen: Set<number>;
  /** By how much the wall clock was set. */
  readonly one: { setMs: number };
  readonly see: (id: number, ready?: boolean, more?: object) => void;
  readonly forget: (id: number) => void;
}

/** What a renewal looks like. */
const VERSIONED = {
  metadata: { resourceVersion: '', labels: {}, finalizers: [''], managedFields: undefined },
  spec: { renewTime: '' },
};

function world(
  holder = '',
  isRegistering = (): boolean => false,
  onHeld = (_id: number): void => {},
): World {
  const client = new FakeClient(7);
  const metrics = new SimulatorMetrics();
  const seen = new Set<number>();
  const one = { setMs: 0 };
  const kubelets = new Kubelets({
    client,
    clock: {
      steadyMs: () => client.timers.nowMs(),
      wallMs: () => client.timers.nowMs() + one.setMs,
    },
    metrics,
    leaseDurationSeconds: LEASE_MS / 1000,
    isRegistering,
    faultOf: () => null,
    holder,
    statusPeriodMs: 600_000,
    readsStatus: false,
    keepsStatus: () => true,
    endpoint: { port: 0, hostname: '', nodeIp: '' },
    nameOf: (id) => `node-${id}`,
    onNode: () => {},
    onHeld,
  });
  const see = (id: number, ready = true, more: object = {}): void => {
    const node = {
      metadata: { name: `node-${id}`, uid: `00000000-0000-4000-8000-00000000000${id % 10}` },
      status: { conditions: [{ type: 'Ready', status: ready ? 'True' : 'Unknown' }], ...more },
    };
    const bytes = Buffer.from(JSON.stringify(node));
    kubelets.handler.onUpsert(id, !seen.has(id), bytes, 0, bytes.length);
    seen.add(id);
  };
  const forget = (id: number): void => {
    seen.delete(id);
    kubelets.handler.onDelete(id, new Uint8Array(0), 0, 0);
  };
  return { client, kubelets, metrics, seen, see, forget, one };
}

test('the statuses of nodes that came in one moment are spread over a period', () => {
  const one = world();
  for (let id = 0; id < 200; id++) one.see(id);
  const atS: number[] = [];
  for (let seconds = 0; seconds < 1000; seconds++) {
    one.client.pass(1000);
    one.kubelets.tick();
    while (one.client.sent.length > 0) {
      one.client.answer(200);
      atS.push(seconds);
    }
  }
  // the first ones come after half a period, the last ones after one and a half
  const first = atS.slice(0, 200);
  for (const [from, to] of [
    [300, 450],
    [450, 600],
    [600, 750],
    [750, 900],
  ] as const) {
    const count = first.filter((at) => at >= from && at < to).length;
    assert.ok(count > 30 && count < 75, `${count} from ${from} to ${to} s`);
  }
});

function start({ kubelets, seen }: World): void {
  kubelets.start(Math.max(...seen, 0) + 1, (id) => seen.has(id));
}

function run({ client, kubelets }: World, durationMs: number, stepMs = 5): void {
  for (let passed = 0; passed < durationMs; passed += stepMs) {
    client.pass(stepMs);
    kubelets.tick();
  }
}

function lease(version: number): object {
  return { metadata: { name: 'x', resourceVersion: String(version) } };
}

test('a lease is created, then renewed every quarter of its duration with the last version', () => {
  const one = world();
  one.see(3);
  start(one);
  run(one, 10);
  const created = one.client.answer(201, lease(17));
  assert.equal(created.method, 'POST');
  let passed = 0;
  for (; one.client.sent.length === 0; passed += 5) run(one, 5);
  assert.ok(passed <= PERIOD_MS + 20, `${passed}`);
  const renewed = one.client.answer(200, lease(18));
  assert.equal(renewed.method, 'PUT');
  assert.match(renewed.path, /leases\/node-3$/);
  assert.equal(JSON.parse(renewed.body).metadata.resourceVersion, '17');
  run(one, PERIOD_MS * (1 - JITTER_FACTOR) - 20);
  assert.equal(one.client.sent.length, 0);
  run(one, PERIOD_MS * 2 * JITTER_FACTOR + 40);
  one.client.answer(200, lease(19));
  assert.deepEqual([one.metrics.leasesCreated, one.metrics.renewals], [1, 2]);
});

test('a conflict is answered by one look and a renewal with what was seen', () => {
  const one = world();
  one.see(0);
  one.kubelets.adopt(0, 5);
  start(one);
  run(one, PERIOD_MS + 10);
  assert.equal(one.client.answer(409).method, 'PUT');
  run(one, 10);
  assert.equal(one.client.answer(200, lease(9)).method, 'GET');
  run(one, 10);
  const again = one.client.answer(200, lease(10));
  assert.equal(JSON.parse(again.body).metadata.resourceVersion, '9');
  assert.equal(one.metrics.conflicts, 1);
});

test('a lease that somebody deleted is made anew', () => {
  const one = world();
  one.see(0);
  one.kubelets.adopt(0, 5);
  start(one);
  run(one, PERIOD_MS + 10);
  one.client.answer(404);
  run(one, 10);
  assert.equal(one.client.answer(201, lease(6)).method, 'POST');
});

test('failures are tried again ever more slowly, and never forgotten', () => {
  const one = world();
  one.see(0);
  start(one);
  let tries = 0;
  for (let passed = 0; passed < 60_000; passed += 5) {
    one.client.pass(5);
    one.kubelets.tick();
    while (one.client.sent.length > 0) {
      one.client.answer(503);
      tries++;
    }
  }
  assert(tries >= 9 && tries <= 25, `${tries} tries in a minute`);
});

test('leases from before are spread over one period', () => {
  const one = world();
  for (let id = 0; id < 500; id++) {
    one.see(id);
    one.kubelets.adopt(id, 1);
  }
  start(one);
  for (let tenth = 0; tenth < 10; tenth++) {
    const before = one.client.sent.length;
    run(one, PERIOD_MS / 10);
    const sent = one.client.sent.length - before;
    assert(sent > 20 && sent < 90, `${sent} of 500 in one tenth of the period`);
  }
});

test('rows that follow each other renew one after the other, period by period', () => {
  const one = world();
  const rows = { first: 4096, count: 2048 };
  for (let id = rows.first; id < rows.first + rows.count; id++) {
    one.see(id);
    one.kubelets.adopt(id, 1);
  }
  start(one);
  const sentMs = new Map<number, number>();
  const rounds = 40;
  for (let passed = 0; passed < rounds * PERIOD_MS; passed += 5) {
    one.client.pass(5);
    one.kubelets.tick();
    while (one.client.sent.length > 0) {
      const { method, path } = one.client.answer(200, lease(2));
      if (method !== 'PUT') continue;
      const id = Number(path.split('-').at(-1));
      const nowMs = one.client.timers.nowMs();
      const beforeMs = sentMs.get(id) ?? -1;
      sentMs.set(id, nowMs);
      if (beforeMs < 0) continue;
      const ratio = (nowMs - beforeMs) / PERIOD_MS;
      assert(ratio > 0.975 && ratio < 1.025, `a period of ${ratio}`);
    }
  }
  const renewals = one.metrics.renewals / rows.count;
  assert(renewals > rounds - 1 && renewals <= rounds, `${renewals} in ${rounds} periods`);
  // the later half of the rows is the later half of half a period still
  const early = [...sentMs].filter(([id]) => id % 4096 < 900).map(([, at]) => at % PERIOD_MS);
  const late = [...sentMs].filter(([id]) => id % 4096 > 1150).map(([, at]) => at % PERIOD_MS);
  assert(Math.max(...early) < PERIOD_MS * 0.25 && Math.min(...late) > PERIOD_MS * 0.25);
});

test('after a pause of this process renewals are paced, not burst', () => {
  const one = world();
  for (let id = 0; id < 1000; id++) {
    one.see(id);
    one.kubelets.adopt(id, 1);
  }
  one.client.queueMax = 100_000;
  start(one);
  one.client.pass(PERIOD_MS * 6);
  one.kubelets.tick();
  assert(one.client.sent.length <= ((1000 * 1000) / PERIOD_MS) * CATCH_UP_FACTOR + 1);
  const before = one.client.sent.length;
  run(one, 100);
  const usual = (1000 * 100) / PERIOD_MS;
  assert(one.client.sent.length - before <= usual * CATCH_UP_FACTOR + 40);
});

test('answers make room for renewals that are due, without another tick', () => {
  const one = world();
  for (let id = 0; id < 10_000; id++) {
    one.see(id);
    one.kubelets.adopt(id, 1);
  }
  start(one);
  one.client.pass(PERIOD_MS * 2);
  one.kubelets.tick();
  assert.equal(one.client.sent.length, 1000);
  let renewed = 0;
  for (; one.client.sent.length > 0; renewed++) one.client.answer(200, lease(2));
  assert.equal(renewed, ((10_000 * 1000) / PERIOD_MS) * CATCH_UP_FACTOR + 1);
});

test('a clock that is set is no burst and no stall, and renew times never go back', () => {
  const made = world();
  for (let id = 0; id < 200; id++) {
    made.see(id);
    made.kubelets.adopt(id, 1);
  }
  start(made);
  const last = new Map<string, string>();
  const renewals = (durationMs: number): number => {
    let count = 0;
    for (let passed = 0; passed < durationMs; passed += 50) {
      run(made, 50);
      while (made.client.sent.length > 0) {
        const { path, body } = made.client.answer(200, lease(2));
        const { renewTime } = (JSON.parse(body) as { spec: { renewTime: string } }).spec;
        assert(renewTime > (last.get(path) ?? ''), `${renewTime} after ${last.get(path)}`);
        last.set(path, renewTime);
        count++;
      }
    }
    return count;
  };
  renewals(PERIOD_MS * 2);
  for (const setMs of [3_600_000, 0, -3_600_000, 0]) {
    made.one.setMs = setMs;
    const count = renewals(PERIOD_MS * 2);
    assert(count > 350 && count < 420, `${count} renewals of 200 leases in two periods`);
  }
});

test('a node that is not Ready is initialised, and one that went away is left alone', () => {
  const one = world();
  one.see(0, false);
  assert.equal(one.metrics.nodesReady, 0);
  run(one, 10);
  const patch = one.client.answer(200);
  assert.match(patch.path, /nodes\/node-0\/status$/);
  one.see(0, true);
  assert.equal(one.metrics.nodesReady, 1);
  one.forget(0);
  assert.equal(one.metrics.nodesReady, 0);
  start(one);
  run(one, PERIOD_MS * 2);
  assert.equal(one.client.sent.length, 0);
});

test('an answer for a row that has a new owner by then changes nothing', () => {
  const one = world();
  one.see(4);
  start(one);
  run(one, 10);
  one.forget(4);
  one.see(4);
  one.client.answer(201, lease(99));
  run(one, 10);
  const created = one.client.answer(201, lease(100));
  assert.equal(created.method, 'POST');
  assert.equal(one.metrics.leasesCreated, 1);
});

test('with a common holder a lease is taken when the one before it has let it go', () => {
  const own = world('controller-b');
  own.see(3);
  own.kubelets.adopt(3, 50);
  start(own);
  run(own, PERIOD_MS);
  const lease = (holder: string): object => ({
    metadata: { name: 'node-3', resourceVersion: '60' },
    spec: {
      holderIdentity: holder,
      leaseTransitions: 4,
      leaseDurationSeconds: 40,
      renewTime: new Date(own.client.clock.nowMs()).toISOString(),
    },
  });
  assert.equal(own.client.answer(200, lease('controller-a')).method, 'GET');
  run(own, LEASE_MS - 100);
  assert.equal(own.client.sent.length, 0);
  run(own, 200);
  const expired = { ...lease('controller-a') };
  Object.assign(expired, { spec: { holderIdentity: 'controller-a', leaseTransitions: 4 } });
  assert.equal(own.client.answer(200, expired).method, 'GET');
  run(own, 50);
  const taken = own.client.answer(200, lease('controller-b'));
  assert.equal(taken.method, 'PUT');
  assert.match(taken.body, /"holderIdentity":"controller-b".*"leaseTransitions":5,/);
});

test('with a common holder a node is played while its lease is ours', () => {
  const held: number[] = [];
  const own = world(
    'controller-b',
    () => false,
    (id) => held.push(id),
  );
  const spec = { holderIdentity: 'controller-b', leaseDurationSeconds: 40 };
  const lease = { metadata: { resourceVersion: '60' }, spec };
  own.see(3, false);
  start(own);
  run(own, 50);
  assert.equal(own.kubelets.isHeld(3), false);
  assert.equal(own.client.sent.length, 1, 'no status is told yet');
  assert.equal(own.client.answer(201, lease).method, 'POST');
  assert.deepEqual([held, own.kubelets.isHeld(3)], [[3], true]);
  run(own, 50);
  assert.equal(own.client.answer(200).method, 'PATCH');
  own.kubelets.adopt(3, 70);
  assert.equal(own.kubelets.isHeld(3), false);
  run(own, 2 * PERIOD_MS);
  assert.equal(own.client.answer(200, lease).method, 'GET');
  assert.equal(own.kubelets.isHeld(3), false, 'it may be written by somebody else yet');
  run(own, 50);
  assert.equal(own.client.answer(200, lease).method, 'PUT');
  assert.deepEqual([held, own.kubelets.isHeld(3)], [[3, 3], true]);
});

test('what others have written into a lease stays', () => {
  const one = world();
  one.see(3);
  const metadata = { labels: { a: 'b' }, finalizers: ['x.io/f'], managedFields: [] };
  const spec = { acquireTime: '2026-01-02T00:00:00.000000Z', leaseTransitions: 2 };
  const lease = Buffer.from(JSON.stringify({ metadata, spec }));
  one.kubelets.keep(3, lease, 0, lease.length);
  one.kubelets.adopt(3, 50);
  start(one);
  run(one, PERIOD_MS);
  const renewal = JSON.parse(one.client.answer(200, {}).body) as typeof VERSIONED;
  assert.equal(renewal.metadata.resourceVersion, '50');
  assert.deepEqual(renewal.metadata.labels, { a: 'b' });
  assert.deepEqual(renewal.metadata.finalizers, ['x.io/f']);
  assert.equal(renewal.metadata.managedFields, undefined);
  const { renewTime, ...rest } = renewal.spec;
  assert.match(renewTime, /^\d{4}-/);
  assert.deepEqual(rest, { ...spec, holderIdentity: 'node-3', leaseDurationSeconds: 40 });
});

test('while nodes are registered a thousand renewals are under way at most', () => {
  let isRegistering = true;
  const one = world('', () => isRegistering);
  one.client.queueMax = 5000;
  const send = one.client.send.bind(one.client);
  one.client.send = (...args) => {
    const isSent = send(...args);
    one.client.metrics.requestsInFlight = one.client.inFlight;
    return isSent;
  };
  for (let id = 0; id < 3000; id++) {
    one.see(id);
    one.kubelets.adopt(id, 5);
  }
  start(one);
  run(one, PERIOD_MS + 1000);
  assert.equal(one.client.inFlight, 1000);
  isRegistering = false;
  run(one, PERIOD_MS);
  assert.equal(one.client.inFlight, 3000);
});

test('a node that tells an address keeps it, of whichever family; without one it gets one', () => {
  const told = (addresses: object[]): string[] => {
    const one = world();
    one.see(0, false, { addresses });
    run(one, 100);
    const { status } = JSON.parse(one.client.answer(200).body);
    return (status.addresses ?? []).map(({ type }: { type: string }) => type);
  };
  assert.deepEqual(told([{ type: 'InternalIP', address: 'fd00::1' }]), []);
  assert.deepEqual(told([{ type: 'ExternalIP', address: '203.0.113.1' }]), [
    'InternalIP',
    'Hostname',
  ]);
  assert.deepEqual(told([]), ['InternalIP', 'Hostname']);
});

test('addresses of both families and the networks of pods are told as the Node orders them', () => {
  const one = world();
  const addresses = [
    { type: 'ExternalIP', address: '203.0.113.1' },
    { type: 'InternalIP', address: 'fd00::1' },
    { type: 'InternalIP', address: 'fd00::2' },
  ];
  one.see(0, true, { addresses });
  assert.deepEqual(one.kubelets.addressesOf(0), ['fd00::1', '203.0.113.1']);
  assert.deepEqual(one.kubelets.networksOf(0), []);
});

test('after an outage of the server renewals are spread over the period again', () => {
  const one = world();
  for (let id = 0; id < 400; id++) {
    one.see(id);
    one.kubelets.adopt(id, 5);
  }
  start(one);
  run(one, PERIOD_MS, 20);
  while (one.client.sent.length > 0) one.client.answer(200, lease(9));
  // nothing is answered for two periods, then all in one moment
  run(one, 2 * PERIOD_MS, 20);
  while (one.client.sent.length > 0) one.client.answer(200, lease(9));
  const quarters: number[] = Array.from({ length: 10 }, () => 0);
  for (let passed = 0; passed < 2.5 * PERIOD_MS; passed += 20) {
    run(one, 20, 20);
    for (; one.client.sent.length > 0; one.client.answer(200, lease(9))) {
      const quarter = Math.floor((4 * passed) / PERIOD_MS);
      quarters[quarter] = (quarters[quarter] ?? 0) + 1;
    }
  }
  assert.deepEqual(quarters.slice(0, 2), [0, 0]);
  for (const count of quarters.slice(2)) assert.ok(count > 60 && count < 140, quarters.join(' '));
});

test("a lease that was another's is renewed when it is due, an overdue one soon, paced", () => {
  const one = world();
  const told: { readonly atMs: number; readonly id: number }[] = [];
  for (let id = 0; id < 400; id++) one.see(id);
  const nowMs = one.client.timers.nowMs();
  // half of them wait for a simulator that is gone
  for (let id = 0; id < 400; id++) one.kubelets.adopt(id, 5, nowMs + (id < 200 ? -9000 : 6000));
  start(one);
  for (let passed = 0; passed < 2.5 * PERIOD_MS; passed += 20) {
    run(one, 20, 20);
    while (one.client.sent.length > 0) {
      const { path } = one.client.answer(200, lease(9));
      told.push({ atMs: passed, id: Number(path.replace(/.*-/, '')) });
    }
  }
  const first = new Map<number, number>();
  for (const { atMs, id } of told) if (!first.has(id)) first.set(id, atMs);
  const late = [...first].filter(([id]) => id < 200).map(([, atMs]) => atMs);
  assert.ok(Math.max(...late) <= PERIOD_MS / 4 + 100, `${Math.max(...late)}`);
  const due = [...first].filter(([id]) => id >= 200).map(([, atMs]) => atMs);
  assert.ok(Math.min(...due) >= 5900, `${Math.min(...due)}`);
  // all are there within twice the usual pace, and spread over the period afterwards
  assert.ok(Math.max(...due) <= 6000 + (200 / 80) * 1000 + 200, `${Math.max(...due)}`);
  const later = told.filter(({ atMs }) => atMs > 1.5 * PERIOD_MS);
  const half = later.filter(({ atMs }) => atMs < 2 * PERIOD_MS).length;
  assert.ok(half > 120 && half < 280, `${half}`);
});

test('who is followed by another keeps leases only, and none that it has left', () => {
  const one = world();
  for (const id of [0, 1]) {
    one.see(id);
    one.kubelets.adopt(id, 5, one.client.timers.nowMs());
  }
  start(one);
  one.kubelets.retire();
  one.kubelets.leave(2, (id) => id === 1);
  one.see(1, false);
  one.see(2);
  run(one, 2 * PERIOD_MS);
  assert.deepEqual(
    one.client.sent.map(({ path }) => path.replace(/.*\//, '')),
    ['node-0'],
  );
  one.client.answer(200, lease(9));
  assert.equal(one.kubelets.leaseVersionOf(0), 9);
});
