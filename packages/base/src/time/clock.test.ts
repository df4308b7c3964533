import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SimulatedClock } from './clock.ts';
import { systemClock } from './system-clock.ts';

test('a simulated clock moves only when told, and monotonic time ignores the wall', () => {
  const clock = new SimulatedClock(1000);
  assert.deepEqual([clock.nowMs(), clock.monotonicMs()], [1000, 0]);
  clock.advance(250.5);
  assert.deepEqual([clock.nowMs(), clock.monotonicMs()], [1250.5, 250.5]);
  clock.setWall(7);
  assert.deepEqual([clock.nowMs(), clock.monotonicMs()], [7, 250.5]);
  assert.throws(() => clock.advance(-1), /forward/);
  assert.throws(() => clock.advance(NaN), /forward/);
});

test('the clock of the machine reads this century and goes forward', () => {
  assert.ok(systemClock.nowMs() > Date.UTC(2026, 0) && systemClock.nowMs() < Date.UTC(2100, 0));
  const before = systemClock.monotonicMs();
  assert.ok(systemClock.monotonicMs() >= before);
});
