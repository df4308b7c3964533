import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, mock, test } from 'node:test';
import { lockDirectory } from '../wal/lock.ts';
import { type OpenStore, openStore } from './open.ts';

const folder = mkdtempSync(join(tmpdir(), 'megaplane-home-'));
const said: string[] = [];
const saying = mock.method(console, 'error', (text: string) => said.push(text));
after(() => {
  saying.mock.restore();
  rmSync(folder, { recursive: true, force: true });
});

function write({ store }: OpenStore, key: string, value: Buffer = Buffer.from(key)): void {
  const bytes = Buffer.from(key);
  assert(store.putIf(bytes, 0, bytes.length, -1, value, 0, value.length, 0) > 0);
}

const open = (dir: string): OpenStore =>
  openStore({ dataDir: dir, durability: 'fsync', prefixes: [], historyBytesMax: Infinity });

/** Which of the keys does the next start find? */
async function foundAgain(dir: string, keys: readonly string[]): Promise<string[]> {
  const again = open(dir);
  const found = keys.filter((key) => again.store.get(Buffer.from(key), 0, key.length) !== 0);
  await again.close();
  return found;
}

async function until(what: () => boolean): Promise<void> {
  for (let i = 0; !what(); i++) {
    assert(i < 3000, 'it was waited for 30 s');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function names(dir: string): string {
  try {
    return readdirSync(dir).join(' ');
  } catch {
    return '';
  }
}

// Most of their time they wait for the next look at the directory.
void describe('the home of a log', { concurrency: true }, () => {
  for (const [way, remove] of [
    ['removed', (dir: string) => rmSync(dir, { recursive: true })],
    ['moved', (dir: string) => renameSync(dir, `${dir}-elsewhere`)],
    ['emptied', (dir: string) => readdirSync(dir).map((name) => rmSync(join(dir, name)))],
    ['without its lock', (dir: string) => rmSync(join(dir, 'lock'))],
  ] as const) {
    test(`a data directory that is ${way} is written anew, and locked`, async () => {
      const dir = join(folder, way);
      const first = open(dir);
      write(first, 'before');
      await until(() => !first.store.isPending);
      remove(dir);
      write(first, 'meanwhile');
      await until(() => /lock.*snapshot-\d+\.mps$/.test(names(dir)));
      assert.throws(() => lockDirectory(dir), /is in use by process/);
      write(first, 'after');
      await first.close();
      const keys = ['before', 'meanwhile', 'after'];
      assert.deepEqual(await foundAgain(dir, keys), keys);
      const about = said.filter((text) => text.includes(`${dir} `));
      assert.match(about.join(''), /removed or moved while they were written; everything that/);
      assert.equal(about.length, 1);
    });
  }

  for (const [when, isThen] of [
    ['as a segment is begun', (): boolean => true],
    ['while a snapshot is written', (dir: string) => existsSync(join(dir, 'snapshot.part'))],
  ] as const) {
    test(`a data directory that is removed ${when} is written anew`, async () => {
      const dir = join(folder, when);
      const first = open(dir);
      const keys = Array.from({ length: 40 }, (_, index) => `key ${index}`);
      for (const key of keys) write(first, key, Buffer.alloc(1_000_000));
      await until(() => !first.store.isPending);
      first.snapshot();
      while (!isThen(dir)) await new Promise((resolve) => setImmediate(resolve));
      rmSync(dir, { recursive: true });
      await until(() => /lock log-\d+\.mpl snapshot-\d+\.mps$/.test(names(dir)));
      assert.throws(() => lockDirectory(dir), /is in use by process/);
      await first.close();
      assert.deepEqual(await foundAgain(dir, keys), keys);
    });
  }

  test('a data directory that is removed just before a stop is written anew', async () => {
    const dir = join(folder, 'stop');
    const first = open(dir);
    write(first, 'one');
    await until(() => !first.store.isPending);
    rmSync(dir, { recursive: true });
    await first.close();
    assert.deepEqual(await foundAgain(dir, ['one']), ['one']);
  });

  test('a data directory that another process has taken is left to it', async () => {
    const dir = join(folder, 'taken');
    const first = open(dir);
    const told = new Promise<string>((resolve) => first.store.onLogFailure(resolve));
    writeFileSync(join(dir, 'lock'), '1 1 of-another-container\n');
    assert.match(await told, /is in use by process 1;/);
    await first.close();
  });
});
