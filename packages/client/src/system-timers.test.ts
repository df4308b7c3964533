import assert from 'node:assert/strict';
import { afterEach, mock, test } from 'node:test';
import { systemTimers } from './system-timers.ts';

const HOUR_MS = 3_600_000;

afterEach(() => mock.restoreAll());

/** Sets the machine's clock by so much. */
function setClock(byMs: number): void {
  mock.restoreAll();
  const read = Date.now.bind(Date);
  mock.method(Date, 'now', () => read() + byMs);
}

test('stamps come back with a clock that was set ahead; durations are measured on', () => {
  const before = { nowMs: systemTimers.nowMs(), wallMs: systemTimers.wallMs() };
  setClock(HOUR_MS);
  const ahead = { nowMs: systemTimers.nowMs(), wallMs: systemTimers.wallMs() };
  assert.ok(ahead.nowMs - before.nowMs >= HOUR_MS - 1000);
  assert.ok(ahead.wallMs - before.wallMs >= HOUR_MS);
  setClock(0);
  const after = { nowMs: systemTimers.nowMs(), wallMs: systemTimers.wallMs() };
  assert.ok(after.nowMs >= ahead.nowMs);
  assert.ok(after.nowMs - ahead.nowMs < HOUR_MS / 60);
  assert.ok(Math.abs(after.wallMs - before.wallMs) < HOUR_MS / 60);
});
