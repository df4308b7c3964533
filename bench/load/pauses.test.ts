import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { Pauses } from './pauses.ts';

test('the longest pause of either kind is kept, until it is cleared', () => {
  const pauses = new Pauses();
  const head = '[1:0x1]  886 ms:';
  pauses.take(`${head} Scavenge 31.1 (53.3) -> 15.9 (54.3) MB, pooled: 0.0 MB, 1.86 / 0.00 ms  ()`);
  pauses.take(`${head} Mark-Compact 98.1 (9.2) -> 52.6 (9.7) MB, 18.84 / 0.20 ms (+ 46.4 ms in 9)`);
  pauses.take('ready in 400 ms: https://127.0.0.1:6443');
  assert.equal(pauses.longestMs, 18.84);
  pauses.clear();
  assert.equal(pauses.longestMs, 0);
});

test('the lines of this runtime are understood', () => {
  const pauses = new Pauses();
  const script = 'const kept = []; for (let i = 0; i < 1e6; i++) kept.push({ i }); gc();';
  const args = ['--trace-gc', '--expose-gc', '-e', script];
  const lines = spawnSync(process.execPath, args, { encoding: 'utf8' }).stdout.split('\n');
  const collections = lines.filter((line) => /Scavenge|Mark-Compact/.test(line));
  assert.ok(collections.length > 0);
  for (const line of collections) {
    pauses.clear();
    pauses.take(line);
    assert.ok(pauses.longestMs > 0, line);
  }
});
