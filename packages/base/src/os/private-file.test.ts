import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { makePrivateDirectory, replacePrivately } from './private-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'megaplane-private-'));
after(() => rmSync(folder, { recursive: true, force: true }));

test('a file that lies beside a key’s place does not get the key', () => {
  const file = join(folder, 'ca.key');
  const partial = `${file}.partial`;
  writeFileSync(partial, '', { mode: 0o666 });
  chmodSync(partial, 0o666);
  replacePrivately(file, 'secret');
  assert.equal(readFileSync(file, 'utf8'), 'secret');
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const loot = join(folder, 'loot');
  symlinkSync(loot, partial);
  replacePrivately(file, 'other');
  assert.equal(readFileSync(file, 'utf8'), 'other');
  assert(!existsSync(loot) && !existsSync(partial));
  mkdirSync(partial);
  assert.throws(() => replacePrivately(file, 'third'));
  assert.equal(readFileSync(file, 'utf8'), 'other');
});

test('a directory that everybody may write to holds no keys', () => {
  const dir = join(folder, 'open');
  makePrivateDirectory(dir);
  assert.equal(statSync(dir).mode & 0o777, 0o700);
  for (const mode of [0o777, 0o1777, 0o703]) {
    chmodSync(dir, mode);
    assert.throws(
      () => makePrivateDirectory(dir),
      /open may be written to by everybody \(mode \d{4}\)/,
    );
  }
  for (const mode of [0o755, 0o2775]) {
    chmodSync(dir, mode);
    makePrivateDirectory(dir);
  }
});
