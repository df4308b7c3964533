import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClassIndex } from './class-index.ts';
import { IndexShelf } from './index-shelf.ts';
import type { NodeTable } from '../cache/node-table.ts';
import { ScoreBuckets } from '../collections/score-buckets.ts';

/** An index that takes more memory each time it is brought up to date. */
class GrowingIndex {
  readonly isLive = true;
  countedBytes = 0;
  memoryBytes = 0;

  catchUp(): void {
    this.memoryBytes += 100;
  }
}

test('indexes that were not used longest go first, and what they had grown to with them', () => {
  const shelf = new IndexShelf({} as NodeTable, { bytesMax: 500, searchedNodesMin: 0 });
  const take = (key: number): void => {
    shelf.take(key, () => new GrowingIndex() as unknown as ClassIndex);
  };
  const kept = (): number[] => [1, 2, 3, 4, 5].filter((key) => shelf.peek(key) !== null);
  take(1);
  take(2);
  take(1);
  take(3);
  assert.deepEqual([shelf.memoryBytes, kept()], [400, [1, 2, 3]]);
  take(3);
  take(4);
  assert.deepEqual([shelf.memoryBytes, kept()], [500, [1, 3, 4]]);
  take(5);
  assert.deepEqual([shelf.memoryBytes, kept()], [400, [3, 4, 5]]);
});

test('buckets that are emptied take what they took at first', () => {
  const buckets = new ScoreBuckets(10);
  const empty = buckets.memoryBytes;
  for (let id = 0; id < 1000; id++) buckets.insert(id % 3, id);
  assert(buckets.memoryBytes >= empty + 1000 * Uint32Array.BYTES_PER_ELEMENT);
  for (let score = 0; score < 3; score++) {
    while (buckets.count(score) > 0) buckets.remove(score, 0);
  }
  assert(buckets.memoryBytes <= empty + 3 * 16 * Uint32Array.BYTES_PER_ELEMENT);
});
