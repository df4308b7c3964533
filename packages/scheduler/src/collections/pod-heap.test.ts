import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { PodHeap } from './pod-heap.ts';

interface Entry {
  readonly id: number;
  readonly keys: readonly [number, number, number];
}

function before(one: Entry, other: Entry): number {
  for (const at of [0, 1, 2] as const) {
    if (one.keys[at] !== other.keys[at]) return one.keys[at] - other.keys[at];
  }
  return one.id - other.id;
}

test('entries leave by their keys, equal ones as they came, whatever order they came in', () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = new Random(seed);
    const heap = new PodHeap();
    let naive: Entry[] = [];
    // From entries in order with few that push in, to no order at all.
    const spread = 1 + (seed % 6) * 200;
    for (let id = 0; id < 3000; id++) {
      const first = random.below(20) === 0 ? random.below(3) : 3;
      const entry: Entry = {
        id,
        keys: [first, Math.floor(id / 4) + random.below(spread), random.below(2)],
      };
      heap.push(id, id + 7, ...entry.keys);
      naive.push(entry);
      const taken = random.below(id % 500 < 250 ? 2 : 4);
      for (let count = 0; count < taken && naive.length > 0; count++) {
        const next = naive.reduce((least, one) => (before(one, least) < 0 ? one : least));
        assert.deepEqual(
          [heap.size, heap.topId, heap.topStamp, heap.topFirst],
          [naive.length, next.id, next.id + 7, next.keys[0]],
        );
        heap.pop();
        naive = naive.filter((one) => one !== next);
      }
    }
    for (const { id } of naive.toSorted(before)) {
      assert.equal(heap.topId, id);
      heap.pop();
    }
    assert.equal(heap.size, 0);
  }
});
