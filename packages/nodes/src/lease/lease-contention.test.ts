import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LeaseContention } from './lease-contention.ts';

test('leases that somebody else renews, too, are told of, single conflicts are not', () => {
  const told: number[] = [];
  const contention = new LeaseContention(10_000, (conflicts) => told.push(conflicts));
  let nowMs = 0;
  const periods = (count: number, conflicts: number): void => {
    for (let period = 0; period < count; period++) {
      for (let conflict = 0; conflict < conflicts; conflict++) contention.conflict(conflict, nowMs);
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

test('a row whose lease somebody else renews period after period is told apart', () => {
  const contention = new LeaseContention(10_000, () => {});
  const at = (seconds: number): boolean => contention.conflict(7, seconds * 1000);
  assert.deepEqual([at(0), at(1), at(10), at(11)], [false, false, false, false]);
  assert(at(20));
  contention.forget(7);
  assert.deepEqual([at(30), at(40)], [false, false]);
  // a period without one, and it begins anew
  assert.deepEqual([at(65), at(75), at(85)], [false, false, true]);
});
