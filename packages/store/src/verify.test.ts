import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openStore } from './open.ts';
import { isSound, repair, verifyDirectory } from './verify.ts';

const top = mkdtempSync(join(tmpdir(), 'megaplane-verify-'));
after(() => rmSync(top, { recursive: true, force: true }));
let directories = 0;

async function filled(puts: number): Promise<string> {
  const dir = join(top, `${directories++}`);
  const opened = openStore({ dataDir: dir, durability: 'buffered', prefixes: [] });
  const { store } = opened;
  const value = Buffer.alloc(2000, 'v');
  for (let i = 0; i < puts; i++) {
    const key = Buffer.from(`key-${i % 50}`);
    store.putIf(key, 0, key.length, -1, value, 0, i % 100 === 0 ? 2000 : 30, 0);
    while (i % 100 === 0 && store.isPending) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
  await opened.close();
  return dir;
}

const quiet = (): void => {};

function logOf(dir: string): string {
  return join(dir, readdirSync(dir).find((name) => name.startsWith('log-')) ?? '');
}

test('a whole directory is counted and left as it is', async () => {
  const dir = await filled(2000);
  const before = readFileSync(logOf(dir));
  const report = await verifyDirectory(dir, quiet);
  assert.ok(isSound(report));
  assert.deepEqual([report.records, report.lastRevision, report.faults], [2000, 2001, []]);
  assert.ok(readFileSync(logOf(dir)).equals(before));
  await assert.rejects(verifyDirectory(top, quiet), /holds no store/);
});

test('a torn end is told from damage, and repair keeps what it cuts', async () => {
  const dir = await filled(1500);
  const path = logOf(dir);
  const whole = readFileSync(path);
  writeFileSync(path, Buffer.concat([whole, Buffer.from('torn')]));
  const torn = await verifyDirectory(dir, quiet);
  assert.ok(isSound(torn));
  assert.equal(torn.files[0]?.isTorn, true);
  const middle = Math.floor(whole.length / 2);
  const damaged = Buffer.from(whole);
  damaged[middle] = (damaged[middle] ?? 0) ^ 1;
  writeFileSync(path, damaged);
  const report = await verifyDirectory(dir, quiet);
  assert.ok(!isSound(report));
  const [file] = report.files;
  assert.ok(file !== undefined && file.badAt > 64 && file.badAt <= middle);
  assert.match(repair(dir, report).join('\n'), /was cut at byte \d+; all of it is kept as/);
  assert.ok(readFileSync(`${path}.damaged`).equals(damaged));
  const again = await verifyDirectory(dir, quiet);
  assert.ok(isSound(again) && again.records < 1500 && again.records > 0);
  const opened = openStore({ dataDir: dir, durability: 'buffered', prefixes: [] });
  assert.equal(opened.store.appliedRevision, again.lastRevision);
  await opened.close();
});

test('missing segments and a server that runs are said', async () => {
  const dir = await filled(100);
  writeFileSync(join(dir, 'log-00000007.mpl'), readFileSync(logOf(dir)));
  const report = await verifyDirectory(dir, quiet);
  assert.match(report.faults.join(), /log-00000001.mpl is missing, but log-00000007.mpl is there/);
  const other = await filled(10);
  const opened = openStore({ dataDir: other, durability: 'buffered', prefixes: [] });
  try {
    await assert.rejects(verifyDirectory(other, quiet), /in use|holds|lock/);
  } finally {
    await opened.close();
  }
});
