import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fittingWarnings } from './call.ts';

test('warnings that are too many together are cut, and those beyond are dropped', () => {
  const few = ['a'.repeat(2000), 'b'.repeat(2000)];
  assert.deepEqual(fittingWarnings(few), few);
  const many = Array.from({ length: 40 }, (_, index) => `${index} ${'x'.repeat(300)}`);
  const fitting = fittingWarnings(many);
  assert.ok(fitting.every((text) => text.length === 256));
  assert.equal(fitting.length, 16);
});

test('warnings are counted and cut by characters, however many bytes those have', () => {
  const wide = ['😀'.repeat(2000), '😀'.repeat(2000)];
  assert.deepEqual(fittingWarnings(wide), wide);
});
