import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Random } from '../random/random.ts';
import { TimerWheel } from './wheel.ts';

const RUNS = process.env['MEGAPLANE_LONG'] === '1' ? 20_000 : 400;
const TIMERS = 12;

function never(id: number): void {
  assert.fail(`timer ${id} fired`);
}

const pause = fc.oneof(
  fc.integer({ min: 0, max: 300 }),
  fc.integer({ min: 0, max: 20_000 }),
  fc.integer({ min: 0, max: 10 ** 9 }),
  fc.constantFrom(0, 1, 63, 64, 127, 128, 129, 4095, 4096, 8191, 8192, 8193, 10 ** 13),
);
const operation = fc.record({
  kind: fc.constantFrom('arm', 'arm', 'cancel', 'advance', 'advance'),
  id: fc.nat(TIMERS - 1),
  ms: pause,
  fireMax: fc.constantFrom(1, 2, Infinity, Infinity),
});

test('timers fire as in a plain table of moments: never early, all due, in order', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 10_000 }), fc.array(operation), (startMs, operations) => {
      const wheel = new TimerWheel({ startMs });
      const model = new Map<number, number>();
      let nowMs = startMs;
      for (const { kind, id, ms, fireMax } of operations) {
        if (kind === 'arm') {
          wheel.arm(id, nowMs + ms);
          model.set(id, nowMs + ms);
        } else if (kind === 'cancel') {
          assert.equal(wheel.cancel(id), model.delete(id));
        } else {
          nowMs += ms;
          const due = [...model.values()].filter((dueMs) => dueMs <= nowMs).sort((a, b) => a - b);
          const firedAt: number[] = [];
          const fire = (fired: number): void => {
            firedAt.push(model.get(fired) ?? NaN);
            model.delete(fired);
          };
          const count = wheel.advance(nowMs, fire, fireMax);
          assert.equal(count, firedAt.length);
          assert.deepEqual(firedAt, due.slice(0, fireMax));
        }
        assert.equal(wheel.size, model.size);
        assert.equal(wheel.isArmed(id), model.has(id));
        const soonest = Math.min(...model.values());
        assert.ok(wheel.nextDueMs() <= Math.max(soonest, nowMs), 'the shell would sleep too long');
      }
    }),
    { numRuns: RUNS },
  );
});

test('crowds of timers move down the levels in irregular steps and all fire in time', () => {
  const random = new Random(8);
  const wheel = new TimerWheel({ startMs: 0 });
  const crowds = [100, 8191, 8193, 20_580, 20_600, 300_000, 524_288, 600_001];
  const moment = (id: number): number => (crowds[id % crowds.length] ?? 0) + (id % 7);
  const due = Array.from({ length: 4000 }, (_, id) => moment(id));
  for (const [id, dueMs] of due.entries()) wheel.arm(id, dueMs);
  let beforeMs = -1;
  for (let nowMs = 0; wheel.size > 0; nowMs += 1 + random.below(300)) {
    assert.ok(nowMs < 700_000, `${wheel.size} timers never fired`);
    wheel.advance(nowMs, (id) => {
      const dueMs = due[id] ?? NaN;
      assert.ok(dueMs <= nowMs && dueMs > beforeMs, `due ${dueMs} fired at ${nowMs}`);
    });
    beforeMs = nowMs;
  }
});

test('a shell that sleeps until nextDueMs fires each timer at its moment', () => {
  const wheel = new TimerWheel({ startMs: 5000 });
  const moments = [5000, 5001, 5130, 13_500, 600_000, 90_000_000, 10 ** 12];
  for (const [id, dueMs] of moments.entries()) wheel.arm(id, dueMs);
  const fired: number[] = [];
  let wakes = 0;
  while (wheel.size > 0) {
    wakes++;
    const nowMs = wheel.nextDueMs();
    wheel.advance(nowMs, (id) => {
      assert.equal(nowMs, moments[id]);
      fired.push(id);
    });
  }
  assert.deepEqual(fired, [0, 1, 2, 3, 4, 5, 6]);
  assert.ok(wakes < 100, `${wakes} wakes`);
});

test('a timer that arms itself for the past fires once a tick, not for ever', () => {
  const wheel = new TimerWheel({ startMs: 0 });
  wheel.arm(0, 0);
  assert.equal(
    wheel.advance(9, (id) => wheel.arm(id, 0)),
    10,
  );
  assert.equal(wheel.size, 1);
});

test('a clock that goes back fires nothing, and a stall never shows as a burst', () => {
  const wheel = new TimerWheel({ startMs: 1000 });
  for (let id = 0; id < 1000; id++) wheel.arm(id, 1000 + id);
  assert.equal(wheel.advance(900, never), 0);
  const order: number[] = [];
  const fire = (id: number): number => order.push(id);
  assert.equal(wheel.advance(10_000_000, fire, 300), 300);
  assert.equal(wheel.advance(9_000_000, fire, 300), 300);
  assert.equal(wheel.advance(10_000_000, fire, 300), 300);
  assert.equal(wheel.advance(10_000_000, fire, 300), 100);
  assert.deepEqual(order, [...Array.from({ length: 1000 }).keys()]);
});

test('timers of a wheel with coarse ticks are late by less than a tick', () => {
  const wheel = new TimerWheel({ startMs: 0, tickMs: 50 });
  wheel.arm(0, 101);
  assert.equal(wheel.advance(149, never), 0);
  assert.equal(
    wheel.advance(150, () => {}),
    1,
  );
  assert.equal(wheel.dueMs(0), 101);
});

test('periods of many timers are kept for weeks, each fired the same number of times', () => {
  const random = new Random(5);
  const wheel = new TimerWheel({ startMs: 0, tickMs: 1000 });
  const fired = new Uint32Array(2000);
  for (let id = 0; id < fired.length; id++) wheel.arm(id, random.below(600_000));
  for (let nowMs = 0; nowMs <= 40 * 86_400_000; nowMs += 30_000_000) {
    wheel.advance(nowMs, (id) => {
      fired[id] = (fired[id] ?? 0) + 1;
      wheel.arm(id, wheel.dueMs(id) + 600_000_000);
    });
  }
  assert.deepEqual([...new Set(fired)], [6]);
});
