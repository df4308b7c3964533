/** Who leaves while it waits for a seat, and how much memory those that wait may hold. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Store } from '@megaplane/store/store';
import { createApiServer } from '../server/assembly.ts';
import { ConnectionModel, ExchangeModel } from '../testing/exchange-model.sim.ts';
import { EmbeddedStorage } from '../storage/embedded/embedded-storage.ts';
import { identityOf } from '../request/identity.ts';
import { WAITING_BYTES_MAX } from './fairness.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';

/** A server whose turn is over at once, so that all who come wait. */
function crowded() {
  const store = new Store({ dataDir: null, durability: 'none', prefixes: [] }, 1);
  const later: (() => void)[] = [];
  let nowMs = 1_800_000_000_000;
  const edge = {
    nowMs: () => Math.floor(nowMs),
    below: () => 0,
    uuid: () => '00000000-0000-4000-8000-000000000000',
    defer: (work: () => void) => void later.push(work),
    deferPiece: (work: () => void) => void later.push(work),
  };
  const api = createApiServer({
    storage: new EmbeddedStorage(store, () => Promise.resolve()),
    edge,
    address: '',
    clockMs: () => (nowMs += 5),
    tracking: { readsMax: 4, writesMax: 4 },
    tokenReaders: () => [(name) => identityOf(name, [])],
    authorizers: [() => ({ allowed: true, reason: 'test' })],
  });
  const { fairness } = api.parts;
  assert(fairness);
  const ask = (user: string, body: unknown): ExchangeModel => {
    const fields = { 'content-type': 'application/json', authorization: `Bearer ${user}` };
    const exchange = new ExchangeModel('POST', MAPS, body, fields, new ConnectionModel(false));
    api.handle(exchange);
    return exchange;
  };
  const waiting = (): number =>
    fairness.config.levels.all().reduce((sum, level) => sum + level.waiting, 0);
  return { ask, waiting };
}

test('a request whose client has left waits no longer', () => {
  const { ask, waiting } = crowded();
  const asked = Array.from({ length: 6 }, () => ask('joe', { metadata: { name: 'a' } }));
  const queued = asked.filter(({ status }) => status === 0);
  const before = waiting();
  assert(before > 0 && queued.length >= before, `${before} wait`);
  for (const exchange of queued) {
    exchange.isReset = true;
    exchange.onClose?.('disconnected');
  }
  assert.equal(waiting(), 0);
});

test('a request whose client sends nothing more does not wait for a seat', () => {
  const { ask, waiting } = crowded();
  const asked = Array.from({ length: 6 }, () => ask('joe', { metadata: { name: 'a' } }));
  const queued = asked.filter(({ status }) => status === 0);
  assert(waiting() > 0);
  for (const exchange of queued) exchange.onHalfClose?.();
  assert.equal(waiting(), 0);
  assert.deepEqual(new Set(queued.map(({ status }) => status)), new Set([429]));
});

test('bodies that wait are held in shares: one alone leaves as much as it has to others', () => {
  const { ask, waiting } = crowded();
  const text = 'x'.repeat(2 * 1024 * 1024);
  const body = { metadata: { name: 'a' }, data: { text } };
  ask('joe', body);
  let count = 0;
  for (; count < 200 && ask('joe', body).status === 0; count++);
  const held = count * text.length;
  assert(held <= WAITING_BYTES_MAX / 2, `${held} bytes of one`);
  assert(held > WAITING_BYTES_MAX / 4, `${held} bytes of one`);
  const before = waiting();
  assert.equal(ask('ann', body).status, 0);
  assert.equal(waiting(), before + 1);
});
