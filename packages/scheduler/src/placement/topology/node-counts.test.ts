import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { NodeCounts } from './node-counts.ts';

function entriesOf(counts: NodeCounts): [number, number][] {
  const entries: [number, number][] = [];
  for (let slot = counts.slotAfter(-1); slot >= 0; slot = counts.slotAfter(slot)) {
    entries.push([counts.nodeAt(slot), counts.countAt(slot)]);
  }
  return entries.toSorted(([left], [right]) => left - right);
}

test('counts are those of a map, sparse, dense and in between', () => {
  const near = fc.tuple(fc.nat(40), fc.integer({ min: -2, max: 3 }));
  const far = fc.tuple(fc.nat(5000), fc.integer({ min: -1, max: 1 }));
  const steps = fc.array(fc.oneof(near, far), { maxLength: 300 });
  fc.assert(
    fc.property(steps, (all) => {
      const counts = new NodeCounts();
      const expected = new Map<number, number>();
      for (const [node, delta] of all) {
        const before = expected.get(node) ?? 0;
        assert.equal(counts.add(node, delta), before);
        if (before + delta === 0) expected.delete(node);
        else expected.set(node, before + delta);
      }
      assert.equal(counts.size, expected.size);
      for (const [node] of all) assert.equal(counts.get(node), expected.get(node) ?? 0);
      assert.equal(counts.get(100_000), 0);
      assert.deepEqual(
        entriesOf(counts),
        [...expected].toSorted(([left], [right]) => left - right),
      );
    }),
    { numRuns: 200 },
  );
});

test('many nodes take four to eight bytes each, and few of many less', () => {
  const counts = new NodeCounts();
  for (let node = 0; node < 100_000; node++) counts.add(node, 1);
  assert(counts.memoryBytes <= 8 * 100_000, `${counts.memoryBytes} bytes`);
  for (let node = 100; node < 100_000; node++) counts.add(node, -1);
  assert(counts.memoryBytes < 150_000, `${counts.memoryBytes} bytes`);
  assert.equal(counts.size, 100);
  assert.deepEqual([counts.get(99), counts.get(100)], [1, 0]);
});
