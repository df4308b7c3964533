import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NodeTtl } from './node-ttl.ts';

test('the time to keep things grows and shrinks with the cluster, not at the same size', () => {
  const ttl = new NodeTtl();
  const changes: string[] = [];
  let before = ttl.seconds;
  const note = (count: number): void => {
    if (ttl.seconds !== before) changes.push(`${count}: ${ttl.seconds}`);
    before = ttl.seconds;
  };
  for (let count = 1; count <= 3000; count++) {
    ttl.nodeCame();
    note(count);
  }
  for (let count = 2999; count >= 0; count--) {
    ttl.nodeWent();
    note(count);
  }
  const up = ['101: 15', '501: 30', '1001: 60', '2001: 300'];
  assert.deepEqual(changes, [...up, '1799: 60', '899: 30', '449: 15', '89: 0']);
});
