import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Timers } from '@megaplane/client/client';
import { QueueBoard } from './queue-metrics.ts';
import { Workers, type WorkResult } from './workers.ts';

/** A clock that goes on while work is done, and timers that fire when they are told. */
class WorkedTimers implements Timers {
  workedMs = 0;
  readonly waiting: (() => void)[] = [];

  nowMs(): number {
    return this.workedMs;
  }

  wallMs(): number {
    return this.workedMs;
  }

  after(_delayMs: number, fire: () => void): () => void {
    this.waiting.push(fire);
    return () => void this.waiting.splice(this.waiting.indexOf(fire), 1);
  }
}

test('keys that come back sooner than a round takes let events be read', async () => {
  const KEYS = 50;
  const timers = new WorkedTimers();
  let rounds = 0;
  const work = async (): Promise<WorkResult> => {
    timers.workedMs++;
    // without a turn between them they would go on for ever
    if (++rounds > KEYS * 10) workers.stop();
    return { againMs: 5 };
  };
  const metrics = new QueueBoard().queue('test');
  const workers = new Workers<number>(timers, 5, work, assert.ifError, metrics);
  workers.start();
  for (let key = 0; key < KEYS; key++) workers.add(key);
  await nextTurn();
  assert.equal(rounds, KEYS);
  assert.equal(timers.waiting.length, 1);
  timers.waiting[0]?.();
  await nextTurn();
  // those that were due when the timer fired, once each
  assert.ok(rounds > KEYS && rounds <= 2 * KEYS, `${rounds} rounds`);
  workers.stop();
});
