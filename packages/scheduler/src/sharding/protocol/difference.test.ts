import assert from 'node:assert/strict';
import { test } from 'node:test';
import { differenceOf } from './difference.ts';

test('the first difference of two configurations is named by its path', () => {
  const root = { version: '1.36', profiles: [{ name: 'a', weights: { Fit: 3 } }] };
  const text = (value: object): string => JSON.stringify(value);
  const of = (other: object): string => differenceOf(text(root), text(other));
  assert.equal(of(root), '');
  const heavier = { ...root, profiles: [{ name: 'a', weights: { Fit: 5 } }] };
  assert.equal(of(heavier), 'profiles[0].weights.Fit is 5, at the root it is 3');
  assert.equal(of({ ...root, version: '1.35' }), 'version is "1.35", at the root it is "1.36"');
  const more = { ...root, profiles: [...root.profiles, { name: 'b' }] };
  assert.equal(of(more), 'profiles[1] is {"name":"b"}, at the root it is not there');
  assert.match(of({ ...root, profiles: 'x'.repeat(500) }), /^profiles is "x{70,80}\.\.\., at/);
  assert.equal(differenceOf('{', '{}'), 'it cannot be read');
});
