import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClient } from '../../test/fake-client.ts';
import { isPassing, retry } from './retry.ts';

async function played(answers: readonly string[], stopAfter = Infinity): Promise<string[]> {
  const client = new FakeClient(1);
  const told: string[] = [];
  let attempts = 0;
  let isOver = false;
  const work = retry({
    client,
    isStopped: () => attempts >= stopAfter,
    onTrouble: (message) => told.push(message),
    attempt: () => Promise.resolve(answers[attempts++] ?? ''),
  }).then(() => (isOver = true));
  let seconds = 0;
  for (; !isOver && seconds < 1000; seconds++) {
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
    client.pass(1000);
  }
  await work;
  return [...told, `${attempts} attempts`];
}

test('work is tried on until it is done, and its first failure told', async () => {
  assert.deepEqual(await played(['']), ['1 attempts']);
  assert.deepEqual(await played(['down', 'busy', 'busy', '']), ['down; trying on', '4 attempts']);
});

test('work that nobody wants any more is given up', async () => {
  const down = Array.from({ length: 100 }, () => 'down');
  assert.deepEqual(await played(down, 3), ['down; trying on', '3 attempts']);
});

test('what passes and what does not', () => {
  assert.deepEqual([0, 429, 500, 503, 504].map(isPassing), [true, true, true, true, true]);
  assert.deepEqual([400, 401, 403, 404, 422].map(isPassing), [false, false, false, false, false]);
});
