import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { WatchId } from './watch-request.ts';
import { FLAG_FRAGMENT, FLAG_HAS_SENT, WatchIds, WatchTable } from './watch-table.ts';

const id: fc.Arbitrary<WatchId> = fc.oneof(
  fc.nat(20),
  fc.integer({ min: -3, max: 2 ** 40 }),
  fc.constantFrom(2n ** 62n, -(2n ** 63n)),
);

test('ids of a stream, given in order or chosen at will, name what a map would', () => {
  const step = fc.record({ id: fc.option(id, { nil: null }), isRemoval: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120, size: 'max' }), (steps) => {
      const ids = new WatchIds();
      const model = new Map<WatchId, number>();
      let given = 0;
      for (const [index, { id: chosen, isRemoval }] of steps.entries()) {
        while (model.has(given)) given++;
        const one = chosen ?? given;
        if (isRemoval && model.has(one)) {
          model.delete(one);
          ids.remove(one);
        } else if (!model.has(one)) {
          model.set(one, index + 1);
          ids.add(one, index + 1);
        }
        assert.equal(ids.get(one), model.get(one) ?? 0);
      }
      assert.equal(ids.size, model.size);
      for (const [one, cursor] of model) assert.equal(ids.get(one), cursor);
      const cursors = [...ids.cursors()].sort((a, b) => a - b);
      assert.deepEqual(
        cursors,
        [...model.values()].sort((a, b) => a - b),
      );
      ids.clear();
      assert.deepEqual([...ids.cursors()], []);
    }),
  );
});

test('a cursor that is used again has the name and the flags of its new watch', () => {
  const table = new WatchTable();
  table.add(1000, 2n ** 60n, FLAG_FRAGMENT);
  assert.equal(table.id(1000), 2n ** 60n);
  table.set(1000, FLAG_HAS_SENT, true);
  assert(table.has(1000, FLAG_FRAGMENT) && table.has(1000, FLAG_HAS_SENT));
  table.remove(1000);
  table.add(1000, -7, 0);
  assert.equal(table.id(1000), -7);
  assert(!table.has(1000, FLAG_FRAGMENT) && !table.has(1000, FLAG_HAS_SENT));
});
