import assert from 'node:assert/strict';
import { test } from 'node:test';
import { treeOf, type TreePlan } from './shard-children.ts';

function leaves(plans: readonly TreePlan[]): string[] {
  return plans.flatMap(({ name, children }) => (children.length === 0 ? [name] : leaves(children)));
}

function depth(plans: readonly TreePlan[]): number {
  return (
    1 + Math.max(0, ...plans.map(({ children }) => (children.length > 0 ? depth(children) : 0)))
  );
}

test('relays stand between where there are more shards than one parent may have', () => {
  for (const [shards, fanOut, levels] of [
    [1, 2, 1],
    [10, 10, 1],
    [11, 10, 2],
    [100, 10, 2],
    [101, 10, 3],
    [256, 10, 3],
    [7, 2, 3],
  ] as const) {
    const plans = treeOf(shards, fanOut);
    assert.equal(depth(plans), levels, `${shards} by ${fanOut}`);
    const names = leaves(plans);
    assert.equal(new Set(names).size, shards);
    const widths = (all: readonly TreePlan[]): number[] => [
      all.length,
      ...all.flatMap(({ children }) => (children.length > 0 ? widths(children) : [])),
    ];
    assert.ok(Math.max(...widths(plans)) <= fanOut);
  }
});
