import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { LeaseRows } from './lease-rows.ts';

/** More than a chunk. */
const LEASES = 10_000;
const CHANGES = 20_000;

function idsOf(rows: LeaseRows): readonly string[] {
  const ids: string[] = [];
  for (let lease = 1; lease < rows.end; lease++) {
    if (!rows.isUsed(lease)) continue;
    ids.push(`${lease}: ${rows.high(lease)}/${rows.low(lease)} ${rows.ttlSeconds(lease)}`);
  }
  assert.equal(ids.length, rows.count);
  return ids;
}

test('copies stay what they were, whatever begins and ends meanwhile', () => {
  const random = new Random(11);
  const rows = new LeaseRows();
  const copies: (readonly [LeaseRows, readonly string[]])[] = [];
  for (let n = 0; n < CHANGES; n++) {
    if (n % 4000 === 0) {
      const copy = rows.copy();
      copies.push([copy, idsOf(copy)]);
    }
    const lease = 1 + random.below(LEASES);
    if (rows.isUsed(lease)) rows.remove(lease);
    else {
      rows.add(lease, n, random.below(2 ** 32));
      rows.setTtlSeconds(lease, random.below(100));
    }
  }
  assert.notDeepEqual(idsOf(rows), copies.at(-1)?.[1]);
  for (const [copy, ids] of copies) assert.deepEqual(idsOf(copy), ids);
});

test('a copy sees renewals, which change no chunk that is shared', () => {
  const rows = new LeaseRows();
  rows.add(1, 0, 7);
  rows.setDeadlineMs(1, 10);
  const copy = rows.copy();
  rows.setDeadlineMs(1, 20);
  assert.equal(copy.deadlineMs(1), 20);
  rows.remove(1);
  assert.equal(copy.deadlineMs(1), 20);
  assert.deepEqual([copy.isUsed(1), rows.isUsed(1)], [true, false]);
});
