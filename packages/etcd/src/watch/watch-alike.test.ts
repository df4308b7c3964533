/** Watches of one range share what is made for the first of them: each must still get its own. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GrpcClientCall } from '@megaplane/wire/grpc';
import { openStore } from '@megaplane/store/open';
import { Peer, encode } from '../testing/peer.sim.ts';
import { serveEtcd } from '../server/run-store.ts';
import { type Shown, showWatch } from './watch-peer.sim.ts';

const STREAMS = 3;
const PUTS = 400;
/** Ids of every length, and how each watch is asked for: filters and previous values. */
const IDS: readonly bigint[] = [0n, 1n, 127n, 128n, 300n, 70_000n, 2n ** 40n, 2n ** 62n, -5n];
const KINDS: readonly { readonly filter: number; readonly prevKv: number }[] = [
  { filter: -1, prevKv: 0 },
  { filter: 1, prevKv: 0 },
  { filter: 0, prevKv: 1 },
  { filter: -1, prevKv: 1 },
];

function createWatch(id: bigint, kind: number, from: number): Buffer {
  const { filter, prevKv } = KINDS[kind]!;
  const filters = filter < 0 ? [] : [[5, filter] as const];
  const range = [
    [1, 'p/'],
    [2, 'p0'],
    [3, from],
  ] as const;
  return encode([[1, [...range, ...filters, [6, prevKv], [7, id]]]]);
}

test('watches of one range get the same, whatever their ids and kinds', async (t) => {
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const server = await serveEtcd(opened, { listen: [{ port: 0 }] });
  t.after(async () => {
    await server.close();
    await opened.close();
  });
  const peers = Array.from({ length: STREAMS }, () => new Peer(server.addresses[0]!.port));
  const told = peers.map((): Map<string, Shown[]> => new Map());
  const calls: GrpcClientCall[] = [];
  for (const [index, peer] of peers.entries()) {
    const call = peer.client.open('/etcdserverpb.Watch/Watch', {
      onMessage: (_call, bytes, start, end) => {
        const shown = showWatch(bytes, start, end);
        const all = told[index]!.get(shown.id) ?? [];
        all.push(shown);
        told[index]!.set(shown.id, all);
      },
      onStatus: () => {},
    });
    calls.push(call);
    // Ids turn with the stream, so that the same place of each stream has another kind and id.
    for (const [at, id] of IDS.entries()) call.send(createWatch(id, (at + index) % 4, 1));
  }
  const size = (): number => told.reduce((sum, one) => sum + one.size, 0);
  const poll = async (isThere: () => boolean, what: string): Promise<void> => {
    for (let i = 0; !isThere(); i++) {
      assert(i < 3000, what);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  await poll(() => size() === STREAMS * IDS.length, 'all are created');
  calls[1]!.pause();
  const value = Buffer.alloc(20_000, 'x');
  for (let n = 0; n < PUTS; n++) {
    const key = Buffer.from(`p/${n % 7}`);
    if (n % 10 === 9) opened.store.deleteIf(key, 0, key.length, -1);
    else opened.store.putIf(key, 0, key.length, -1, value, 0, value.length, 0);
    if (n % 25 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  calls[1]!.resume();
  const whole = KINDS.map((_, kind) => {
    return (event: string): boolean => {
      if (event.startsWith('DELETE')) return KINDS[kind]!.filter !== 1;
      return KINDS[kind]!.filter !== 0;
    };
  });
  const last = opened.store.publishedRevision;
  const events = (index: number, id: bigint): readonly string[] =>
    (told[index]!.get(`${id}`) ?? []).flatMap(({ events: some }) => some);
  const reference = (): readonly string[] => events(0, IDS[3]!);
  await poll(() => reference().at(-1)?.includes(` ${last} `) === true, 'one has all events');
  for (const index of peers.keys()) {
    for (const [at, id] of IDS.entries()) {
      const kind = (at + index) % 4;
      const hasPrevious = KINDS[kind]!.prevKv === 1;
      const expected = reference()
        .filter((event) => whole[kind]!(event))
        .map((event) => (hasPrevious ? event : event.replace(/ was .*$/, '')));
      await poll(() => events(index, id).length >= expected.length, `watch ${id} of ${index}`);
      assert.deepEqual(events(index, id), expected, `watch ${id} of stream ${index}`);
    }
  }
  for (const call of calls) call.cancel();
  for (const peer of peers) peer.close();
});
