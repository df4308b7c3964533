import assert from 'node:assert/strict';
import { test } from 'node:test';
import { boundText } from './histogram.ts';

test('bounds are written as Go writes numbers', () => {
  const texts = [0, 5e-7, 0.0001, 0.005, 45, 999_999, 1e6, 2.592e6, 1e21].map(boundText);
  assert.deepEqual(texts, [
    '0',
    '5e-07',
    '0.0001',
    '0.005',
    '45',
    '999999',
    '1e+06',
    '2.592e+06',
    '1e+21',
  ]);
});
