import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { after, test } from 'node:test';
import { openStore } from '@megaplane/store/open';
import { serveEtcd } from '../server/run-store.ts';
import { EtcdClient, type EtcdResult } from './client.ts';
import { parseEndpoints } from './endpoints.ts';
import type { WatchAnswer } from './messages.ts';

const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
const server = await serveEtcd(opened, { listen: [{}] });
const url = `http://127.0.0.1:${server.addresses[0]?.port ?? 0}`;
after(async () => {
  await server.close();
  await opened.close();
});

function clientOf(text: string): EtcdClient {
  const endpoints = parseEndpoints('--etcd-servers', text);
  return new EtcdClient({ endpoints, tls: () => null, log: () => {}, connectMsMax: 300 });
}

function valueOf<T>(result: EtcdResult<T>): T {
  assert(result.ok, result.ok ? '' : result.message);
  return result.value;
}

test('a conditional write succeeds once and tells the loser what is there', async () => {
  const client = clientOf(url);
  const key = Buffer.from('/a/1');
  const first = valueOf(await client.write({ key, expected: 0, value: Buffer.from('one') }));
  assert.equal(first.succeeded, true);
  const lost = valueOf(await client.write({ key, expected: 0, value: Buffer.from('two') }));
  assert.equal(lost.succeeded, false);
  assert.equal(lost.found?.modRevision, first.revision);
  assert.equal(lost.found?.value.toString(), 'one');
  const expected = first.revision;
  assert.equal(valueOf(await client.write({ key, expected, value: null })).succeeded, true);
  const absent = valueOf(await client.write({ key, expected, value: Buffer.from('x') }));
  assert.deepEqual([absent.succeeded, absent.found], [false, null]);
  client.close();
});

test('a write with a guard counts only while the guarded key is the same one', async () => {
  const client = clientOf(url);
  const lease = valueOf(await client.grantLease(60));
  assert.ok(valueOf(await client.keepLease(lease)) > 0);
  const leader = Buffer.from('/g/leader');
  const value = Buffer.from('one');
  const won = valueOf(await client.write({ key: leader, expected: 0, value, lease }));
  assert.equal(won.succeeded, true);
  const key = Buffer.from('/g/a');
  const guard = { key: leader, createRevision: won.revision };
  const first = valueOf(await client.write({ key, expected: 0, value, guard }));
  assert.equal(first.succeeded, true);
  const stale = { key: leader, createRevision: won.revision - 1 };
  for (const expected of [first.revision, -1]) {
    const lost = valueOf(await client.write({ key, expected, value: null, guard: stale }));
    assert.deepEqual([lost.succeeded, lost.found?.modRevision], [false, first.revision]);
  }
  valueOf(await client.revokeLease(lease));
  assert.deepEqual(valueOf(await client.range({ key: leader })).kvs, []);
  const late = { key, expected: first.revision, value, guard };
  assert.equal(valueOf(await client.write(late)).succeeded, false);
  assert.equal(valueOf(await client.keepLease(lease)), 0);
  client.close();
});

test('a range comes in pages, at one revision', async () => {
  const client = clientOf(url);
  for (let i = 0; i < 5; i++) {
    valueOf(await client.put(Buffer.from(`/p/${i}`), Buffer.from(`${i}`)));
  }
  const request = { key: Buffer.from('/p/'), end: Buffer.from('/p0'), limit: 3 };
  const page = valueOf(await client.range(request));
  assert.deepEqual([page.kvs.length, page.more, page.count], [3, true, 5]);
  valueOf(await client.put(Buffer.from('/p/9'), Buffer.from('late')));
  const key = Buffer.from('/p/2\0');
  const rest = valueOf(await client.range({ ...request, key, revision: page.revision }));
  assert.deepEqual(
    rest.kvs.map((kv) => kv.value.toString()),
    ['3', '4'],
  );
  client.close();
});

test('a watch tells what follows a revision, and how far it is', async () => {
  const client = clientOf(url);
  const before = valueOf(await client.put(Buffer.from('/w/1'), Buffer.from('one')));
  const answers: WatchAnswer[] = [];
  let wake = (): void => {};
  const watch = await client.watch(Buffer.from('/w/'), Buffer.from('/w0'), before + 1, {
    onAnswer: (answer) => {
      answers.push(answer);
      wake();
    },
    onEnd: () => {},
  });
  assert(watch !== null);
  valueOf(await client.write({ key: Buffer.from('/w/1'), expected: -1, value: null }));
  const other = valueOf(await client.put(Buffer.from('/elsewhere'), Buffer.from('x')));
  while (!answers.some((answer) => answer.revision >= other)) {
    watch.requestProgress();
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  }
  const events = answers.flatMap((answer) => answer.events);
  assert.deepEqual(
    events.map(({ isDelete, kv }) => [isDelete, kv.key.toString(), kv.modRevision]),
    [[true, '/w/1', before + 1]],
  );
  watch.cancel();
  client.close();
});

test('a member that is gone, and one that never greets, are left for the next', async () => {
  const mute = createServer().listen(0, '127.0.0.1');
  await once(mute, 'listening');
  const { port } = mute.address() as { port: number };
  const client = clientOf(`http://127.0.0.1:1,http://127.0.0.1:${port},${url}`);
  assert.match(valueOf(await client.version()), /^3\./);
  client.close();
  mute.close();
});

test('lists of servers are read or refused by the name of the flag', () => {
  assert.deepEqual(parseEndpoints('--etcd-servers', 'https://[::1]:2379, 10.0.0.1:2379'), [
    { url: 'https://[::1]:2379', host: '::1', port: 2379, isTls: true },
    { url: 'http://10.0.0.1:2379', host: '10.0.0.1', port: 2379, isTls: false },
  ]);
  for (const text of ['', 'ftp://a:1', 'http://a:1/path', 'http://']) {
    assert.throws(() => parseEndpoints('--etcd-servers', text), /^Error: --etcd-servers: /);
  }
});
