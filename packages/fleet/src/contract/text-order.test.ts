import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { byUtf8 } from './text-order.ts';

test('texts are ordered by their bytes', () => {
  const text = fc.string({ unit: fc.oneof(fc.constantFrom('a', 'é', '\uffee', '😀', '\ue000')) });
  fc.assert(
    fc.property(text, text, (left, right) => {
      const expected = Buffer.compare(Buffer.from(left), Buffer.from(right));
      assert.equal(Math.sign(byUtf8(left, right)), expected);
    }),
    { seed: 1 },
  );
});
