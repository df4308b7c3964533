import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compactionPolicy } from './compaction-flags.ts';

test('retentions are hours, revisions or durations, as in etcd', () => {
  assert.equal(compactionPolicy('periodic', '0'), null);
  assert.equal(compactionPolicy('revision', '0'), null);
  assert.equal(compactionPolicy('periodic', '0s'), null);
  assert.deepEqual(compactionPolicy('periodic', '2'), { mode: 'periodic', periodMs: 7_200_000 });
  assert.deepEqual(compactionPolicy('periodic', '10m'), { mode: 'periodic', periodMs: 600_000 });
  assert.deepEqual(compactionPolicy('revision', '1000'), { mode: 'revision', keep: 1000 });
  assert.throws(() => compactionPolicy('revision', '1h'), /1h is no number of revisions/);
  assert.throws(() => compactionPolicy('periodic', 'x'), /x is no duration/);
  assert.throws(() => compactionPolicy('daily', '1'), /neither periodic nor revision/);
});
