import assert from 'node:assert/strict';
import { test } from 'node:test';
import { edgeText, inBraces, labelPairs } from './text-format.ts';

test('labels are written in order, with what the format escapes', () => {
  assert.equal(labelPairs({ b: 'x', a: 'q"\\\n' }), 'b="x",a="q\\"\\\\\\n"');
  assert.equal(labelPairs({ code: 200 }), 'code="200"');
  assert.equal(inBraces(labelPairs({})), '');
  assert.equal(inBraces(labelPairs({ a: '' })), '{a=""}');
});

test('edges of buckets are written as Go writes numbers', () => {
  const edges = [0, 1e-8, 5e-7, 0.0001, 0.005, 45, 999_999, 1e6, 1_048_576, 2.592e6, 1e21, 1e100];
  const texts =
    '0 1e-08 5e-07 0.0001 0.005 45 999999 1e+06 1.048576e+06 2.592e+06 1e+21 1e+100'.split(' ');
  assert.deepEqual(edges.map(edgeText), texts);
});
