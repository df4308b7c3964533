import nodeAssert from 'node:assert/strict';
import { test } from 'node:test';
import { assert, unreachable } from './assert.ts';

test('a condition that does not hold ends the work with its message', () => {
  assert(true, 'not thrown');
  nodeAssert.throws(() => assert(0, 'revision went back'), /assertion failed: revision went back/);
});

test('a value that no arm of a switch took is named', () => {
  nodeAssert.throws(
    () => unreachable({ kind: 'new' } as never),
    /unreachable value: {"kind":"new"}/,
  );
});
