import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openStore } from '@megaplane/store/open';
import { Store } from '@megaplane/store/store';
import { LeaseList } from './lease-list.ts';
import { Peer } from '../testing/peer.sim.ts';
import { Message } from '../codec/message.ts';
import { serveEtcd } from '../server/run-store.ts';

const LEASES = 20_000;

test('leases are listed by when they end, while others come, go and are renewed', async (t) => {
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  t.after(() => opened.close());
  const { leases } = opened.store;
  const nowMs = performance.now();
  // In an order of their own, each second once.
  const ttlOf = (id: number): number => 1000 + ((id * 7919) % LEASES);
  for (let id = 1; id <= LEASES; id++) leases.grant(0, id, ttlOf(id), nowMs);
  const server = await serveEtcd(opened, { listen: [{}] });
  t.after(() => server.close());
  const peer = new Peer(server.addresses[0]?.port ?? 0);
  t.after(() => peer.close());
  let turns = 0;
  const change = (): void => {
    leases.revoke(leases.find(0, ++turns));
    leases.grant(0, LEASES + turns, 5, nowMs);
    leases.keepAlive(leases.find(0, LEASES - turns), nowMs + 1e9);
    changing = setImmediate(change);
  };
  let changing = setImmediate(change);
  const answer = await peer.call('Lease/LeaseLeases', []);
  clearImmediate(changing);
  assert(Buffer.isBuffer(answer), String(answer));
  const ids = new Message(answer).messages(2).map((lease) => Number(lease.number(1)));
  assert.equal(new Set(ids).size, ids.length);
  assert.equal(ids.length, LEASES);
  const settled = ids.filter((id) => id > turns && id < LEASES - turns);
  assert.equal(settled.length, LEASES - 2 * turns - 1);
  assert.deepEqual(
    settled,
    settled.toSorted((a, b) => ttlOf(a) - ttlOf(b)),
  );
});

test('a list of leases is put in order and written in small steps', () => {
  const store = new Store({ dataDir: null, durability: 'none', prefixes: [] }, 1);
  for (let id = 1; id <= LEASES; id++) store.leases.grant(0, id, 1000, id);
  const list = new LeaseList(store.leases.copyRows(), Buffer.alloc(LEASES * 14), 0);
  let steps = 1;
  while (!list.step()) steps++;
  assert(steps >= 15, `${steps} steps`);
});
