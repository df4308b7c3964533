import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openStore } from './open.ts';

test('small groups are written in their turn, large ones by the thread', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-here-'));
  const open = () => openStore({ dataDir: dir, durability: 'buffered', prefixes: [] });
  let opened = open();
  try {
    const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    const bytes = Buffer.alloc(100_000, 'v');
    let within = 0;
    for (let i = 0; i < 300; i++) {
      const { store } = opened;
      bytes.write(`/k/${String(i).padStart(5, '0')}`, 'latin1');
      store.putIf(bytes, 0, 8, -1, bytes, 8, i % 7 === 0 ? bytes.length : 200, 0);
      await turn();
      await turn();
      if (!store.isPending) within++;
      const endMs = performance.now() + 10_000;
      while (store.isPending) {
        assert.ok(performance.now() < endMs, 'the log did not answer');
        await turn();
      }
    }
    assert.ok(within > 100, `${within} of 300 groups were published within their turn`);
    const revision = opened.store.publishedRevision;
    await opened.close();
    opened = open();
    assert.equal(opened.store.publishedRevision >= revision, true);
    assert.equal(opened.store.keys.size, 300);
    assert.equal(opened.replayed.cutBytes, 0);
  } finally {
    await opened.close();
    rmSync(dir, { recursive: true });
  }
});
