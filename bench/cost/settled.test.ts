import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isAtRest } from './settled.ts';

const looks = (share: number, count: number): number[] =>
  Array.from({ length: count }, () => share);

test('processes are at rest that take next to nothing, or the same for long', () => {
  assert.equal(isAtRest([]), false);
  assert.equal(isAtRest(looks(0.01, 3)), false);
  assert.equal(isAtRest([1, 1, ...looks(0.01, 4)]), true);
  // timers of a cluster on a busy machine
  assert.equal(isAtRest(looks(0.2, 29)), false);
  assert.equal(isAtRest(looks(0.2, 30)), true);
  // work that ebbs, and work that goes on
  assert.equal(isAtRest([...looks(0.4, 15), ...looks(0.2, 15)]), false);
  assert.equal(isAtRest(looks(0.9, 60)), false);
});
