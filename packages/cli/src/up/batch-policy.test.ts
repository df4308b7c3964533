import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { batchPolicy } from './batch-policy.ts';

test('a command behind the policy runs as it would without it', () => {
  const [command, ...rest] = [...batchPolicy(), process.execPath, '-p', '6 * 7'];
  const { status, stdout } = spawnSync(command, rest, { encoding: 'utf8' });
  assert.deepEqual([status, stdout.trim()], [0, '42']);
});

test('where it is to be had, commands run under the batch policy', (context) => {
  const policy = batchPolicy();
  if (policy.length === 0) {
    context.skip('needs chrt of util-linux');
    return;
  }
  const [command, ...rest] = [...policy, 'sh', '-c', 'chrt -p $$'];
  assert.match(spawnSync(command, rest, { encoding: 'utf8' }).stdout, /SCHED_BATCH/);
});
