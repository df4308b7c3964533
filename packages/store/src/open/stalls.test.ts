import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Stalls } from './stalls.ts';

/** Looks after so many milliseconds each, and what may be done in them. */
function looks(...gapsMs: number[]): string {
  let nowMs = 50_000;
  const stalls = new Stalls(nowMs);
  return gapsMs.map((gapMs) => (stalls.look((nowMs += gapMs)) ? 'ends' : 'waits')).join(' ');
}

test('a process that looks as it should ends leases at once, from its first look on', () => {
  assert.equal(looks(0, 100, 130, 900, 100), 'ends ends ends ends ends');
});

test('after a pause some looks and a second go by before any lease is ended', () => {
  assert.equal(looks(0, 60_000, 1, 1, 1, 1), 'ends waits waits waits waits waits');
  assert.equal(looks(0, 60_000, 500, 500, 1, 1), 'ends waits waits waits ends ends');
});

test('a pause before the first look is one', () => {
  assert.equal(looks(4000, 1, 1, 1), 'waits waits waits waits');
});

test('a pause that begins in the hold of another is followed by a look that ends nothing', () => {
  assert.equal(looks(0, 5000, 100, 100, 4000, 1), 'ends waits waits waits waits ends');
});

test('a process that is late all the time ends leases all the same', () => {
  const all = looks(...Array.from({ length: 40 }, () => 5000));
  assert.equal(all.split('ends').length - 1, 8);
});
