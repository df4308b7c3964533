import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { openStore } from '@megaplane/store/open';
import { type Fields, Peer, has, startEtcd } from '../src/testing/peer.sim.ts';
import { serveEtcd } from '../src/server/run-store.ts';

const SKIP =
  has('etcd') && has('etcdctl') ? false : 'needs etcd: apt-get install etcd-server etcd-client';

const put = (key: string, value: string): Fields => [
  [1, key],
  [2, value],
];

async function keys(peer: Peer, prefix: string): Promise<string[]> {
  const text = await peer.show('KV/Range', [
    [1, prefix],
    [2, `${prefix.slice(0, -1)}0`],
    [8, 1],
  ]);
  // Each row is a KeyValue: its first field is the key, behind a tag and a length.
  const rows = text.split(' | 2:').slice(1);
  return rows.map((row) => row.slice(2, 2 + row.charCodeAt(1)));
}

/** Mirrors `a/` to `b/` while it changes, until both have the same keys. */
async function mirror(from: number, to: number): Promise<void> {
  const source = new Peer(from);
  const target = new Peer(to);
  for (let i = 0; i < 40; i++) await source.call('KV/Put', put(`a/${i}`, `${i}`));
  const places = ['--prefix', 'a/', '--dest-prefix', 'b/', `127.0.0.1:${to}`];
  const args = ['--endpoints', `127.0.0.1:${from}`, 'make-mirror', ...places];
  const child = spawn('etcdctl', args, {
    env: { ...process.env, ETCDCTL_API: '3' },
    stdio: 'ignore',
  });
  try {
    const seen = async (check: (found: readonly string[]) => boolean): Promise<string[]> => {
      for (let i = 0; i < 3000; i++) {
        const found = await keys(target, 'b/');
        if (check(found)) return found;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      throw new Error('the mirror does not follow');
    };
    await seen((found) => found.length === 40);
    await source.call('KV/Txn', [
      [2, [[2, put('a/new', 'x')]]],
      [2, [[3, [[1, 'a/7']]]]],
    ]);
    const found = await seen((all) => all.includes('b/new'));
    assert.deepEqual(
      found,
      (await keys(source, 'a/')).map((key) => key.replace('a/', 'b/')),
    );
    assert.ok(!found.includes('b/7'));
  } finally {
    const closed = once(child, 'close');
    child.kill('SIGKILL');
    await closed;
    source.close();
    target.close();
  }
}

test(
  'etcdctl make-mirror copies and follows to this store and from it',
  { skip: SKIP },
  async () => {
    const etcd = await startEtcd();
    const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
    const server = await serveEtcd(opened, { listen: [{ port: 0 }] });
    const port = server.addresses[0]?.port ?? 0;
    try {
      await mirror(etcd.port, port);
      await mirror(port, etcd.port);
    } finally {
      await server.close();
      await opened.close();
      await etcd.stop();
    }
  },
);
