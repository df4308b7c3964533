import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isInside, WatchRanges } from './watch-ranges.ts';

const text = fc.string({ unit: fc.constantFrom('a', 'b', '/', '0'), minLength: 1, maxLength: 4 });
const bounds = fc.tuple(text, fc.oneof(text, fc.constant('\0'), fc.constant('')));
const step = fc.oneof(
  { weight: 2, arbitrary: bounds.map(([start, end]) => ({ kind: 'open' as const, start, end })) },
  { weight: 1, arbitrary: fc.nat().map((index) => ({ kind: 'close' as const, index })) },
  { weight: 6, arbitrary: text.map((key) => ({ kind: 'match' as const, key })) },
);

test('keys match the ranges that hold them, whatever was matched before', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
      const ranges = new WatchRanges();
      const model = new Map<number, { readonly start: Buffer; readonly end: Buffer }>();
      for (const one of steps) {
        if (one.kind === 'open') {
          const start = Buffer.from(one.start);
          const end = Buffer.from(one.end);
          if (end.length > 1 && start.compare(end) >= 0) continue;
          const both = Buffer.concat([start, end]);
          const size = start.length;
          model.set(ranges.open(both, 0, size, size, both.length), { start, end });
        } else if (one.kind === 'close') {
          const [range] = [...model.keys()].slice(one.index % Math.max(1, model.size));
          if (range === undefined) continue;
          ranges.close(range);
          model.delete(range);
        } else {
          const key = Buffer.from(one.key);
          const out: number[] = [];
          const count = ranges.match(key, 0, key.length, out);
          const expected = [...model]
            .filter(([, { start, end }]) => isInside(key, 0, key.length, start, end))
            .map(([range]) => range);
          assert.deepEqual(new Set(out.slice(0, count)), new Set(expected));
          assert.equal(count, expected.length);
        }
      }
    }),
    { numRuns: 400 },
  );
});
