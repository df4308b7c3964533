import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { FUZZ_SECONDS } from '@megaplane/base/trials.sim';
import { type OpenStore, openStore } from '@megaplane/store/open';
import { Store } from '@megaplane/store/store';
import { Backup } from '../backend/backup.ts';
import { type ImportOptions, type Imported, importFile } from './import-file.ts';
import { NEWER, NEWER_SKIP } from '../testing/newer-etcd.sim.ts';
import { type Fields, Peer, has, startEtcd } from '../testing/peer.sim.ts';
import { serveEtcd } from '../server/run-store.ts';

const SKIP =
  has('etcd') && has('etcdctl') ? false : 'needs etcd: apt-get install etcd-server etcd-client';
const ROUNDS = process.env['MEGAPLANE_LONG'] === undefined ? 40 : 20_000;
const dir = mkdtempSync(join(tmpdir(), 'megaplane-import-'));
after(() => rmSync(dir, { recursive: true, force: true }));
let directories = 0;

function fresh(): string {
  return join(dir, `data-${directories++}`);
}

async function imported(
  file: string,
  options: Partial<ImportOptions> = {},
): Promise<{ readonly result: Imported; readonly dataDir: string }> {
  const dataDir = fresh();
  const defaults = { bumpRevision: 0, skipHashCheck: false, onProgress: () => {} };
  return { result: await importFile({ file, dataDir, ...defaults, ...options }), dataDir };
}

function open(dataDir: string): OpenStore {
  return openStore({ dataDir, durability: 'buffered', prefixes: [] });
}

/** A history with all kinds of records, on a server. */
async function fill(peer: Peer): Promise<void> {
  const random = new Random(4);
  const lease: Fields = [
    [1, 4000],
    [2, 77],
  ];
  await peer.call('Lease/LeaseGrant', lease);
  for (let i = 0; i < 400; i++) {
    const key = `k/${random.below(40)}`;
    const put: Fields = [
      [1, key],
      [2, 'v'.repeat(random.below(i % 50 === 0 ? 20_000 : 60))],
      [3, random.below(5) === 0 ? 77 : 0],
    ];
    if (random.below(4) === 0) await peer.call('KV/DeleteRange', [[1, key]]);
    else if (random.below(3) > 0) await peer.call('KV/Put', put);
    else {
      const other: Fields = [
        [1, `t/${key}`],
        [2, ''],
      ];
      await peer.call('KV/Txn', [
        [2, [[2, put]]],
        [2, [[2, other]]],
      ]);
    }
    if (i === 250) {
      await peer.call('KV/Compact', [
        [1, 180],
        [2, 1],
      ]);
    }
  }
}

/** The same questions to both servers get the same answers. */
async function compare(port: number, opened: OpenStore, firstRevision: number): Promise<void> {
  const server = await serveEtcd(opened, { listen: [{ port: 0 }] });
  const theirs = new Peer(port);
  const ours = new Peer(server.addresses[0]?.port ?? 0);
  const all: Fields = [
    [1, '\0'],
    [2, '\0'],
  ];
  try {
    const last = opened.store.appliedRevision;
    for (let revision = firstRevision; revision <= last; revision += 7) {
      for (const [path, fields] of [
        ['KV/Range', [...all, [4, revision]]],
        ['Maintenance/HashKV', [[1, revision]]],
      ] as const) {
        const [expected, found] = await Promise.all([
          theirs.show(path, fields),
          ours.show(path, fields),
        ]);
        const same = (text: string): string => text.replace(/ \| 4:\d+$/, '');
        assert.equal(same(found), same(expected), `${path} at ${revision}`);
      }
    }
    const keys: Fields = [
      [1, 77],
      [2, 1],
    ];
    const shown = async (peer: Peer): Promise<string> =>
      (await peer.show('Lease/LeaseTimeToLive', keys))
        .replace(/\| 3:\d+ /, '')
        .split(' | ')
        .sort()
        .join();
    assert.equal(await shown(ours), await shown(theirs));
  } finally {
    theirs.close();
    ours.close();
    await server.close();
  }
}

async function roundTrip(program: string): Promise<void> {
  const etcd = await startEtcd(program);
  const peer = new Peer(etcd.port);
  const file = join(dir, `real-${directories}.db`);
  try {
    await fill(peer);
    const saved = spawnSync(
      'etcdctl',
      ['--endpoints', `127.0.0.1:${etcd.port}`, 'snapshot', 'save', file],
      { env: { ...process.env, ETCDCTL_API: '3' } },
    );
    assert.equal(saved.status, 0, String(saved.stderr));
    const { result, dataDir } = await imported(file);
    assert.deepEqual([result.leases, result.alarms, result.compactRevision], [1, 0, 180]);
    const opened = open(dataDir);
    try {
      assert.equal(opened.store.appliedRevision, result.revision);
      await compare(etcd.port, opened, 181);
    } finally {
      await opened.close();
    }
  } finally {
    peer.close();
    await etcd.stop();
  }
}

test('a snapshot of etcd 3.4 is imported with all that it holds', { skip: SKIP }, () =>
  roundTrip('etcd'),
);

