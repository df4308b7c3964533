import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeDirectory } from './directory.ts';

test('parents are made, for their owner alone, and what is there stays', () => {
  const root = mkdtempSync(join(tmpdir(), 'megaplane-dir-'));
  const dir = join(root, 'a', 'b', 'c');
  makeDirectory(dir);
  makeDirectory(dir);
  for (const one of [dir, join(root, 'a')]) assert.equal(statSync(one).mode & 0o777, 0o700);
  writeFileSync(join(root, 'file'), '');
  assert.throws(() => makeDirectory(join(root, 'file')), { code: 'EEXIST' });
  assert.throws(() => makeDirectory(join(root, 'file', 'below')), { code: 'ENOTDIR' });
  rmSync(root, { recursive: true });
});

test(
  'a file system that takes no directories says so',
  { skip: existsSync('/proc/self') ? false : 'needs /proc' },
  () => assert.throws(() => makeDirectory('/proc/megaplane/logs'), { code: 'ENOENT' }),
);
