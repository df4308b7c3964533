import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NodeValues, type NodeRows } from './node-values.ts';

const rows: NodeRows = {
  idLimit: 4,
  has: (id) => id !== 1,
  isReady: (id) => id === 0,
  dueMs: (id) => [900, 0, 5000, 0][id] ?? 0,
};

function node(zone: string): Buffer {
  return Buffer.from(`{"metadata":{"labels":{"topology.kubernetes.io/zone":"${zone}"}}}`);
}

test('each way has its byte, and rows without a node are zero', () => {
  const values = new NodeValues();
  for (const [id, zone] of [
    [0, 'a'],
    [2, 'b'],
    [3, 'a'],
  ] as const) {
    const bytes = node(zone);
    values.onNode(id, bytes, 0, bytes.length);
  }
  values.onPod(2, 1);
  values.onPod(2, 1);
  values.onPod(3, 1);
  values.onPod(3, -1);
  values.onPod(3, -1);
  assert.deepEqual([...values.values('ready', rows, 1000)], [1, 0, 2, 2]);
  assert.deepEqual([...values.values('zone', rows, 1000)], [1, 0, 2, 1]);
  assert.deepEqual([...values.values('pods', rows, 1000)], [1, 0, 3, 1]);
  assert.deepEqual([...values.values('lease', rows, 1000)], [2, 0, 1, 255]);
  assert.equal(values.values('lease', rows, 1e9)[0], 255);
});

test('a node without a zone has one of its own, and many zones share the last number', () => {
  const values = new NodeValues();
  const zoneOf = (bytes: Buffer): number => {
    values.onNode(0, bytes, 0, bytes.length);
    return values.values('zone', rows, 0)[0] ?? -1;
  };
  assert.equal(zoneOf(Buffer.from('{}')), 1);
  const cut = Buffer.from('{"topology.kubernetes.io/zone":"never ends');
  assert.equal(zoneOf(cut), 1);
  for (let zone = 0; zone < 500; zone++) assert(zoneOf(node(`z${zone}`)) <= 251);
});
