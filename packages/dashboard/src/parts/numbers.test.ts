import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ago, short, shown } from './numbers.ts';

test('numbers are written with the digits that matter', () => {
  assert.equal(shown(null, 'count'), '–');
  assert.equal(shown(NaN, 'rate'), '–');
  assert.equal(shown(1_000_000, 'count'), '1,000,000');
  assert.equal(shown(98_432.4, 'rate'), '98,432/s');
  assert.equal(shown(0.25, 'rate'), '0.3/s');
  assert.equal(shown(123_456, 'rate'), '123/s'.replace('123', '123K'));
  assert.equal(shown(0.0123, 'seconds'), '12.3 ms');
  assert.equal(shown(0.000_045, 'seconds'), '45 µs');
  assert.equal(shown(7.9 * 2 ** 30, 'bytes'), '7.9 GiB');
  assert.equal(shown(0.843, 'percent'), '84.3 %');
  assert.equal(short(1_500_000, 'count'), '1.5M');
});

test('moments are told in the largest unit', () => {
  assert.equal(ago(0, 59_000), '59 s');
  assert.equal(ago(0, 3_600_000), '1 h');
  assert.equal(ago(5000, 0), '0 s');
});
