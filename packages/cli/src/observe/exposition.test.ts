import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  bucketsOf,
  labelOf,
  quantileBetween,
  quantileOf,
  rateOf,
  ratesOf,
  readFamilies,
  sumOf,
} from './exposition.ts';

const WANTED: ReadonlySet<string> = new Set(['a_total', 'h_bucket', 'g']);

test('wanted families are read, with labels that hold anything', () => {
  const text = [
    '# HELP a_total Things.',
    '# TYPE a_total counter',
    'a_total{verb="GET",path="a\\"}b\\n\\\\"} 3',
    'a_total{verb="PUT"} 4 1700000000000',
    'b_total 5',
    'g 1.5e3',
    'g2 7',
    'nonsense',
    'a_total{verb="X"} no',
  ].join('\n');
  const families = readFamilies(text, WANTED);
  assert.deepEqual([...families.keys()], ['a_total', 'g']);
  assert.equal(sumOf(families, 'a_total'), 7);
  assert.equal(sumOf(families, 'g'), 1500);
  const [labels = ''] = families.get('a_total')?.keys() ?? [];
  assert.equal(labelOf(labels, 'verb'), 'GET');
  assert.equal(labelOf(labels, 'path'), 'a"}b\n\\');
  assert.equal(labelOf(labels, 'ath'), '');
  assert(Number.isNaN(sumOf(families, 'b_total')));
});

test('a label is found by its whole name', () => {
  assert.equal(labelOf('subresource="status",resource="pods"', 'resource'), 'pods');
  assert.equal(labelOf('subresource="status"', 'resource'), '');
});

function span(before: string, now: string, seconds = 2) {
  return { before: readFamilies(before, WANTED), now: readFamilies(now, WANTED), seconds };
}

test('rates are growth by second, from zero where a program began anew', () => {
  const grown = span(
    'a_total{v="1"} 10\na_total{v="2"} 50',
    'a_total{v="1"} 20\na_total{v="2"} 4\na_total{v="3"} 2',
  );
  assert.equal(rateOf(grown, 'a_total'), (10 + 4 + 2) / 2);
  const byValue = ratesOf(grown, 'a_total', (labels) =>
    labelOf(labels, 'v') === '3' ? null : labelOf(labels, 'v'),
  );
  assert.deepEqual(
    [...byValue],
    [
      ['1', 5],
      ['2', 2],
    ],
  );
  assert(Number.isNaN(rateOf(grown, 'none')));
});

test('quantiles lie in the bucket that holds them', () => {
  const now = 'h_bucket{le="1"} 10\nh_bucket{le="2"} 30\nh_bucket{le="+Inf"} 40';
  const grown = span('h_bucket{le="1"} 10\nh_bucket{le="2"} 10\nh_bucket{le="+Inf"} 10', now);
  assert.deepEqual(bucketsOf(grown, 'h').get('')?.counts, [0, 20, 10]);
  assert.equal(quantileBetween(grown, 'h', 0.5), 1.75);
  assert.equal(quantileBetween(grown, 'h', 0.99), 2);
  assert(Number.isNaN(quantileBetween(span(now, now), 'h', 0.5)));
});

test('a quantile grows with its part and stays within the bounds', () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(100), { minLength: 1, maxLength: 10 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (counts, one, other) => {
        const buckets = { bounds: counts.map((_, index) => index + 1), counts };
        if (counts.every((count) => count === 0)) return;
        const low = quantileOf(buckets, Math.min(one, other));
        const high = quantileOf(buckets, Math.max(one, other));
        assert(low <= high && low >= 0 && high <= counts.length);
      },
    ),
  );
});

test('any text is read without an error', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary-ascii', maxLength: 300 }), (text) => {
      readFamilies(`a_total{${text}} 1\n${text}`, WANTED);
    }),
  );
});
