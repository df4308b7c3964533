import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Rendezvous } from './rendezvous.ts';

const NODES = Array.from({ length: 100_000 }, (_, i) => `node-${i}`);

const named = (count: number): string[] => Array.from({ length: count }, (_, i) => `shard-${i}`);

test('nodes are spread evenly', () => {
  for (const count of [2, 3, 7, 16, 17]) {
    const sizes = new Map<string, number>();
    const shards = new Rendezvous(named(count));
    for (const node of NODES) {
      const owner = shards.ownerOf(node);
      sizes.set(owner, (sizes.get(owner) ?? 0) + 1);
    }
    assert.equal(sizes.size, count);
    const fair = NODES.length / count;
    for (const size of sizes.values()) assert.ok(Math.abs(size - fair) < fair * 0.05, `${size}`);
  }
});

test('a member that joins or leaves moves its own share and nothing else', () => {
  const before = new Rendezvous(named(15));
  const after = new Rendezvous(named(16));
  let moved = 0;
  for (const node of NODES) {
    const owner = after.ownerOf(node);
    if (owner === before.ownerOf(node)) continue;
    assert.equal(owner, 'shard-15');
    moved++;
  }
  assert.ok(Math.abs(moved / NODES.length - 1 / 16) < 0.01, `${moved}`);
});

test('all agree, in whatever order they hear of each other', () => {
  const one = new Rendezvous(['c', 'a', 'b', 'a']);
  const other = new Rendezvous(['b', 'c', 'a']);
  for (const node of NODES.slice(0, 1000)) assert.equal(one.ownerOf(node), other.ownerOf(node));
  assert.equal(new Rendezvous([]).ownerOf('node'), '');
});
