import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { beginEpoch } from './epoch.ts';

test('each start has an epoch of its own, and a file that tells none is refused', () => {
  const root = mkdtempSync(join(tmpdir(), 'megaplane-epoch-'));
  const dir = join(root, 'data');
  const file = join(dir, 'epoch');
  try {
    assert.deepEqual([beginEpoch(dir), beginEpoch(dir), beginEpoch(dir)], [1n, 2n, 3n]);
    assert.equal(readFileSync(file, 'utf8'), '3\n');
    for (const text of ['', 'x', '-1', '0', '1.5', '12\n13\n', '99999999999999999999']) {
      writeFileSync(file, text);
      assert.throws(() => beginEpoch(dir), /holds no epoch/, JSON.stringify(text));
      assert.equal(readFileSync(file, 'utf8'), text);
    }
    writeFileSync(file, '9223372036854775807');
    assert.throws(() => beginEpoch(dir), /there is no epoch after/);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});
