import assert from 'node:assert/strict';
import { afterEach, mock, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemTimers } from './system-timers.ts';

const HOUR_MS = 3_600_000;

afterEach(() => mock.restoreAll());

/** The wall clock is looked at anew after this. */
const CHECK_MS = 6;

/** Sets the machine's clock by so much, and waits until that is seen. */
async function setClock(byMs: number): Promise<void> {
  mock.restoreAll();
  const read = Date.now.bind(Date);
  mock.method(Date, 'now', () => read() + byMs);
  const setMs = performance.now();
  while (performance.now() - setMs < CHECK_MS) await sleep(1);
}

test('stamps come back with a clock that was set ahead; durations are measured on', async () => {
  const before = { nowMs: systemTimers.nowMs(), wallMs: systemTimers.wallMs() };
  await setClock(HOUR_MS);
  const ahead = { nowMs: systemTimers.nowMs(), wallMs: systemTimers.wallMs() };
  assert.ok(ahead.nowMs - before.nowMs >= HOUR_MS - 1000);
  assert.ok(ahead.wallMs - before.wallMs >= HOUR_MS);
  await setClock(0);
  const after = { nowMs: systemTimers.nowMs(), wallMs: systemTimers.wallMs() };
  assert.ok(after.nowMs >= ahead.nowMs);
  assert.ok(after.nowMs - ahead.nowMs < HOUR_MS / 60);
  assert.ok(Math.abs(after.wallMs - before.wallMs) < HOUR_MS / 60);
});
