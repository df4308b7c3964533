import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LeaseContention } from './lease-contention.ts';

test('leases that somebody else renews, too, are told of, single conflicts are not', () => {
  const told: number[] = [];
  const contention = new LeaseContention(10_000, (conflicts) => told.push(conflicts));
  let nowMs = 0;
  const periods = (count: number, conflicts: number): void => {
    for (let period = 0; period < count; period++) {
      for (let conflict = 0; conflict < conflicts; conflict++) contention.conflict();
      nowMs += 10_000;
      contention.tick(nowMs, 100);
    }
  };
  periods(20, 5);
  periods(2, 100);
  periods(5, 0);
  assert.deepEqual(told, []);
  periods(10, 60);
  assert.deepEqual(told, [60]);
  periods(60, 60);
  assert.deepEqual(told, [60, 60]);
});
