import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AmountColumn } from './amount-column.ts';

test('amounts are the same as they grow from few to many, and a few cost little', () => {
  const column = new AmountColumn();
  column.set(1_000_000, 3);
  column.set(7, 0);
  assert.equal(column.get(1_000_000), 3);
  assert.equal(column.get(7), 0);
  assert(column.memoryBytes < 1000);
  for (let id = 0; id < 5000; id++) column.set(id, id % 3);
  for (let id = 0; id < 5000; id++) assert.equal(column.get(id), id % 3);
  assert.equal(column.get(1_000_000), 3);
  column.set(1_000_000, 0);
  assert.equal(column.get(1_000_000), 0);
});
