import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { type OpenStore, openStore } from '@megaplane/store/open';
import { has } from '../src/testing/peer.sim.ts';
import { type EtcdServer, serveEtcd } from '../src/server/run-store.ts';

const SKIP = has('etcdctl') ? false : 'needs etcdctl: apt-get install etcd-client';
const ENVIRONMENT = { ...process.env, ETCDCTL_API: '3' };

let opened: OpenStore;
let server: EtcdServer;
let endpoint = '';

before(async () => {
  opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  server = await serveEtcd(opened, { listen: [{ port: 0 }], progressNotifyMs: 100 });
  endpoint = `127.0.0.1:${server.addresses[0]?.port}`;
});

after(async () => {
  await server.close();
  await opened.close();
});

/** Runs etcdctl asynchronously: the server lives in this process. */
async function etcdctl(args: readonly string[], input = ''): Promise<string> {
  const child = spawn('etcdctl', ['--endpoints', endpoint, ...args], { env: ENVIRONMENT });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stdin.end(input);
  await once(child, 'close');
  return output.trim();
}

test('etcdctl puts, gets, deletes and counts', { skip: SKIP }, async () => {
  assert.equal(await etcdctl(['put', 'fruit/apple', 'red']), 'OK');
  assert.equal(await etcdctl(['put', 'fruit/pear', 'green']), 'OK');
  assert.equal(await etcdctl(['put', '--prev-kv', 'fruit/apple', 'blue']), 'OK\nfruit/apple\nred');
  assert.equal(await etcdctl(['get', 'fruit/apple', '--print-value-only']), 'blue');
  assert.equal(await etcdctl(['get', 'fruit/apple', '--rev', '2', '--print-value-only']), 'red');
  assert.equal(
    await etcdctl(['get', '--prefix', 'fruit/', '--keys-only']),
    'fruit/apple\n\nfruit/pear',
  );
  const json = await etcdctl(['get', '--prefix', 'fruit/', '--limit', '1', '-w', 'json']);
  assert.equal((JSON.parse(json) as { count: number }).count, 2);
  assert.equal(await etcdctl(['del', '--prefix', 'fruit/']), '2');
  assert.match(await etcdctl(['get', 'x', '--rev', '999']), /mvcc: required revision is a future/);
});

test('etcdctl runs a transaction with compares', { skip: SKIP }, async () => {
  const create = 'mod("t") = "0"\n\nput t first\n\nget t\n\n';
  assert.match(await etcdctl(['txn', '-i'], create), /SUCCESS\s+OK/);
  assert.match(await etcdctl(['txn', '-i'], create), /FAILURE\s+t\s+first/);
});

test('etcdctl grants, keeps, shows and revokes a lease', { skip: SKIP }, async () => {
  const granted = await etcdctl(['lease', 'grant', '100']);
  const id = granted.split(' ')[1] ?? '';
  assert.equal(await etcdctl(['put', '--lease', id, 'leased', 'x']), 'OK');
  assert.match(
    await etcdctl(['lease', 'timetolive', id, '--keys']),
    /granted with TTL\(100s\), remaining\(\d+s\), attached keys\(\[leased\]\)/,
  );
  assert.match(await etcdctl(['lease', 'keep-alive', '--once', id]), /keepalived with TTL\(100\)/);
  assert.match(await etcdctl(['lease', 'list']), new RegExp(`found 1 leases\\s+${id}`));
  assert.equal(await etcdctl(['lease', 'revoke', id]), `lease ${id} revoked`);
  assert.equal(await etcdctl(['get', 'leased']), '');
  assert.match(await etcdctl(['lease', 'timetolive', id]), /already expired/);
});

test(
  'etcdctl watches from a revision, live, and a lease that expires',
  { skip: SKIP },
  async () => {
    const from = opened.store.appliedRevision + 1;
    await etcdctl(['put', 'w/1', 'past']);
    const args = ['--endpoints', endpoint, 'watch', '--prefix', 'w/', '--rev', `${from}`];
    const child = spawn('etcdctl', [...args, '--prev-kv'], { env: ENVIRONMENT });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    const seen = async (pattern: RegExp): Promise<void> => {
      for (let i = 0; !pattern.test(output); i++) {
        assert(i < 3000, `not seen: ${pattern} in ${output}`);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    };
    await seen(/PUT\nw\/1\npast\n/);
    await etcdctl(['put', 'w/1', 'now']);
    await seen(/PUT\nw\/1\npast\nw\/1\nnow\n/);
    const granted = await etcdctl(['lease', 'grant', '2']);
    await etcdctl(['put', '--lease', granted.split(' ')[1] ?? '', 'w/2', 'short']);
    await seen(/PUT\nw\/2\nshort\n/);
    await seen(/DELETE\nw\/2\nshort\nw\/2\n/);
    const closed = once(child, 'close');
    child.kill();
    await closed;
    for (let i = 0; opened.store.hub.size > 0 && i < 3000; i++) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assert.equal(opened.store.hub.size, 0);
  },
);

test(
  'etcdctl compacts, and what is older is refused with the text it knows',
  { skip: SKIP },
  async () => {
    await etcdctl(['put', 'c', '1']);
    const old = opened.store.appliedRevision;
    await etcdctl(['put', 'c', '2']);
    assert.equal(await etcdctl(['compaction', `${old + 1}`]), `compacted revision ${old + 1}`);
    assert.match(await etcdctl(['get', 'c', '--rev', `${old}`]), /has been compacted/);
    const cancelled = await etcdctl(['watch', 'c', '--rev', '1']);
    assert.match(cancelled, /required revision has been compacted/);
  },
);

test('etcdctl shows status, members, hash and health', { skip: SKIP }, async () => {
  assert.match(await etcdctl(['endpoint', 'status']), /3\.6\.11, .*true, false, 2, \d+, \d+/);
  assert.match(await etcdctl(['member', 'list']), /started, default/);
  assert.match(await etcdctl(['endpoint', 'health']), /is healthy/);
  assert.match(await etcdctl(['endpoint', 'hashkv']), /, \d+$/m);
  const health = await fetch(`http://${endpoint}/health`);
  assert.deepEqual(await health.json(), { health: 'true', reason: '' });
  const metrics = await (await fetch(`http://${endpoint}/metrics`)).text();
  assert.match(metrics, /^etcd_server_has_leader 1$/m);
  assert.equal((await fetch(`http://${endpoint}/nowhere`)).status, 404);
});
