import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sliceMs } from './slices.ts';

test('a slice takes less where the turn is long already, and never nothing', () => {
  const shares = [0, 3, 4, 5, 6, 7, 100].map((sinceMs) => sliceMs(sinceMs));
  assert.deepEqual(shares, [4, 4, 4, 3, 2, 2, 2]);
});
