import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { History } from './history.ts';

test('rows keep the whole time within their bound, and their mean', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 1000 }), { minLength: 1, maxLength: 400 }),
      fc.integer({ min: 2, max: 16 }).map((half) => half * 2),
      (values, rowsMax) => {
        const history = new History(rowsMax);
        for (const [at, value] of values.entries()) history.add(at * 1000, new Map([['x', value]]));
        assert(history.rows <= rowsMax);
        const times = history.timesSeconds();
        assert.equal(times[0], 0);
        assert.deepEqual(
          times.toSorted((a, b) => a - b),
          times,
        );
        const column = history.column('x').map(Number);
        assert(column.every((value) => value >= Math.min(...values)));
        assert(column.every((value) => value <= Math.max(...values)));
        if (values.length <= rowsMax) assert.deepEqual(column, values);
      },
    ),
  );
});

test('a figure that comes later is unknown before, and a dump tells the same', () => {
  const history = new History(8);
  history.add(0, new Map([['a', 1]]));
  history.add(1000, new Map([['b', 2]]));
  assert.deepEqual(history.column('b'), [null, 2]);
  assert.deepEqual(history.column('a'), [1, null]);
  assert.deepEqual(history.column('none'), [null, null]);
  const again = History.from(history.dump(), 8);
  assert.deepEqual(again.dump(), history.dump());
});

test('figures beyond the bound are left out', () => {
  const history = new History(2);
  for (let index = 0; index < 1000; index++) history.add(index, new Map([[`f${index}`, index]]));
  assert.equal(history.names.length, 128);
});
