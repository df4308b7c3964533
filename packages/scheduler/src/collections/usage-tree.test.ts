import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { SIDE, TreePoints, UsageTree } from './usage-tree.ts';

/** All points of a cell, and that each lies in it; the counts on the way must add up. */
function pointsUnder(tree: UsageTree, points: TreePoints, cell: number): number[] {
  const side = SIDE >>> (tree.depth[cell] ?? 0);
  const [x = 0, y = 0] = [tree.x[cell], tree.y[cell]];
  const first = tree.first[cell] ?? -1;
  const found: number[] = [];
  if (first >= 0) {
    for (let part = first; part < first + 4; part++) {
      found.push(...pointsUnder(tree, points, part));
    }
  } else {
    for (let point = tree.head[cell] ?? -1; point >= 0; point = tree.next(point)) {
      found.push(point);
    }
  }
  assert.equal(tree.count(cell), found.length);
  for (const point of found) {
    assert(points.x.get(point) >= x && points.x.get(point) < x + side);
    assert(points.y.get(point) >= y && points.y.get(point) < y + side);
  }
  return found;
}

test('a tree holds the points that were put in and not taken out, each in its cell', () => {
  // Few places, so that many points share one, and cells are cut down to the last step.
  const place = fc.oneof(fc.constantFrom(0, 1, SIDE - 1), fc.nat(SIDE - 1));
  const step = fc.record({ isInsert: fc.boolean(), x: place, y: place, pick: fc.nat(10_000) });
  fc.assert(
    fc.property(fc.array(step, { minLength: 50, maxLength: 300 }), (steps) => {
      const points = new TreePoints();
      const tree = new UsageTree(points);
      const held: number[] = [];
      let next = 0;
      for (const { isInsert, x, y, pick } of steps) {
        if (isInsert || held.length === 0) {
          tree.insert(next, x, y);
          held.push(next++);
        } else {
          const [gone = 0] = held.splice(pick % held.length, 1);
          tree.remove(gone);
        }
      }
      const found = pointsUnder(tree, points, 0);
      assert.deepEqual(new Set(found), new Set(held));
    }),
    { numRuns: 60 },
  );
});
