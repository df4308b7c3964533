import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { type OpenStore, openStore } from '@megaplane/store/open';
import { importFile } from '../migrate/import-file.ts';
import { NEWER, NEWER_SKIP } from '../testing/newer-etcd.sim.ts';
import { Peer, has, startEtcd } from '../testing/peer.sim.ts';
import { type EtcdServer, serveEtcd } from '../server/run-store.ts';

const SKIP =
  has('etcd') && has('etcdctl') ? false : 'needs etcd: apt-get install etcd-server etcd-client';
const dir = mkdtempSync(join(tmpdir(), 'megaplane-snapshot-'));
const opened: OpenStore = openStore({ dataDir: null, durability: 'none', prefixes: [] });
let server: EtcdServer | null = null;
after(async () => {
  await server?.close();
  await opened.close();
  rmSync(dir, { recursive: true, force: true });
});

/** Runs a program asynchronously: the server lives in this process. */
async function run(program: string, args: readonly string[]): Promise<string> {
  const child = spawn(program, args, { env: { ...process.env, ETCDCTL_API: '3' } });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
  const [code] = (await once(child, 'close')) as [number];
  assert.equal(code, 0, `${program} ${args.join(' ')}: ${output}`);
  return output.trim();
}

/** Versions, deletes, large values, leases, a compaction: one of everything. */
async function served(): Promise<string> {
  if (server === null) {
    fill();
    server = await serveEtcd(opened, { listen: [{ port: 0 }] });
  }
  return `127.0.0.1:${server.addresses[0]?.port}`;
}

function fill(): void {
  const { store } = opened;
  const lease = store.leases.grant(7, 9, 3600, performance.now());
  const put = (name: string, size: number, leaseNumber = 0): void => {
    const key = Buffer.from(name);
    const value = Buffer.alloc(size, name);
    store.put(key, 0, key.length, value, 0, size, leaseNumber);
  };
  for (let turn = 0; turn < 3000; turn++) {
    store.begin();
    put(`key/${turn % 700}`, turn % 90);
    if (turn % 10 === 0) put(`other/${turn}`, 3000, lease);
    if (turn % 500 === 0) put('huge', 1_400_000 + turn);
    const gone = Buffer.from(`key/${(turn * 7) % 700}`);
    if (turn % 3 === 0) store.delete(gone, 0, gone.length);
    store.commit();
  }
  store.compact(1500);
}

async function savedBy(etcdctl: string): Promise<string> {
  const file = join(dir, 'ours.db');
  rmSync(file, { force: true });
  await run(etcdctl, ['--endpoints', await served(), 'snapshot', 'save', file]);
  return file;
}

/** Starts etcd on a restored directory and compares what it serves with ours. */
async function compare(program: string, data: string): Promise<void> {
  const etcd = await startEtcd(program, data, [], true);
  const theirs = new Peer(etcd.port);
  const ours = new Peer(server?.addresses[0]?.port ?? 0);
  try {
    for (const revision of [0, 1501, 1777, 2600, 3001]) {
      const [expected, found] = await Promise.all([
        ours.show('Maintenance/HashKV', [[1, revision]]),
        theirs.show('Maintenance/HashKV', [[1, revision]]),
      ]);
      const withoutRevision = (text: string): string => text.replace(/ \| 4:\d+$/, '');
      assert.equal(withoutRevision(found), withoutRevision(expected));
    }
    const leased = await theirs.show('Lease/LeaseTimeToLive', [
      [1, 7n * 2n ** 32n + 9n],
      [2, 1],
    ]);
    assert.match(leased, /4:3600( \| 5:other\/\d+){300}$/);
  } finally {
    theirs.close();
    ours.close();
    await etcd.stop();
  }
}

test('etcdctl saves a snapshot that etcd 3.4 restores and serves', { skip: SKIP }, async () => {
  const file = await savedBy('etcdctl');
  const status = JSON.parse(await run('etcdctl', ['snapshot', 'status', file, '-w', 'json'])) as {
    readonly revision: number;
    readonly totalKey: number;
  };
  assert.equal(status.revision, 3001);
  const data = join(dir, 'restored-34');
  await run('etcdctl', ['snapshot', 'restore', file, '--data-dir', data]);
  await compare('etcd', data);
});

test('etcdutl finds the snapshot whole, and etcd 3.6 serves it', { skip: NEWER_SKIP }, async () => {
  const file = await savedBy('etcdctl');
  const etcdutl = NEWER?.etcdutl ?? '';
  const status = JSON.parse(await run(etcdutl, ['snapshot', 'status', file, '-w', 'json'])) as {
    readonly revision: number;
    readonly version: string;
  };
  assert.deepEqual([status.revision, status.version], [3001, '3.6.0']);
  const data = join(dir, 'restored-36');
  await run(etcdutl, ['snapshot', 'restore', file, '--data-dir', data]);
  await compare(NEWER?.etcd ?? '', data);
});

test('users and roles go along, to etcd and back', { skip: NEWER_SKIP }, async () => {
  const memory = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const users = await serveEtcd(memory, { listen: [{ port: 0 }], auth: { bcryptCost: 4 } });
  const at = ['--endpoints', `127.0.0.1:${users.addresses[0]?.port}`];
  const root = ['--user', 'root:secret'];
  try {
    await run('etcdctl', [...at, 'user', 'add', 'root:secret']);
    await run('etcdctl', [...at, 'user', 'add', 'ann:pw']);
    await run('etcdctl', [...at, 'role', 'add', 'reader']);
    await run('etcdctl', [...at, 'role', 'grant-permission', 'reader', 'read', 'a', 'b']);
    await run('etcdctl', [...at, 'user', 'grant-role', 'ann', 'reader']);
    await run('etcdctl', [...at, 'put', 'a1', 'v']);
    await run('etcdctl', [...at, 'auth', 'enable']);
    const file = join(dir, 'users.db');
    await run('etcdctl', [...at, ...root, 'snapshot', 'save', file]);
    const data = join(dir, 'users-36');
    await run(NEWER?.etcdutl ?? '', ['snapshot', 'restore', file, '--data-dir', data]);
    const etcd = await startEtcd(NEWER?.etcd ?? '', data, [], true, root);
    const there = ['--endpoints', `127.0.0.1:${etcd.port}`];
    try {
      const asAnn = [...there, '--user', 'ann:pw'];
      assert.equal(await run('etcdctl', [...asAnn, 'get', 'a1', '--print-value-only']), 'v');
      await assert.rejects(run('etcdctl', [...asAnn, 'put', 'a1', 'x']), /permission denied/);
      rmSync(file);
      await run('etcdctl', [...there, ...root, 'snapshot', 'save', file]);
    } finally {
      await etcd.stop();
    }
    const dataDir = join(dir, 'users-back');
    const quiet = { bumpRevision: 0, skipHashCheck: false, onProgress: () => {} };
    assert.equal((await importFile({ file, dataDir, ...quiet })).hasUsers, true);
    const back = openStore({ dataDir, durability: 'buffered', prefixes: [] });
    const sorted = (of: OpenStore): unknown => {
      const text = of.store.documents.get(1)?.toString() ?? '{"users":[]}';
      const stored = JSON.parse(text) as { readonly users: readonly { readonly name: string }[] };
      const byName = (one: { name: string }, other: { name: string }): number =>
        one.name < other.name ? -1 : 1;
      return { ...stored, users: [...stored.users].sort(byName) };
    };
    assert.deepEqual(sorted(back), sorted(memory));
    await back.close();
  } finally {
    await users.close();
    await memory.close();
  }
});
