import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openStore } from '@megaplane/store/open';

const dir = mkdtempSync(join(tmpdir(), 'megaplane-tools-'));
after(() => rmSync(dir, { recursive: true, force: true }));

function megaplane(...args: readonly string[]) {
  const main = join(import.meta.dirname, '../main.ts');
  const result = spawnSync(process.execPath, [main, 'store', ...args], { encoding: 'utf8' });
  return { code: result.status, stdout: result.stdout, stderr: result.stderr };
}

test('a directory is saved, restored, hashed and verified by commands', async () => {
  const data = join(dir, 'data');
  const opened = openStore({ dataDir: data, durability: 'buffered', prefixes: [] });
  for (let i = 0; i < 500; i++) {
    const key = Buffer.from(`key-${i % 40}`);
    opened.store.putIf(key, 0, key.length, -1, key, 0, key.length, 0);
  }
  await opened.close();
  const file = join(dir, 'backup.db');
  const saved = megaplane('snapshot', 'save', file, '--data-dir', data);
  assert.equal(saved.code, 0, saved.stderr);
  assert.match(saved.stderr, /snapshot \(MiB\): 1 of 1/);
  const status = megaplane('snapshot', 'status', file, '--output', 'json');
  const { revision, totalKey } = JSON.parse(status.stdout) as Record<string, number>;
  assert.deepEqual([revision, totalKey], [501, 40]);
  const again = join(dir, 'again');
  const restored = megaplane('snapshot', 'restore', file, '--data-dir', again);
  assert.match(restored.stdout, /^revision +501$/m);
  const cut = join(dir, 'cut.db');
  writeFileSync(cut, readFileSync(file).subarray(0, -32));
  const refused = megaplane('snapshot', 'restore', cut, '--data-dir', join(dir, 'cut'));
  assert.deepEqual([refused.code, existsSync(join(dir, 'cut'))], [1, false]);
  assert.match(refused.stderr, /cut\.db has no checksum at its end/);
  const hashes = [data, again].map((one) => megaplane('hash', '--data-dir', one).stdout);
  assert.match(hashes[0] ?? '', /^hash +\d+$/m);
  assert.equal(hashes[0], hashes[1]);
  const verified = megaplane('verify', '--data-dir', again);
  assert.equal(verified.code, 0);
  assert.match(verified.stdout, /: sound; 500 records, revision 501$/m);
  const log = join(again, readdirSync(again).find((name) => name.startsWith('snapshot-')) ?? '');
  const bytes = readFileSync(log);
  bytes[400] = (bytes[400] ?? 0) ^ 1;
  writeFileSync(log, bytes);
  const damaged = megaplane('verify', '--data-dir', again);
  assert.equal(damaged.code, 1);
  assert.match(damaged.stdout, /DAMAGED at byte 64/);
});

test('wrong uses of the store commands say what is needed', () => {
  const wrong: readonly (readonly [readonly string[], number, RegExp])[] = [
    [['snapshot', 'save', 'x'], 2, /--endpoints for a server or --data-dir/],
    [['import', import.meta.filename, '--data-dir', join(dir, 'n')], 1, /is no bbolt file/],
    [['import', 'x', '--bump-revision', '5'], 2, /go together/],
    [['import', 'x', '--bump-revison', '5'], 2, /Did you mean --bump-revision/],
    [['hash', '--endpoints', 'http://127.0.0.1:1'], 1, /127\.0\.0\.1:1.*ECONNREFUSED/],
  ];
  for (const [args, code, text] of wrong) {
    const result = megaplane(...args);
    assert.match(result.stderr, text, args.join(' '));
    assert.equal(result.code, code, args.join(' '));
  }
});
