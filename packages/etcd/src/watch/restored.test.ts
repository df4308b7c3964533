import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openStore } from '@megaplane/store/open';
import { ProtobufReader } from '@megaplane/wire/protobuf';
import { EtcdContext } from '../call/context.ts';
import { importFile } from '../migrate/import-file.ts';
import { type Fields, Peer, encode } from '../testing/peer.sim.ts';
import { ETCD_LIMITS, serveEtcd } from '../server/run-store.ts';
import { SimulatedCall, SimulatedConnection } from '../testing/network.sim.ts';
import { type Shown, showWatch } from './watch-peer.sim.ts';
import { WatchService } from './watch.ts';

const ALL: Fields = [
  [1, '\0'],
  [2, '\0'],
];

/** A snapshot of a store with a few keys. */
async function backup(file: string): Promise<void> {
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const server = await serveEtcd(opened, { listen: [{ port: 0 }] });
  const peer = new Peer(server.addresses[0]?.port ?? 0);
  for (const key of ['a', 'b', 'c']) await peer.call('KV/Put', [[1, key]]);
  const pieces: Buffer[] = [];
  await new Promise<void>((resolve) => {
    const call = peer.client.open('/etcdserverpb.Maintenance/Snapshot', {
      onMessage: (_call, bytes, start, end) => pieces.push(Buffer.from(blobOf(bytes, start, end))),
      onStatus: () => resolve(),
    });
    call.send(Buffer.alloc(0));
    call.halfClose();
  });
  writeFileSync(file, Buffer.concat(pieces));
  peer.close();
  await server.close();
  await opened.close();
}

/** Field 3 of a SnapshotResponse. */
function blobOf(bytes: Buffer, start: number, end: number): Buffer {
  const reader = new ProtobufReader().reset(bytes, start, end);
  let blob: Buffer = Buffer.alloc(0);
  while (reader.next()) {
    reader.skip();
    if (reader.field === 3) blob = bytes.subarray(reader.chunkStart, reader.chunkEnd);
  }
  return blob;
}

/** What a watch from ten revisions ahead is told after its time is over. */
async function watchAhead(dataDir: string): Promise<readonly Shown[]> {
  const opened = openStore({ dataDir, durability: 'buffered', prefixes: [] });
  let nowMs = 0;
  const context = new EtcdContext(opened.store, ETCD_LIMITS, opened, () => nowMs);
  const watches = new WatchService(context);
  const told: Shown[] = [];
  const connection = new SimulatedConnection();
  const call = new SimulatedCall(connection, (bytes) =>
    told.push(showWatch(bytes, 0, bytes.length)),
  );
  call.accept(watches.factory(call));
  const { appliedRevision } = opened.store;
  for (const [ahead, id] of [
    [1, 1],
    [10, 2],
  ] as const) {
    call.request(encode([[1, [...ALL, [3, appliedRevision + ahead], [7, id]]]]));
  }
  for (const lateMs of [0, 2900, 3100]) {
    nowMs = lateMs;
    watches.retryProgress();
    while (connection.pending > 0) connection.deliver();
  }
  await opened.close();
  return told.filter(({ created }) => !created);
}

test('what an older backup gave out before is no revision to wait for', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'megaplane-restored-'));
  const file = join(folder, 'snapshot');
  try {
    await backup(file);
    const restore = async (name: string, bumpRevision: number): Promise<readonly Shown[]> => {
      const dataDir = join(folder, name);
      const how = { file, dataDir, bumpRevision, skipHashCheck: false, isSnapshot: true };
      await importFile({ ...how, onProgress: () => {} });
      return watchAhead(dataDir);
    };
    const [refused, ...more] = await restore('plain', 0);
    assert.deepEqual([refused?.id, refused?.canceled, more.length], ['2', true, 0]);
    assert.match(refused?.reason ?? '', /required revision is a future revision/);
    assert.deepEqual(await restore('bumped', 1000), []);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
