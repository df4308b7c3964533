import assert from 'node:assert/strict';
import {
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openStore } from '../open/open.ts';
import { FILE_HEADER_BYTES, FRAME_HEADER_BYTES } from '../wal/frame.ts';
import { SnapshotWriter } from '../snapshot/snapshot-writer.ts';
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

async function refusesCuts(dir: string): Promise<void> {
  const name = readdirSync(dir).find((one) => one.endsWith('.mps')) ?? '';
  const path = join(dir, name);
  const whole = readFileSync(path);
  const firstFrame = FRAME_HEADER_BYTES + whole.readUInt32LE(FILE_HEADER_BYTES + 16);
  for (const size of [FILE_HEADER_BYTES, FILE_HEADER_BYTES + firstFrame]) {
    assert(size < whole.length);
    truncateSync(path, size);
    const options = { dataDir: dir, durability: 'buffered', prefixes: [] } as const;
    assert.throws(() => openStore(options), /it ends before its last record.*Restore a backup$/);
    const report = await verifyDirectory(dir, quiet);
    assert.equal(report.files[0]?.fault, 'it ends before its last record');
    assert.throws(() => repair(dir, report), /restore a backup/);
    assert.equal(statSync(path).size, size);
    writeFileSync(path, whole);
  }
  assert.ok(isSound(await verifyDirectory(dir, quiet)));
}

test('a snapshot that was cut between two frames is not taken for whole', async () => {
  const dir = await filled(3000);
  const opened = openStore({ dataDir: dir, durability: 'buffered', prefixes: [] });
  for (let i = 0; i < 3; i++) {
    const key = Buffer.from(`large-${i}`);
    opened.store.putIf(key, 0, key.length, -1, Buffer.alloc(3 << 20, 'v'), 0, 3 << 20, 0);
  }
  await opened.defragment();
  await opened.close();
  await refusesCuts(dir);
});

test('nor is one that was made of a backup', async () => {
  const dir = join(top, 'foreign');
  const writer = new SnapshotWriter(dir);
  const value = Buffer.alloc(3 << 20, 'v');
  for (let i = 0; i < 3; i++) {
    const [createRevision, modRevision] = [i + 2, i + 2];
    const lease = { leaseHigh: 0, leaseLow: 0, isTombstone: false };
    const key = Buffer.from(`large-${i}`);
    writer.record({ key, value, modRevision, createRevision, sub: 0, version: 1, ...lease });
  }
  writer.finish();
  await refusesCuts(dir);
});
