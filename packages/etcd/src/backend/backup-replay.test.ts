/** A store and the real etcd that its backup became go on alike, and the other way round. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openStore } from '@megaplane/store/open';
import { importFile } from '../migrate/import-file.ts';
import { NEWER, NEWER_SKIP } from '../testing/newer-etcd.sim.ts';
import { Peer, type RealEtcd, startEtcd } from '../testing/peer.sim.ts';
import { isFatal, randomRequests, sameLease } from '../testing/random-requests.sim.ts';
import { serveEtcd } from '../server/run-store.ts';

const isLong = process.env['MEGAPLANE_LONG'] !== undefined;
const REQUESTS = isLong ? 10_000 : 100;
const SEED = Number(process.env['SEED'] ?? 20261123);
/** Random requests ask for no revision further back. */
const REVISIONS_LOOKED_BACK = 16;
const ETCD = NEWER?.etcd ?? '';
const dir = mkdtempSync(join(tmpdir(), 'megaplane-replay-'));
after(() => rmSync(dir, { recursive: true, force: true }));

interface Served {
  readonly port: number;
  stop(): Promise<void>;
}

async function run(program: string, ...args: readonly string[]): Promise<void> {
  const child = spawn(program, args, { env: { ...process.env, ETCDCTL_API: '3' } });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
  const [code] = (await once(child, 'close')) as [number];
  assert.equal(code, 0, `${program} ${args.join(' ')}: ${output}`);
}

async function serve(dataDir: string | null): Promise<Served> {
  const opened = openStore({ dataDir, durability: 'buffered', prefixes: [] });
  const server = await serveEtcd(opened, { listen: [{ port: 0 }] });
  return {
    port: server.addresses[0]?.port ?? 0,
    stop: async () => {
      await server.close();
      await opened.close();
    },
  };
}

async function restored(file: string, name: string, bumpRevision: number): Promise<RealEtcd> {
  const data = join(dir, name);
  const bump = ['--bump-revision', String(bumpRevision), '--mark-compacted'];
  const flags = bumpRevision > 0 ? bump : [];
  await run(NEWER?.etcdutl ?? '', 'snapshot', 'restore', file, '--data-dir', data, ...flags);
  return startEtcd(ETCD, data, [], true);
}

async function brought(file: string, name: string, bumpRevision: number): Promise<Served> {
  const dataDir = join(dir, name);
  await importFile({ file, dataDir, bumpRevision, skipHashCheck: false, onProgress: () => {} });
  return serve(dataDir);
}

async function revisionOf(peer: Peer): Promise<number> {
  return Number(/^revision (\d+)/.exec(await peer.show('KV/Range', [[1, 'a']]))?.[1]);
}

/** Users, roles, leases, versions, deletions and compactions. */
async function fill(peer: Peer): Promise<void> {
  await peer.call('Auth/UserAdd', [
    [1, 'eve'],
    [2, 'e'],
  ]);
  await peer.call('Auth/RoleAdd', [[1, 'reader']]);
  const all = [
    [2, '\0'],
    [3, '\0'],
  ] as const;
  await peer.call('Auth/RoleGrantPermission', [
    [1, 'reader'],
    [2, all],
  ]);
  await play(peer, [], SEED);
}

/** The same requests to all of them: the same answers. */
async function play(leader: Peer, others: readonly Peer[], seed: number): Promise<void> {
  for (const [index, make] of randomRequests(REQUESTS, seed).entries()) {
    const { path, fields } = make(await revisionOf(leader));
    if (isFatal(path, fields)) continue;
    const told = await Promise.all([leader, ...others].map((peer) => peer.show(path, fields)));
    const [first, ...rest] = path.startsWith('Lease/') ? told.map(sameLease) : told;
    for (const one of rest) {
      assert.equal(one, first, `SEED=${seed}, ${index}: ${path} ${JSON.stringify(fields)}`);
    }
  }
}

async function compare(parts: readonly Served[]): Promise<void> {
  const peers = parts.map(({ port }) => new Peer(port));
  const [leader, ...others] = peers;
  assert(leader !== undefined);
  // A server remembers the hashes of its last compactions; no backup does.
  for (let i = 0; i < REVISIONS_LOOKED_BACK; i++) {
    const put = [[1, 'a']] as const;
    for (const peer of peers) await peer.call('KV/Put', put);
  }
  for (const [path, fields] of [
    [
      'KV/Range',
      [
        [1, '\0'],
        [2, '\0'],
      ],
    ],
    ['Maintenance/HashKV', [[1, await revisionOf(leader)]]],
    ['Auth/UserGet', [[1, 'eve']]],
    ['Auth/RoleGet', [[1, 'reader']]],
  ] as const) {
    const [first, second] = await Promise.all(peers.map((peer) => peer.show(path, fields)));
    assert.equal(second, first, path);
  }
  await play(leader, others, SEED + 1);
  for (const peer of peers) peer.close();
}

for (const [isOurs, bump] of [
  [true, 0],
  [false, 0],
  [true, 1000],
  [false, 1000],
] as const) {
  const skip = bump > 0 && !isLong ? 'runs with MEGAPLANE_LONG=1' : NEWER_SKIP;
  const whose = isOurs ? 'of a store' : 'of etcd 3.6';
  const how = bump > 0 ? `, ${bump} revisions later` : '';
  test(`a backup ${whose} goes on as its original${how}`, { skip }, async () => {
    const origin: Served = isOurs ? await serve(null) : await startEtcd(ETCD);
    const peer = new Peer(origin.port);
    const file = join(dir, `${isOurs}-${bump}.db`);
    const parts: Served[] = [];
    try {
      await fill(peer);
      await run('etcdctl', '--endpoints', `127.0.0.1:${origin.port}`, 'snapshot', 'save', file);
      // Moved on, the original is another: the two that were made of it are compared.
      if (isOurs || bump > 0) parts.push(await restored(file, `etcd-${isOurs}-${bump}`, bump));
      if (!isOurs || bump > 0) parts.push(await brought(file, `own-${isOurs}-${bump}`, bump));
      await compare(bump > 0 ? parts : [origin, ...parts]);
    } finally {
      peer.close();
      for (const part of [origin, ...parts]) await part.stop();
    }
  });
}
