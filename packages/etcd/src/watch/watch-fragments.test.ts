import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { openStore } from '@megaplane/store/open';
import { type Fields, Peer, encode, has, startEtcd } from '../testing/peer.sim.ts';
import { serveEtcd } from '../server/run-store.ts';
import { type Shown, showWatch } from './watch-peer.sim.ts';

const SKIP =
  has('etcd') && has('etcdctl') ? false : 'needs etcd: apt-get install etcd-server etcd-client';
/** With etcd's overhead a response has room for 624,288 bytes. */
const REQUEST_BYTES_MAX = 100_000;
const KEYS = 60;
const ALL: Fields = [
  [1, '\0'],
  [2, '\0'],
];

/** Resolves with what a watch is told until that is enough. */
function watch(
  peer: Peer,
  fields: Fields,
  isEnough: (all: readonly Shown[]) => boolean,
): { readonly created: Promise<void>; readonly told: Promise<Shown[]> } {
  const all: Shown[] = [];
  const { promise: created, resolve: onCreated } = Promise.withResolvers<void>();
  const told = new Promise<Shown[]>((resolve) => {
    const call = peer.client.open('/etcdserverpb.Watch/Watch', {
      onMessage: (_call, bytes, start, end) => {
        const shown = showWatch(bytes, start, end);
        if (shown.created) return onCreated();
        all.push(shown);
        if (!isEnough(all)) return;
        call.cancel();
        resolve(all);
      },
      onStatus: () => {},
    });
    call.send(encode([[1, [...ALL, ...fields]]]));
  });
  return { created, told };
}

/** Puts each key with a value of its own size, then deletes all of them in one revision. */
async function fragments(peer: Peer, sizes: readonly number[]): Promise<string> {
  for (const [index, size] of sizes.entries()) {
    await peer.call('KV/Put', [
      [1, `k${index}`.padEnd(5)],
      [2, 'v'.repeat(size)],
    ]);
  }
  const end = (all: readonly Shown[]): boolean => all.at(-1)?.fragment === false;
  const { created, told } = watch(
    peer,
    [
      [6, 1],
      [8, 1],
    ],
    end,
  );
  await created;
  await peer.call('KV/DeleteRange', ALL);
  return (await told).map(({ events, fragment }) => `${events.length} ${fragment}`).join(', ');
}

test('a response is split where etcd splits it', { skip: SKIP }, async () => {
  const theirs = await startEtcd('etcd', undefined, ['--max-request-bytes', '100000']);
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const limits = { requestBytesMax: REQUEST_BYTES_MAX };
  const server = await serveEtcd(opened, { listen: [{ port: 0 }], limits });
  const peers = [new Peer(theirs.port), new Peer(server.addresses[0]?.port ?? 0)] as const;
  const random = new Random(7);
  try {
    for (let round = 0; round < 12; round++) {
      // Sums that lie around a multiple of what there is room for.
      const most = 9_000 + round * 1_000;
      const sizes = Array.from({ length: KEYS }, () => most + random.below(3_000));
      const [their, our] = await Promise.all(peers.map((peer) => fragments(peer, sizes)));
      assert.equal(our, their, `sizes from ${most} on`);
    }
  } finally {
    for (const peer of peers) peer.close();
    await server.close();
    await opened.close();
    await theirs.stop();
  }
});

/** What a watch from a compacted revision on tells of three puts of one key. */
async function previous(peer: Peer): Promise<readonly string[]> {
  for (const value of ['one', 'two', 'three'])
    await peer.call('KV/Put', [
      [1, 'p'],
      [2, value],
    ]);
  const revision = Number(/revision (\d+)/.exec(await peer.show('KV/Range', [[1, 'p']]))?.[1]);
  await peer.call('KV/Compact', [
    [1, revision - 1],
    [2, 1],
  ]);
  const from: Fields = [
    [3, revision - 1],
    [6, 1],
  ];
  const isAll = (all: readonly Shown[]): boolean => all.flatMap(({ events }) => events).length > 1;
  const all = await watch(peer, from, isAll).told;
  return all.flatMap(({ events }) => events);
}

test('an event has no previous value that is compacted, as with etcd', { skip: SKIP }, async () => {
  const theirs = await startEtcd();
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const server = await serveEtcd(opened, { listen: [{ port: 0 }] });
  const peers = [new Peer(theirs.port), new Peer(server.addresses[0]?.port ?? 0)] as const;
  try {
    const [their, our] = await Promise.all(peers.map((peer) => previous(peer)));
    assert.deepEqual(our, their);
    assert.equal(our?.length, 2);
    assert.doesNotMatch(our?.[0] ?? '', /was/);
    assert.match(our?.[1] ?? '', /was/);
  } finally {
    for (const peer of peers) peer.close();
    await server.close();
    await opened.close();
    await theirs.stop();
  }
});
