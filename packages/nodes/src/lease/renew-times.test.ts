import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RenewTimes } from './renew-times.ts';

const HOUR_MS = 3_600_000;
const START_MS = Date.UTC(2026, 0, 2);

function scene(): {
  readonly times: RenewTimes;
  readonly pass: (ms: number, set?: number) => void;
} {
  let steadyMs = 5;
  let wallMs = START_MS;
  const pass = (ms: number, set = 0): void => {
    steadyMs += ms;
    wallMs += ms + set;
  };
  const times = new RenewTimes({ steadyMs: () => steadyMs, wallMs: () => wallMs });
  return { times, pass };
}

test('after the clock was set back times creep on, until it has come after them', () => {
  const { times, pass } = scene();
  assert.equal(times.next(), START_MS);
  pass(10_000, -HOUR_MS);
  assert.equal(times.next(), START_MS + 100);
  pass(10_000);
  assert.equal(times.next(), START_MS + 200);
  pass(HOUR_MS * 1.1);
  assert.equal(times.next(), START_MS + 20_000 + HOUR_MS * 0.1);
});

test('after the clock was set forward and back they are right again', () => {
  const { times, pass } = scene();
  pass(0, HOUR_MS);
  assert.equal(times.next(), START_MS + HOUR_MS);
  pass(1000, -HOUR_MS);
  assert.equal(times.next(), START_MS + HOUR_MS + 10);
  pass(HOUR_MS * 1.1);
  assert.equal(times.next(), START_MS + 1000 + HOUR_MS * 1.1);
});

test('leases from before are not renewed with earlier times, but for those of a far future', () => {
  const { times } = scene();
  const see = (renewTime: string): void => {
    const bytes = Buffer.from(JSON.stringify({ spec: { renewTime } }));
    times.observe(bytes, 0, bytes.length);
  };
  see('2026-01-02T00:30:00.000000Z');
  see('2026-01-02T00:10:00.000000Z');
  see('2036-01-02T00:10:00.000000Z');
  see('no time');
  assert.equal(times.next(), START_MS + HOUR_MS / 2 + 1);
});
