import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClient } from '../test/fake-client.ts';
import { NodeBodies } from './node-object.ts';
import { Registration, RETRY_MS, UNDER_WAY_MAX } from './registration.ts';
import { SimulatorMetrics } from './simulator-metrics.ts';

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
  client.answer(409);
  assert.equal(registration.isUnderWay, false);
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
