import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type KeySets, findDuplicate } from './txn-keys.ts';

function sets(puts: readonly string[], deletes: readonly (readonly [string, string])[]): KeySets {
  return { puts: new Set(puts), deletes };
}

const NONE = sets([], []);

test('a key is put once on a path, and outside of what the path deletes before', () => {
  const a = sets(['a'], []);
  const range = sets([], [['a', 'c']]);
  const cases: readonly (readonly [boolean, ...Parameters<typeof findDuplicate>])[] = [
    [true, ['a', 'b'], [['c', '']], []],
    [false, ['a', 'a'], [], []],
    [false, ['b'], [['a', 'c']], []],
    [true, ['c'], [['a', 'c']], []],
    [false, ['a'], [], [[a, NONE]]],
    [false, ['a'], [], [[NONE, a]]],
    [true, [], [], [[a, a]]],
    [
      false,
      [],
      [],
      [
        [a, NONE],
        [NONE, a],
      ],
    ],
    // What nested transactions put lies in a range of the outer one, or of one before them.
    [false, [], [['a', 'c']], [[a, NONE]]],
    [false, [], [['a', '']], [[NONE, a]]],
    [
      false,
      [],
      [],
      [
        [range, NONE],
        [a, NONE],
      ],
    ],
    [
      true,
      [],
      [],
      [
        [a, NONE],
        [range, NONE],
      ],
    ],
    [false, ['b'], [], [[NONE, range]]],
    [true, ['b'], [['a', '\0']], []],
  ];
  for (const [isAllowed, ...given] of cases) {
    assert.equal(findDuplicate(...given) !== null, isAllowed, JSON.stringify(given.slice(0, 2)));
  }
});
