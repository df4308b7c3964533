import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AutoCompaction, type AutoCompactionPolicy } from './auto-compaction.ts';

const MINUTE_MS = 60_000;

/** One revision per minute; what is compacted, as `minute: revision`. */
function transcript(policy: AutoCompactionPolicy, minutes: number): string[] {
  const compaction = new AutoCompaction(policy, 0, 1);
  const rows: string[] = [];
  const lookMinutes = compaction.lookMs / MINUTE_MS;
  for (let look = 1; look * lookMinutes <= minutes; look++) {
    const minute = look * lookMinutes;
    const revision = compaction.look(minute * MINUTE_MS, 1 + Math.floor(minute));
    if (revision === 0) continue;
    compaction.done(minute * MINUTE_MS, revision);
    rows.push(`${minute}: ${revision}`);
  }
  return rows;
}

test('a period of ten minutes compacts every ten minutes to ten minutes ago', () => {
  const rows = transcript({ mode: 'periodic', periodMs: 10 * MINUTE_MS }, 45);
  assert.deepEqual(rows, ['10: 1', '20: 10', '30: 20', '40: 30']);
});

test('a period of two hours waits two hours, then compacts every hour', () => {
  const rows = transcript({ mode: 'periodic', periodMs: 120 * MINUTE_MS }, 310);
  assert.deepEqual(rows, ['120: 1', '180: 55', '240: 115', '300: 175']);
});

test('without new revisions nothing is compacted again', () => {
  const compaction = new AutoCompaction({ mode: 'periodic', periodMs: 1000 }, 0, 7);
  assert.equal(compaction.look(1000, 7), 7);
  compaction.done(1000, 7);
  for (let ms = 1100; ms < 9000; ms += 100) assert.equal(compaction.look(ms, 7), 0);
});

test('the last revisions are kept, looked at every five minutes', () => {
  const rows = transcript({ mode: 'revision', keep: 10 }, 26);
  assert.deepEqual(rows, ['10: 1', '15: 6', '20: 11', '25: 16']);
});
