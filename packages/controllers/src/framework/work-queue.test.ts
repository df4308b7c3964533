import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
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

test('keys come in the order in which they became ready, also after some were dropped', () => {
  const step = fc.tuple(fc.constantFrom('add', 'add', 'drop', 'take', 'take'), fc.nat(40));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 6000, size: 'max' }), (steps) => {
      const queue = new WorkQueue<number>();
      let model: number[] = [];
      for (const [what, key] of steps) {
        if (what === 'add' && !model.includes(key)) model.push(key);
        if (what === 'add') queue.add(key);
        if (what === 'drop') model = model.filter((one) => one !== key);
        if (what === 'drop') queue.drop(key);
        if (what !== 'take') continue;
        const taken = queue.take(0);
        assert.equal(taken, model.shift());
        if (taken !== undefined) queue.done(taken);
      }
      assert.equal(queue.ready, model.length);
    }),
    { numRuns: 20 },
  );
});

test('failures wait twice as long each time, up to 1,000 s, until one succeeds', () => {
  const queue = new WorkQueue<string>();
  queue.add('a');
  const waits: number[] = [];
  let nowMs = 0;
  for (let i = 0; i < 20; i++) {
    assert.equal(queue.take(nowMs), 'a');
    queue.retry('a', nowMs);
    waits.push(queue.nextMs - nowMs);
    assert.equal(queue.take(queue.nextMs - 1), undefined);
    nowMs = queue.nextMs;
  }
  assert.deepEqual(waits.slice(0, 4), [5, 10, 20, 40]);
  assert.deepEqual(waits.slice(16, 19), [327_680, 655_360, 1_000_000]);
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

test('keys become ready in the order of their times, whatever is added and dropped', () => {
  const step = fc.oneof(
    fc.record({ at: fc.nat(50), key: fc.nat(9) }),
    fc.record({ drop: fc.nat(9) }),
    fc.record({ until: fc.nat(60) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const queue = new WorkQueue<number>();
      const model = new Map<number, number>();
      for (const one of steps) {
        if ('drop' in one) {
          queue.drop(one.drop);
          model.delete(one.drop);
        } else if ('at' in one) {
          queue.addAt(one.key, one.at);
          model.set(one.key, Math.min(one.at, model.get(one.key) ?? Infinity));
        } else {
          const due = [...model].filter(([, atMs]) => atMs <= one.until);
          const taken: number[] = [];
          for (let key = queue.take(one.until); key !== undefined; key = queue.take(one.until)) {
            taken.push(key);
            queue.done(key);
            model.delete(key);
          }
          const ascending = (a: number, b: number): number => a - b;
          assert.deepEqual(taken.sort(ascending), due.map(([key]) => key).sort(ascending));
        }
        assert.equal(queue.nextMs, Math.min(Infinity, ...model.values()));
        assert.equal(queue.size, model.size);
      }
    }),
  );
});
