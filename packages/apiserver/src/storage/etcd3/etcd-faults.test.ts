import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { EtcdClient } from '@megaplane/etcd/client/client';
import { parseEndpoints } from '@megaplane/etcd/client/endpoints';
import { Compactor } from './compactor.ts';
import { RealEtcd, withoutEtcd } from './real-etcd.sim.ts';
import { startServer, until } from '../../testing/servers.sim.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const etcd = new RealEtcd();
if (withoutEtcd === false) await etcd.start();
after(() => etcd.remove());

interface Shown {
  readonly metadata: { readonly name: string; resourceVersion: string };
  readonly data?: Record<string, string>;
}

function config(name: string): object {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: {} };
}

function clientOf(): EtcdClient {
  const endpoints = parseEndpoints('--etcd-servers', etcd.url);
  return new EtcdClient({ endpoints, tls: () => null, log: () => {} });
}

test('two servers agree on the etcd of Debian too', { skip: withoutEtcd }, async () => {
  const flags = { etcdServers: etcd.url };
  const [left, right] = [await startServer(flags), await startServer(flags)];
  await left.bootstrap();
  const client = clientOf();
  for (let i = 0; i < 10; i++) {
    const writer = i % 2 === 0 ? left : right;
    const reader = i % 2 === 0 ? right : left;
    assert.equal((await writer.ask('POST', MAPS, config(`a${i}`))).status, 201);
    await client.put(Buffer.from('/elsewhere'), Buffer.from(`${i}`));
    const list = JSON.parse((await reader.ask('GET', MAPS)).text) as { items: Shown[] };
    assert.equal(list.items.length, i + 1);
    assert.equal((await reader.ask('DELETE', `${MAPS}/a${i}`)).status, 200);
    assert.equal((await writer.ask('GET', `${MAPS}/a${i}`)).status, 404);
    assert.equal((await writer.ask('POST', MAPS, config(`a${i}`))).status, 201);
  }
  client.close();
  await Promise.all([left.stop(), right.stop()]);
});

test(
  'nothing acknowledged is lost, and none is told twice, when etcd is killed',
  {
    skip: withoutEtcd,
  },
  async () => {
    const server = await startServer({ etcdServers: etcd.url, etcdPrefix: '/killed' });
    await server.bootstrap();
    const watch = await server.ask('GET', `${MAPS}?watch=true`);
    const made = new Set<string>();
    let isOver = false;
    const write = async (worker: number): Promise<void> => {
      for (let i = 0; !isOver; i++) {
        const name = `w${worker}-${i}`;
        const answer = await server.ask('POST', MAPS, config(name));
        if (answer.status === 201) made.add(name);
        else assert.equal(answer.status, 500, answer.text);
      }
    };
    const workers = [1, 2, 3, 4].map(write);
    for (let round = 0; round < 2; round++) {
      const before = made.size;
      await until('writes', () => made.size > before + 20);
      await etcd.kill();
      await until('a fault', () => server.storage.fault !== null);
      await etcd.start();
      await until('recovery', () => server.storage.fault === null);
    }
    const before = made.size;
    await until('writes', () => made.size > before + 20);
    isOver = true;
    await Promise.all(workers);
    const list = JSON.parse((await server.ask('GET', MAPS)).text) as { items: Shown[] };
    const names = new Set(list.items.map((item) => item.metadata.name));
    for (const name of made) assert(names.has(name), `${name} was acknowledged and is gone`);
    await until('all events', () => count(watch.text) >= names.size);
    assert.equal(count(watch.text), names.size);
    await server.stop();
  },
);

function count(text: string): number {
  return text.split('\n').filter((line) => line.startsWith('{"type":"ADDED"')).length;
}

test(
  'servers take turns in compacting, and keep an interval of history',
  {
    skip: withoutEtcd,
  },
  async () => {
    const client = clientOf();
    const faults: string[] = [];
    const [one, two] = [1, 2].map(() => new Compactor(client, (text) => void faults.push(text)));
    assert(one !== undefined && two !== undefined);
    // the first turn writes a revision down, the others find whose turn it is
    assert.deepEqual([await one.take(), await two.take(), await one.take()], [false, false, true]);
    const put = await client.put(Buffer.from('/x'), Buffer.from('1'));
    assert(put.ok);
    assert.deepEqual([await two.take(), await two.take()], [false, true]);
    assert.deepEqual(faults, []);
    const old = await client.range({ key: Buffer.from('/x'), revision: 1 });
    assert(!old.ok);
    assert.match(old.message, /required revision has been compacted/);
    const kept = await client.range({ key: Buffer.from('/x'), revision: put.value });
    assert(kept.ok);
    client.close();
  },
);
