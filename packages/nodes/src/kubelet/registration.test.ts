import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClient } from '../../test/fake-client.ts';
import { NodeBodies } from './node-object.ts';
import { Registration, RETRY_MS, RETRY_MS_MAX, UNDER_WAY_MAX } from './registration.ts';
import { SimulatorMetrics } from '../metrics/simulator-metrics.ts';

function registering(count: number) {
  const client = new FakeClient(7);
  const lines: string[] = [];
  const registration = new Registration({
    client,
    bodies: new NodeBodies({ template: {}, zones: ['a'] }),
    count,
    part: { index: 1, count: 2 },
    metrics: new SimulatorMetrics(),
    exists: (name) => name === 'node-3',
    log: (level, message) => void lines.push(`${level} ${message}`),
  });
  return { client, registration, lines };
}

test('registration is under way until each node of its part is made, there, or refused', () => {
  const { client, registration, lines } = registering(8);
  assert.equal(registration.isUnderWay, true, 'nothing was sent yet');
  registration.start();
  const names = client.sent.map(({ body }) => /"name":"([^"]*)"/.exec(body)?.[1]);
  assert.deepEqual(names, ['node-1', 'node-5', 'node-7']);
  client.answer(201);
  client.answer(503);
  client.answer(422, { message: 'no' });
  assert.deepEqual(lines, ['error node-7 is refused (422): {"message":"no"}']);
  assert.equal(registration.isUnderWay, true, 'one is tried again');
  client.pass(RETRY_MS * 2);
  assert.equal(registration.isUnderWay, true, 'and waits for its answer');
  assert.match(client.sent[0]?.body ?? '', /"node-7"/);
  client.answer(422);
  client.answer(409);
  assert.equal(registration.isUnderWay, false);
});

test('a node that was refused is tried again, and told of once', () => {
  const { client, registration, lines } = registering(2);
  registration.start();
  client.answer(403, { message: 'a webhook said no' });
  assert.equal(registration.isUnderWay, false);
  client.pass(2 * RETRY_MS);
  client.answer(403, { message: 'a webhook said no' });
  client.pass(4 * RETRY_MS);
  client.answer(201);
  assert.equal(lines.length, 1);
  assert.equal(client.sent.length, 0);
});

test('a server that refuses all of them is asked ever more seldom, and then all are made', () => {
  const { client, registration } = registering(8 * UNDER_WAY_MAX);
  registration.start();
  let asked = 0;
  for (let passedMs = 0; passedMs < 60_000; passedMs += 100) {
    for (; client.sent.length > 0; asked++) client.answer(asked % 2 === 0 ? 500 : 403);
    client.pass(100);
  }
  // at once, and after 0.5 to 1, 1 to 2 ... 8 to 16 s
  const rounds = 5 + 60_000 / RETRY_MS_MAX;
  assert.ok(asked <= rounds * UNDER_WAY_MAX, `${asked} requests`);
  for (let passedMs = 0; passedMs < 3 * RETRY_MS_MAX; passedMs += 100) {
    while (client.sent.length > 0) client.answer(201);
    client.pass(100);
  }
  assert.equal(registration.isUnderWay, false);
});

test('one node that is always refused does not hold the others up', () => {
  const { client, registration } = registering(64 * UNDER_WAY_MAX);
  registration.start();
  let refused = 0;
  for (let passedMs = 0; passedMs < 5000; passedMs += 100) {
    while (client.sent.length > 0) {
      const isBad = client.sent[0]?.body.includes('"node-1"') === true;
      if (isBad) refused++;
      client.answer(isBad ? 422 : 201);
    }
    client.pass(100);
  }
  assert.equal(registration.isUnderWay, false);
  assert.ok(refused >= 2 && refused <= 5, `${refused}`);
});

test('as many registrations are under way as keep a server busy, and no more', () => {
  const { client, registration } = registering(4 * UNDER_WAY_MAX);
  registration.start();
  assert.equal(client.sent.length, UNDER_WAY_MAX);
  while (client.sent.length > 1) client.answer(201);
  assert.equal(registration.isUnderWay, true);
  client.answer(201);
  assert.equal(registration.isUnderWay, false);
});
