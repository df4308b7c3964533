import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type OpenStore, openStore } from '@megaplane/store/open';
import { connect } from '@megaplane/wire/connect';
import { grpcClient } from '@megaplane/wire/grpc-client';
import { Backup } from './backup.ts';
import { serveEtcd } from '../server/run-store.ts';

function fill({ store }: OpenStore, puts: number): void {
  const value = Buffer.alloc(2000, 'v');
  for (let i = 0; i < puts; i++) {
    const key = Buffer.from(`${i % 2 === 0 ? 'short' : 'long'}/${i % 100}`);
    store.putIf(key, 0, key.length, -1, value, 0, 2000, 0);
  }
}

/** Memory behind a compaction comes back only when nobody reads records any more. */
async function isGivenBack({ store }: OpenStore): Promise<boolean> {
  store.compact(store.appliedRevision);
  for (let i = 0; i < 3000 && store.sweep.isBehind; i++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return !store.sweep.isBehind;
}

test('a snapshot that the client gives up holds no memory back', async () => {
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  fill(opened, 6000);
  const server = await serveEtcd(opened, { listen: [{ port: 0 }] });
  const connection = connect({ port: server.addresses[0]?.port ?? 0 });
  const client = grpcClient(connection);
  try {
    for (const isAbrupt of [false, true]) {
      await new Promise<void>((resolve) => {
        const call = client.open('/etcdserverpb.Maintenance/Snapshot', {
          onMessage: () => {
            if (isAbrupt) connection.destroy();
            else call.cancel();
            resolve();
          },
          onStatus: () => resolve(),
        });
        call.send(Buffer.alloc(0));
        call.halfClose();
      });
      fill(opened, 100);
      assert.ok(await isGivenBack(opened), isAbrupt ? 'after a lost connection' : 'after a cancel');
    }
  } finally {
    connection.destroy();
    await server.close();
    await opened.close();
  }
});

test('a backup of a store with a history budget is compacted at the latest cut', async () => {
  const prefixes = [{ prefix: 'short/', historyBytesMax: 100_000 }];
  const opened = openStore({ dataDir: null, durability: 'none', prefixes });
  fill(opened, 3000);
  const { store } = opened;
  const budgeted = store.classes.all[1];
  const isCut = (): boolean => (budgeted?.boundary ?? 0) > 0 && !store.sweep.hasWork;
  for (let i = 0; i < 3000 && !isCut(); i++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const cut = budgeted?.boundary ?? 0;
  assert.ok(cut > 1000 && store.compactRevision === -1, `cut at ${cut}`);
  const backup = new Backup(store, 2, 0);
  while (!backup.step());
  // One version of each of the keys written before the cut, and all versions after it.
  const after = store.appliedRevision - cut;
  assert.ok(backup.records >= after && backup.records <= after + 100, `${backup.records} records`);
  const pieces: Buffer[] = [];
  for (let piece = backup.next(); piece !== null; piece = backup.next()) {
    pieces.push(Buffer.from(piece));
  }
  const mark = Buffer.alloc(17);
  mark.writeUInt32BE(cut, 4);
  mark[8] = 0x5f;
  const file = Buffer.concat(pieces);
  assert.equal(file.length, backup.size);
  assert.ok(file.includes(Buffer.concat([Buffer.from('finishedCompactRev'), mark])));
  await opened.close();
});
