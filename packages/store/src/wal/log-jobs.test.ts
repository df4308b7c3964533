import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Log } from '../open/log.ts';
import { openStore } from '../open/open.ts';
import { Snapshots } from '../snapshot/snapshots.ts';
import { Store } from '../mvcc/store.ts';

const WRITES = 40;
const VALUE_BYTES = 300_000;
const BOOT = { high: 1, low: 2 };

test('jobs are counted beyond what 32 bits hold, with a snapshot under way', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-jobs-'));
  const options = { dataDir: dir, durability: 'fsync' as const, prefixes: [] };
  const store = new Store(options, 5);
  const [clusterId, memberId] = [Buffer.alloc(8, 1), Buffer.alloc(8, 2)];
  const start = { dir, clusterId, memberId, segment: 0, chain: 0, wallMs: 0 };
  const log = new Log(store, { ...start, firstJob: 2 ** 31 - 20 });
  const snapshots = new Snapshots(store, log, 2, BOOT);
  const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1));
  try {
    store.batch.term(2, BOOT.high, BOOT.low);
    const bytes = Buffer.alloc(8 + VALUE_BYTES, 'v');
    for (let i = 0; i < WRITES; i++) {
      if (i === WRITES / 4) snapshots.begin();
      bytes.write(`/k/${String(i).padStart(5, '0')}`, 'latin1');
      store.putIf(bytes, 0, 8, -1, bytes, 8, bytes.length, 0);
      store.flush();
      log.submit();
      for (const endMs = performance.now() + 20_000; store.isPending;) {
        assert(performance.now() < endMs, `write ${i} is not answered`);
        await turn();
      }
      snapshots.step();
    }
    for (const endMs = performance.now() + 20_000; snapshots.isRunning;) {
      assert(performance.now() < endMs, 'the snapshot does not end');
      snapshots.step();
      await turn();
    }
    await log.close();
    assert(
      readdirSync(dir).some((name) => name.endsWith('.mps')),
      'a snapshot was written',
    );
    const again = openStore(options);
    assert.equal(again.store.keys.size, WRITES);
    assert.equal(again.store.appliedRevision, store.appliedRevision);
    await again.close();
  } finally {
    rmSync(dir, { recursive: true });
  }
});
