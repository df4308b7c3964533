import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openStore } from '@megaplane/store/open';
import { databaseOf } from './etcd-directory.ts';
import { Follower } from './follower.ts';
import { importFile } from './import-file.ts';
import { NEWER, NEWER_SKIP } from '../testing/newer-etcd.sim.ts';
import { type Fields, Peer, has, startEtcd } from '../testing/peer.sim.ts';
import { Remote } from '../client/remote.ts';
import { saveRemote, snapshotStatus } from '../backend/snapshot-file.ts';

const SKIP =
  has('etcd') && has('etcdctl') ? false : 'needs etcd: apt-get install etcd-server etcd-client';
const dir = mkdtempSync(join(tmpdir(), 'megaplane-follow-'));
after(() => rmSync(dir, { recursive: true, force: true }));

function endpoint(port: number) {
  return { url: `http://127.0.0.1:${port}`, host: '127.0.0.1', port, isTls: false };
}

const quiet = (): void => {};

async function write(peer: Peer, from: number, to: number): Promise<void> {
  for (let i = from; i < to; i++) {
    const put: Fields = [
      [1, `k/${i % 17}`],
      [2, 'v'.repeat(i % 50)],
      [3, i % 5 === 0 ? 7 : 0],
    ];
    if (i % 7 === 3) await peer.call('KV/DeleteRange', [[1, `k/${i % 11}`]]);
    else if (i % 3 === 0) {
      const other: Fields = [
        [1, `a/${i % 5}`],
        [2, ''],
      ];
      await peer.call('KV/Txn', [
        [2, [[2, put]]],
        [2, [[2, other]]],
      ]);
    } else await peer.call('KV/Put', put);
    if (i === 130) {
      await peer.call('KV/Compact', [
        [1, 100],
        [2, 1],
      ]);
    }
  }
}

/** Imports while the origin is written to, and follows it until nothing is behind. */
async function follow(program: string, name: string): Promise<void> {
  const etcd = await startEtcd(program);
  const peer = new Peer(etcd.port);
  const remote = new Remote(endpoint(etcd.port), {});
  const grant = (id: number, ttl: number): Promise<Buffer | string> =>
    peer.call('Lease/LeaseGrant', [
      [1, ttl],
      [2, id],
    ]);
  try {
    await grant(7, 900);
    await grant(8, 900);
    await write(peer, 0, 120);
    const file = join(dir, `${name}.db`);
    const dataDir = join(dir, name);
    await saveRemote(remote, file, quiet);
    const going = write(peer, 120, 300);
    const { revision } = await importFile({
      ...{ file, dataDir, bumpRevision: 0, skipHashCheck: false, onProgress: quiet },
    });
    const opened = openStore({ dataDir, durability: 'buffered', prefixes: [] });
    try {
      const follower = new Follower(remote, opened);
      follower.start();
      await going;
      await peer.call('Lease/LeaseRevoke', [[1, 8]]);
      await grant(9, 500);
      while ((await follower.lag()) > 0) await new Promise((resolve) => setTimeout(resolve, 5));
      assert.ok(follower.revision > revision);
      const compared = await follower.compare();
      assert.equal(compared.revision, opened.store.appliedRevision);
      assert.equal(opened.store.compactRevision, 100);
      assert.equal(await follower.syncLeases(), 2);
      const { leases } = opened.store;
      assert.equal(leases.find(0, 8), 0);
      assert.deepEqual(
        [7, 9].map((id) => leases.ttlSeconds(leases.find(0, id))),
        [900, 500],
      );
      follower.stop();
    } finally {
      await opened.close();
    }
  } finally {
    peer.close();
    remote.close();
    await etcd.stop();
  }
}

test('a running etcd 3.4 is followed until both have the same hash', { skip: SKIP }, () =>
  follow('etcd', 'three-four'),
);

test('a running etcd 3.6 is followed until both have the same hash', { skip: NEWER_SKIP }, () =>
  follow(NEWER?.etcd ?? '', 'three-six'),
);

test('a directory of etcd is taken after a clean stop', { skip: SKIP }, async () => {
  const etcd = await startEtcd('etcd', join(dir, 'stopped'));
  const peer = new Peer(etcd.port);
  await write(peer, 0, 40);
  peer.close();
  const remote = new Remote(endpoint(etcd.port), {});
  const { hash } = await remote.hashKv(0);
  remote.close();
  await etcd.stop(true, 'SIGTERM');
  const dataDir = join(dir, 'from-directory');
  const file = databaseOf(etcd.dir, false);
  const { records } = await importFile({
    ...{ file, dataDir, bumpRevision: 0, skipHashCheck: false, onProgress: quiet },
  });
  assert.ok(records > 30);
  assert.notEqual(hash, 0);
  assert.throws(() => databaseOf(dir, false), /is no data directory of etcd/);
  assert.throws(() => databaseOf(join(dir, 'nowhere'), false), /there is no/);
});

test('a directory whose file lacks writes of its log is refused', { skip: SKIP }, async () => {
  // Its batches are so long that nothing reaches the file before the kill.
  const flags = ['--backend-batch-interval', '1h', '--backend-batch-limit', '100000'];
  const etcd = await startEtcd('etcd', join(dir, 'killed'), flags);
  const peer = new Peer(etcd.port);
  await write(peer, 0, 40);
  peer.close();
  await etcd.stop(true, 'SIGKILL');
  assert.throws(() => databaseOf(etcd.dir, false), /has \d+ writes that its database file lacks/);
  assert.match(databaseOf(etcd.dir, true), /member\/snap\/db$/);
});

test('a snapshot file has the status that etcdutl gives it', { skip: NEWER_SKIP }, async () => {
  const { spawnSync } = await import('node:child_process');
  const file = join(dir, 'three-six.db');
  const args = ['snapshot', 'status', file, '-w', 'json'];
  const { stdout } = spawnSync(NEWER?.etcdutl ?? '', args, { encoding: 'utf8' });
  assert.deepEqual({ ...(await snapshotStatus(file, quiet)) }, JSON.parse(stdout));
});
