import assert from 'node:assert/strict';
import { test } from 'node:test';
import { groupsOf } from './pictures.ts';

test('numbers of a table become bars, row by row, and words become names', () => {
  const groups = groupsOf({
    head: ['', 'goal', 'ours', 'etcd'],
    rows: [
      ['puts', '29 x', '123,456/s', '4.2e3'],
      ['p99', 'fast', '3.5 ms', '7 ms'],
      ['nothing', 'here', '', '-'],
    ],
  });
  assert.deepEqual(groups, [
    {
      label: 'puts',
      bars: [
        { label: 'ours', value: 123_456 },
        { label: 'etcd', value: 4200 },
      ],
    },
    {
      label: 'p99, fast',
      bars: [
        { label: 'ours', value: 3.5 },
        { label: 'etcd', value: 7 },
      ],
    },
  ]);
});
