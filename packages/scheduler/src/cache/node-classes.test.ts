import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NodeClasses } from './node-classes.ts';

test('a node class goes with its last user, and what was made of it goes too', () => {
  const classes = new NodeClasses();
  const gone: number[] = [];
  classes.onGone((nodeClass) => gone.push(nodeClass));
  const one = classes.acquire('one');
  assert.equal(classes.acquire('one'), one);
  const derived = classes.derive(one, 'one, and a volume');
  assert.equal(classes.derive(one, 'one, and a volume'), derived);
  const other = classes.acquire('other');
  assert.equal(new Set([one, derived, other]).size, 3);
  classes.release(one);
  assert.deepEqual([gone, classes.size], [[], 2]);
  classes.release(one);
  assert.deepEqual([gone, classes.size], [[one, derived], 1]);
  assert(classes.acquire('one') > other, 'no number is given twice');
});

test('volumes and devices make no more than so many node classes of one', () => {
  const classes = new NodeClasses();
  const gone: number[] = [];
  classes.onGone((nodeClass) => gone.push(nodeClass));
  const base = classes.acquire('base');
  const made = Array.from({ length: 100 }, (_, index) => classes.derive(base, `volume ${index}`));
  assert.deepEqual(gone, made.slice(0, 36));
  assert.equal(classes.derive(base, 'volume 99'), made[99]);
});
