import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { BoundedHistogram, LatencyHistogram } from './histogram.ts';

test('quantiles of any values are right within 1/64 and one unit, never too low', () => {
  const value = fc.oneof(
    fc.double({ min: 0, max: 1000, noNaN: true }),
    fc.integer({ min: 0, max: 2 ** 40 }),
    fc.double({ min: 0, max: 2 ** 42, noNaN: true }),
  );
  fc.assert(
    fc.property(fc.array(value, { minLength: 1 }), (values) => {
      const histogram = new LatencyHistogram();
      for (const value of values) histogram.record(value);
      const sorted = [...values].sort((a, b) => a - b);
      for (const quantile of [0, 0.25, 0.5, 0.9, 0.99, 1]) {
        const rank = Math.max(1, Math.ceil(quantile * values.length));
        const exact = sorted[rank - 1] ?? NaN;
        const found = histogram.quantile(quantile);
        assert.ok(found >= exact * (1 - 1e-12), `${found} for ${exact}`);
        assert.ok(found <= exact * (1 + 1 / 64) + 0.00101, `${found} for ${exact}`);
      }
      assert.equal(histogram.max, sorted.at(-1));
      assert.equal(histogram.count, values.length);
    }),
  );
});

test('histograms add up, count below a bound, and forget', () => {
  const left = new LatencyHistogram();
  const right = new LatencyHistogram();
  for (let i = 1; i <= 100; i++) (i % 2 === 0 ? left : right).record(i);
  left.merge(right);
  assert.deepEqual([left.count, left.sum, left.max, left.mean], [100, 5050, 100, 50.5]);
  assert.ok(Math.abs(left.countUpTo(30) - 30) <= 1);
  assert.equal(left.countUpTo(1e9), 100);
  left.record(-5);
  left.record(NaN);
  assert.equal(left.quantile(0.01), 0.001);
  left.reset();
  assert.deepEqual([left.count, left.quantile(0.5), left.mean], [0, 0, 0]);
});

test('values beyond all buckets land in the last one', () => {
  const histogram = new LatencyHistogram(1);
  for (const value of [2 ** 52, 2 ** 53, 1e300, Infinity]) histogram.record(value);
  assert.equal(histogram.count, 4);
  assert.ok(histogram.quantile(0.25) >= 2 ** 52);
});

test('a bounded histogram counts as Prometheus does: bounds belong to their bucket', () => {
  const histogram = new BoundedHistogram([1, 0.1, 10]);
  for (const value of [0.05, 0.1, 0.5, 1, 2, 11]) histogram.record(value);
  const cumulative = [0, 1, 2, 3].map((index) => histogram.cumulative(index));
  assert.deepEqual(cumulative, [2, 4, 5, 6]);
  assert.equal(histogram.count, 6);
  assert.ok(Math.abs(histogram.sum - 14.65) < 1e-9);
});
