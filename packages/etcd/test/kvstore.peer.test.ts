/**
 * What Cilium's kvstore package does, with etcd's own client library (`kvstore/main.go`), on a real
 * etcd and on ours: the same transcript.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { GO_BUILD_MS, GoPeer } from '@megaplane/base/go-peer.sim';
import { openStore } from '@megaplane/store/open';
import { has, startEtcd } from '../src/testing/peer.sim.ts';
import { serveEtcd } from '../src/server/run-store.ts';

const RUN_MS = 60_000;
const run = promisify(execFile);
const peer = new GoPeer(join(import.meta.dirname, 'kvstore'));

function reasonToSkip(): string | false {
  if (!has('etcd') || !has('etcdctl')) return 'needs etcd: apt-get install etcd-server etcd-client';
  return peer.skip;
}

async function transcript(port: number): Promise<string[]> {
  const { stdout } = await run(peer.binary, [`http://127.0.0.1:${port}`], { timeout: RUN_MS });
  return stdout.replaceAll(/\/[0-9a-f]{13,16}=/g, '/LEASE=').split('\n');
}

const options = { skip: reasonToSkip(), timeout: GO_BUILD_MS + 2 * RUN_MS };

test('Cilium is answered as by a real etcd', options, async (t) => {
  const problem = await peer.build();
  if (problem !== '') {
    t.skip(`the program with etcd's client cannot be built: ${problem}`);
    return;
  }
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const server = await serveEtcd(opened, { listen: [{ port: 0 }] });
  const etcd = await startEtcd();
  try {
    const [ours, theirs] = await Promise.all([
      transcript(server.addresses[0]?.port ?? 0),
      transcript(etcd.port),
    ]);
    assert.deepEqual(ours, theirs);
    assert.match(ours.at(-2) ?? '', /^left after the sessions: \d+$/);
  } finally {
    await etcd.stop();
    await server.close();
    await opened.close();
  }
});
