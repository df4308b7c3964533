import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { lockDirectory } from './lock.ts';
import { type OpenStore, openStore } from './open.ts';

const folder = mkdtempSync(join(tmpdir(), 'megaplane-home-'));
after(() => rmSync(folder, { recursive: true, force: true }));

function write({ store }: OpenStore, key: string): void {
  const bytes = Buffer.from(key);
  assert(store.putIf(bytes, 0, bytes.length, -1, bytes, 0, bytes.length, 0) > 0);
}

async function until(what: () => boolean): Promise<void> {
  for (let i = 0; !what(); i++) {
    assert(i < 1000, 'it was waited for 10 s');
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

for (const [way, remove] of [
  ['removed', (dir: string) => rmSync(dir, { recursive: true })],
  ['moved', (dir: string) => renameSync(dir, `${dir}-elsewhere`)],
  ['emptied', (dir: string) => readdirSync(dir).map((name) => rmSync(join(dir, name)))],
] as const) {
  test(`a data directory that is ${way} is written anew, and locked`, async (context) => {
    const said: string[] = [];
    context.mock.method(console, 'error', (text: string) => said.push(text));
    const dir = join(folder, way);
    const open = (): OpenStore =>
      openStore({ dataDir: dir, durability: 'fsync', prefixes: [], historyBytesMax: Infinity });
    const first = open();
    write(first, 'before');
    await until(() => !first.store.isPending);
    remove(dir);
    write(first, 'meanwhile');
    await until(() => /lock.*snapshot-\d+\.mps$/.test(names(dir)));
    assert.throws(() => lockDirectory(dir), /is in use by process/);
    write(first, 'after');
    await first.close();
    const second = open();
    const found = ['before', 'meanwhile', 'after'].filter(
      (key) => second.store.get(Buffer.from(key), 0, key.length) !== 0,
    );
    await second.close();
    assert.deepEqual(found, ['before', 'meanwhile', 'after']);
    assert.match(said.join(''), /removed or moved while they were written; everything that/);
    assert.equal(said.length, 1);
  });
}
