import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { EtcdClient } from '@megaplane/etcd/client/client';
import { parseEndpoints } from '@megaplane/etcd/client/endpoints';
import { NEWER, NEWER_SKIP } from '@megaplane/etcd/newer-etcd.sim';
import { openStore } from '@megaplane/store/open';
import { Replica } from '@megaplane/store/replica';
import { Feed } from './feed.ts';
import { KeyMap } from './key-map.ts';
import { RealEtcd } from './real-etcd.sim.ts';
import { until } from '../../testing/servers.sim.ts';

/** In the long run, longer than a silent etcd is borne. */
const QUIET_MS = process.env['MEGAPLANE_LONG'] === undefined ? 0 : 20_000;

/** Reads and watches that were begun so far. */
async function callsOf({ url }: RealEtcd): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const rows = text.matchAll(
    /^grpc_server_started_total\{grpc_method="(?:Range|Watch)".* (\d+)$/gm,
  );
  return [...rows].reduce((sum, [, count]) => sum + Number(count), 0);
}

test('an etcd 3.6 in which nothing happens is heard of', { skip: NEWER_SKIP }, async (context) => {
  const etcd = new RealEtcd(NEWER?.etcd);
  await etcd.start();
  const endpoints = parseEndpoints('--etcd-servers', etcd.url);
  const client = new EtcdClient({ endpoints, tls: () => null, log: () => {} });
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const replica = new Replica(opened.store);
  const logged: string[] = [];
  let heard = 0;
  const feed = new Feed({
    client,
    keys: new KeyMap('/registry'),
    replica,
    decode: (_key, value) => value,
    onApplied: () => heard++,
    onGap: () => logged.push('a gap'),
    onLost: (message) => logged.push(message),
    log: (_level, message) => logged.push(message),
  });
  context.after(async () => {
    feed.stop();
    client.close();
    await opened.close();
    await etcd.remove();
  });
  const key = Buffer.from('/registry/a');
  assert((await client.put(key, Buffer.from('1'))).ok);
  assert.equal(await feed.start(), null);
  await until('following', () => feed.fault === null);
  const calls = await callsOf(etcd);
  assert(calls > 0);
  const before = heard;
  await until('progress', () => {
    feed.nudge();
    return heard > before + 1;
  });
  await sleep(QUIET_MS);
  assert.equal(await callsOf(etcd), calls);
  const next = await client.put(key, Buffer.from('2'));
  await until('the event', () => next.ok && replica.revision === next.value);
  assert.deepEqual(logged, ['etcd: following from revision 2']);
});
