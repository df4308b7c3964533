import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Slices } from './slices.ts';

/** How many slices of a millisecond run after a turn of each length. */
function counts(turnsMs: readonly number[], most: number = Infinity): number[] {
  let nowMs = 1000;
  const slices = new Slices(() => nowMs);
  return turnsMs.map((turnMs) => {
    nowMs += turnMs;
    let count = 0;
    slices.run((startMs) => {
      assert.equal(startMs, nowMs);
      nowMs++;
      return ++count < most;
    });
    return count;
  });
}

test('after a short turn there is one slice, after long ones there are more, up to a limit', () => {
  assert.deepEqual(counts([0, 1, 3, 6, 9, 12, 15, 1000]), [1, 1, 1, 2, 3, 4, 4, 4]);
});

test('slices end with the work', () => {
  assert.deepEqual(counts([1, 12, 1000], 2), [1, 2, 2]);
});
