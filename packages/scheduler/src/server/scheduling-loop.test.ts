import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { SchedulingLoop, type SchedulingLoopOptions } from './scheduling-loop.ts';

test('answers of extenders after the lease ended wait until the process leads', async () => {
  let mayDecide = true;
  let answered = 0;
  let question: object | null = null;
  const { promise, resolve } = Promise.withResolvers<[]>();
  const core = {
    get question(): object | null {
      return question;
    },
    attempt(): null {
      if (answered === 0) question = {};
      return null;
    },
    answer(): null {
      answered++;
      question = null;
      return null;
    },
  };
  const loop = new SchedulingLoop({
    core,
    writer: { hasRoom: true },
    clock: { nowMs: () => 0, monotonicMs: () => 0 },
    mayDecide: () => mayDecide,
    ask: () => promise,
    defer: (run: () => void) => run(),
  } as unknown as SchedulingLoopOptions);
  loop.setSynced();
  loop.setLeading(true);
  mayDecide = false;
  resolve([]);
  await nextTurn();
  loop.wake();
  await nextTurn();
  assert.equal(answered, 0);
  mayDecide = true;
  loop.wake();
  await nextTurn();
  assert.equal(answered, 1);
});
