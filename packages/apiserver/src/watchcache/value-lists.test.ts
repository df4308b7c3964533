import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { emptyRow } from '../storage/storage.ts';
import { ValueLists } from './value-lists.ts';

/** Rows are their own values here. */
function listsOf(bytesMax?: number) {
  const lists = new ValueLists(
    (row, found) => Object.assign(found, { bytes: row.bytes, start: row.start, end: row.end }),
    false,
    new Random(1),
    bytesMax,
  );
  const row = emptyRow();
  const set = (id: number, value: string): void => {
    row.bytes = Buffer.from(value);
    row.end = row.bytes.length;
    lists.set(id, row, false, id);
  };
  const idsOf = (value: string): number[] => {
    const ids: number[] = [];
    lists.each(value, (id) => ids.push(id));
    return ids.toSorted((left, right) => left - right);
  };
  return { lists, set, idsOf };
}

test('every node has a list, however many there are', () => {
  const { lists, set, idsOf } = listsOf();
  for (let id = 0; id < 300_000; id++) set(id, `node-${id}`);
  assert.equal(lists.isGivenUp, false);
  assert.deepEqual(idsOf('node-299999'), [299_999]);
  set(7, 'node-5');
  lists.remove(6, 1);
  assert.deepEqual(['node-5', 'node-6', 'node-7'].map(idsOf), [[5, 7], [], []]);
  assert.deepEqual(
    ['node-5', 'node-6'].map((value) => lists.count(value)),
    [2, 0],
  );
});

test('what has more values than are told apart is given up, and still told of changes', () => {
  const { lists, set } = listsOf(4 * 1024 * 1024);
  const name = 'x'.repeat(1000);
  for (let id = 0; id < 5000; id++) set(id, `${name}${id}`);
  assert.equal(lists.isGivenUp, true);
  set(1, 'y');
  lists.remove(2, 9);
  assert.equal(lists.count('y'), 0);
});
