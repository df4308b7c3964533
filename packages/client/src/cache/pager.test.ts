import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeServer } from '../../test/fake-server.ts';
import { readPages, type PagerOptions, type PagerResult } from './pager.ts';

interface Reading {
  readonly names: string[];
  result: PagerResult | null;
}

function begin(server: FakeServer, more: Partial<PagerOptions> = {}): Reading {
  const reading: Reading = { names: [], result: null };
  const options: PagerOptions = {
    client: server,
    path: '/api/v1/pods',
    onItem: (bytes, start, end) => {
      const object = JSON.parse(Buffer.from(bytes.subarray(start, end)).toString());
      reading.names.push(object.metadata.name);
    },
    ...more,
  };
  void readPages(options).then((result) => (reading.result = result));
  return reading;
}

async function settle(server: FakeServer): Promise<void> {
  for (let turn = 0; turn < 30; turn++) {
    while (server.pumpAll(777));
    server.timers.advance(1000);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function filled(count: number): FakeServer {
  const server = new FakeServer();
  for (let i = 0; i < count; i++) server.put('a', `pod-${i}`, '"}],{[\\"');
  return server;
}

test('a collection is read page by page, each item once', async () => {
  const server = filled(25);
  const reading = begin(server, { limit: 10, labelSelector: 'a=b' });
  await settle(server);
  assert.equal(reading.names.length, 25);
  assert.equal(new Set(reading.names).size, 25);
  assert.deepEqual(reading.result, { ok: true, resourceVersion: '125', items: 25 });
  assert.equal(server.requests.length, 3);
  assert.match(server.requests[0] ?? '', /\?labelSelector=a%3Db&limit=10$/);
  assert.match(server.requests[2] ?? '', /&continue=token-/);
});

test('an empty collection is no failure', async () => {
  const server = filled(0);
  const reading = begin(server);
  await settle(server);
  assert.deepEqual(reading.result, { ok: true, resourceVersion: '100', items: 0 });
});

test('failures that pass are sat out', async () => {
  const server = filled(25);
  server.refusal = [503, 1];
  const reading = begin(server, { limit: 10 });
  server.pumpAll(1000);
  server.refusal = null;
  server.timers.advance(2000);
  server.pumpAll(100);
  server.cut('connection lost');
  await settle(server);
  assert.equal(reading.result?.ok, true);
  assert.equal(new Set(reading.names).size, 25);
});

test('failures that stay are told', async () => {
  const server = filled(3);
  server.refusal = [403, 0];
  const refused = begin(server);
  await settle(server);
  assert.ok(
    refused.result?.ok === false && refused.result.status.message === 'refused by the test',
  );
  server.refusal = null;
  server.isDown = true;
  const down = begin(server);
  await settle(server);
  await settle(server);
  assert.match(down.result?.ok === false ? (down.result.status.message ?? '') : '', /cannot reach/);
});

test('an answer that is no list is told', async () => {
  const server = filled(0);
  const reading = begin(server);
  for (const stream of server.streams) stream.pending = Buffer.from('{"kind":"Pod"}');
  await settle(server);
  assert.match(
    reading.result?.ok === false ? (reading.result.status.message ?? '') : '',
    /no list of objects/,
  );
});