test('a snapshot of etcd 3.6 is imported with all that it holds', { skip: NEWER_SKIP }, () =>
  roundTrip(NEWER?.etcd ?? ''),
);

/** A database file of ours, without a checksum. */
function ownFile(entries: number): string {
  const store = new Store({ dataDir: null, durability: 'none', prefixes: [] }, 3);
  const value = Buffer.alloc(5000, 'x');
  for (let i = 0; i < entries; i++) {
    const key = Buffer.from(`key-${i % 97}`);
    if (i % 11 === 10) store.deleteIf(key, 0, key.length, -1);
    else store.putIf(key, 0, key.length, -1, value, 0, i % 13 === 0 ? 5000 : i % 60, 0);
  }
  store.compact(Math.floor(entries / 3));
  store.leases.grant(0, 5, 60, 0);
  const backup = new Backup(store, 2, 1000);
  while (!backup.step());
  const file = join(dir, `own-${directories++}.db`);
  const pieces: Buffer[] = [];
  for (let piece = backup.next(); piece !== null; piece = backup.next()) {
    pieces.push(Buffer.from(piece));
  }
  writeFileSync(file, Buffer.concat(pieces));
  return file;
}

test('an own file comes back, bumped and marked as compacted when asked', async () => {
  const file = ownFile(3000);
  const plain = await imported(file);
  assert.equal(plain.result.revision, 2993);
  const { result, dataDir } = await imported(file, { bumpRevision: 1_000_000 });
  assert.deepEqual([result.revision, result.compactRevision], [1_002_993, 1_002_993]);
  const opened = open(dataDir);
  try {
    const { store } = opened;
    assert.deepEqual([store.appliedRevision, store.compactRevision], [1_002_993, 1_002_993]);
    const key = Buffer.from('key-1');
    assert.equal(store.putIf(key, 0, 5, -1, key, 0, 5, 0), 1_002_994);
    assert.ok(store.leases.remainingMs(store.leases.find(0, 5), performance.now()) < 60_000);
  } finally {
    await opened.close();
  }
});

test('a bumped import has the hash of a bumped restore', { skip: NEWER_SKIP }, async () => {
  const file = ownFile(500);
  const data = fresh();
  const flags = ['--bump-revision', '1000', '--mark-compacted', '--skip-hash-check'];
  const restored = spawnSync(NEWER?.etcdutl ?? '', [
    ...['snapshot', 'restore', file, '--data-dir', data],
    ...flags,
  ]);
  assert.equal(restored.status, 0, String(restored.stderr));
  const { dataDir } = await imported(file, { bumpRevision: 1000 });
  const opened = open(dataDir);
  const etcd = await startEtcd(NEWER?.etcd ?? '', data, [], true);
  try {
    await compare(etcd.port, opened, opened.store.appliedRevision);
  } finally {
    await etcd.stop();
    await opened.close();
  }
});

test('what is no snapshot, cut off or damaged is refused in words', async () => {
  const file = ownFile(300);
  const whole = readFileSync(file);
  const other = join(dir, 'other.db');
  writeFileSync(other, 'not a database at all, but long enough to look at it '.repeat(200));
  await assert.rejects(imported(other), /is no bbolt file/);
  writeFileSync(other, whole.subarray(0, 20_480));
  await assert.rejects(imported(other), /is cut off: it names \d+ pages of 4096 bytes/);
  writeFileSync(other, Buffer.concat([whole, Buffer.alloc(32)]));
  await assert.rejects(imported(other), /the checksum at its end does not fit/);
  assert.equal((await imported(other, { skipHashCheck: true })).result.records, 281);
  truncateSync(other, 60);
  await assert.rejects(imported(other), /whose first pages are damaged/);
  await assert.rejects(imported(dir), /is a directory/);
  const used = fresh();
  const options = { file, bumpRevision: 0, skipHashCheck: false, onProgress: () => {} };
  await importFile({ ...options, dataDir: used });
  await assert.rejects(importFile({ ...options, dataDir: used }), /is not empty/);
});

test('no damage to a file does more than fail in words', async () => {
  const whole = readFileSync(ownFile(120));
  const random = new Random(11);
  const file = join(dir, 'fuzzed.db');
  let refused = 0;
  let rounds = 0;
  const endMs = performance.now() + FUZZ_SECONDS * 1000;
  for (; rounds < ROUNDS || performance.now() < endMs; rounds++) {
    const bytes = Buffer.from(whole);
    for (let i = 0; i <= random.below(4); i++) {
      // Mostly where headers and elements are.
      const page = random.below(bytes.length / 4096) * 4096;
      const at = page + random.below(random.below(2) === 0 ? 48 : 4096);
      bytes[at] = random.below(3) === 0 ? 0xff : random.below(256);
    }
    writeFileSync(file, bytes);
    try {
      const { dataDir } = await imported(file);
      rmSync(dataDir, { recursive: true });
    } catch (error) {
      assert.ok(error instanceof Error && error.message.startsWith(file), String(error));
      refused++;
    }
  }
  assert.ok(refused > rounds / 10, `${refused} of ${rounds} were refused`);
});
