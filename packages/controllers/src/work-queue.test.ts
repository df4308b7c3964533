import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WorkQueue } from './work-queue.ts';

test('a key is queued once and never worked on twice at a time', () => {
  const queue = new WorkQueue<string>();
  queue.add('a');
  queue.add('a');
  assert.equal(queue.take(0), 'a');
  queue.add('a');
  assert.equal(queue.take(0), undefined);
  queue.done('a');
  assert.equal(queue.take(0), 'a');
  queue.done('a');
  assert.equal(queue.take(0), undefined);
});

test('failures wait twice as long each time, up to a minute, until one succeeds', () => {
  const queue = new WorkQueue<string>();
  queue.add('a');
  const waits: number[] = [];
  let nowMs = 0;
  for (let i = 0; i < 16; i++) {
    assert.equal(queue.take(nowMs), 'a');
    queue.retry('a', nowMs);
    waits.push(queue.nextMs - nowMs);
    assert.equal(queue.take(queue.nextMs - 1), undefined);
    nowMs = queue.nextMs;
  }
  assert.deepEqual(waits.slice(0, 4), [5, 10, 20, 40]);
  assert.equal(waits.at(-1), 60_000);
  assert.equal(queue.take(nowMs), 'a');
  queue.done('a');
  assert.equal(queue.failuresOf('a'), 0);
});

test('an appointment moves earlier but not later, and an addition overrides it', () => {
  const queue = new WorkQueue<string>();
  queue.addAt('a', 100);
  queue.addAt('a', 200);
  queue.addAt('a', 50);
  assert.equal(queue.nextMs, 50);
  queue.add('a');
  assert.equal(queue.take(0), 'a');
  assert.equal(queue.nextMs, Infinity);
  queue.addAt('b', 10);
  queue.drop('b');
  assert.equal(queue.take(100), undefined);
});
