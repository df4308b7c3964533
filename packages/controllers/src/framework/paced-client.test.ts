import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeApi } from '../../test/fake-api.ts';
import { PacedClient } from './paced-client.ts';

test('requests beyond the burst wait for their turn, in order', async () => {
  const api = new FakeApi();
  const client = new PacedClient(api, { perSecond: 10, burst: 3 });
  const begun: string[] = [];
  const ask = async (name: string): Promise<void> => {
    await client.request({ method: 'GET', path: `/api/v1/nodes/${name}` });
    begun.push(name);
  };
  const all = Promise.all(['a', 'b', 'c', 'd', 'e'].map(ask));
  await api.advance(0);
  assert.deepEqual(begun, ['a', 'b', 'c']);
  await api.advance(99);
  assert.deepEqual(begun, ['a', 'b', 'c']);
  await api.advance(1);
  assert.deepEqual(begun, ['a', 'b', 'c', 'd']);
  await api.advance(100);
  await all;
  assert.deepEqual(begun, ['a', 'b', 'c', 'd', 'e']);
});

test('bytes that wait are kept as they were given', async () => {
  const api = new FakeApi();
  const client = new PacedClient(api, { perSecond: 1, burst: 1 });
  const event = (reason: string): Buffer => Buffer.from(JSON.stringify({ reason, message: '' }));
  const body = event('First');
  const path = '/api/v1/events';
  const type = 'application/json';
  let done = 0;
  for (const reason of ['First', 'Other']) {
    event(reason).copy(body);
    assert(client.send('POST', path, type, body, () => done++));
  }
  event('Never').copy(body);
  await api.advance(1_000);
  assert.deepEqual(api.events, ['First: ', 'Other: ']);
  assert.equal(done, 2);
});

test('who was refused is told when there is room again', async () => {
  const api = new FakeApi();
  const client = new PacedClient(api, { perSecond: 10_000, burst: 20 });
  const body = '{"reason":"Full","message":""}';
  let told = 0;
  let done = 0;
  let taken = 0;
  client.onRoom(() => told++);
  while (client.send('POST', '/api/v1/events', 'application/json', body, () => done++)) taken++;
  assert.equal(taken, 10_020);
  assert.equal(client.room(), 0);
  await api.advance(400);
  assert.equal(told, 0, 'more than half still wait');
  await api.advance(300);
  assert.equal(told, 1);
  assert(client.room() > 0);
  await api.advance(400);
  assert.equal(told, 1);
  assert.equal(done, taken);
});
