import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { grows, slopeOf } from './slopes.ts';

/** A series that rises by `rise` a step, with noise of up to `noise` to both sides. */
function series(rise: number, noise: number, count: number): [number, number][] {
  const random = new Random(7);
  return Array.from({ length: count }, (_, x) => {
    return [x, 1000 + rise * x + (random.below(2001) / 1000 - 1) * noise];
  });
}

test('a slope is found, and its error tells growth from noise', () => {
  const exact = slopeOf(series(3, 0, 10));
  assert.ok(Math.abs(exact.slope - 3) < 1e-9 && exact.error < 1e-9);
  assert.equal(grows(exact, 2.9), true);
  assert.equal(grows(exact, 3.1), false);
  assert.equal(grows(slopeOf(series(0, 500, 20)), 0), false);
  assert.equal(grows(slopeOf(series(100, 500, 20)), 10), true);
});

test('too few points say nothing', () => {
  assert.equal(grows(slopeOf(series(5, 0, 2)), 0), false);
  assert.equal(grows(slopeOf([]), 0), false);
});
