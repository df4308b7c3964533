import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClient } from '../../test/fake-client.ts';
import { SimulatorMetrics } from '../metrics/simulator-metrics.ts';
import { CsiNodes } from './csi-nodes.ts';

function made(count: number): { readonly client: FakeClient; readonly nodes: CsiNodes } {
  const client = new FakeClient(5);
  const nodes = new CsiNodes(client, new SimulatorMetrics());
  for (let index = 0; index < count; index++) nodes.add(`n${index}`, `u${index}`);
  return { client, nodes };
}

test('a CSINode is read, and made where there is none', () => {
  const { client, nodes } = made(2);
  nodes.tick();
  assert.equal(client.answer(200).path, '/apis/storage.k8s.io/v1/csinodes/n0');
  assert.equal(client.answer(404).method, 'GET');
  const posted = client.answer(201);
  assert.equal(posted.method, 'POST');
  const { metadata } = JSON.parse(posted.body);
  assert.deepEqual([metadata.name, metadata.ownerReferences[0].uid], ['n1', 'u1']);
  assert.match(Object.values(metadata.annotations).join(''), /kubernetes.io\/cinder,/);
  client.pass(100_000);
  nodes.tick();
  assert.equal(client.sent.length, 0);
});

test('thousands at once are made a few at a time, whatever the client takes', () => {
  const { client, nodes } = made(3000);
  client.queueMax = 150;
  let most = 0;
  const posted = new Set<string>();
  for (let turn = 0; turn < 200; turn++) {
    nodes.tick();
    most = Math.max(most, client.sent.length);
    while (client.sent.length > 0) {
      const { method, body } = client.sent[0] ?? { method: '', body: '' };
      client.answer(method === 'GET' ? 404 : 201);
      if (method === 'POST') posted.add(body);
    }
    client.pass(50);
  }
  assert.equal(posted.size, 3000);
  assert.ok(most <= 100, `${most}`);
});

test('a server in trouble is asked ever more seldom, and not for nodes that are gone', () => {
  const { client, nodes } = made(2);
  let asked = 0;
  const live = (durationMs: number, status: number): void => {
    for (let passed = 0; passed < durationMs; passed += 100) {
      nodes.tick();
      for (; client.sent.length > 0; asked++) client.answer(status);
      client.pass(100);
    }
  };
  live(60_000, 429);
  assert.ok(asked >= 10 && asked <= 16, `${asked}`);
  nodes.remove('n1');
  asked = 0;
  live(200_000, 200);
  assert.equal(asked, 1);
});
