import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type OpenStore, openStore } from '@megaplane/store/open';
import { connect } from '@megaplane/wire/connect';
import { grpcClient } from '@megaplane/wire/grpc-client';
import type { GrpcClient } from '@megaplane/wire/grpc';
import { ProtobufReader } from '@megaplane/wire/protobuf';
import { type Fields, Peer, encode, show } from '../testing/peer.sim.ts';
import { type EtcdServer, serveEtcd } from '../server/run-store.ts';

const KEYS = 3000;
let opened: OpenStore;
let server: EtcdServer;
let client: GrpcClient;
let peer: Peer;

before(async () => {
  opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const { store } = opened;
  for (let i = 0; i < KEYS; i++) {
    const key = Buffer.from(`k/${`${i}`.padStart(5, '0')}`);
    store.putIf(key, 0, key.length, -1, Buffer.alloc(i % 700, 'v'), 0, i % 700, 0);
  }
  server = await serveEtcd(opened, { listen: [{ port: 0 }] });
  const port = server.addresses[0]?.port ?? 0;
  client = grpcClient(connect({ port }));
  peer = new Peer(port);
});

after(async () => {
  client.connection.destroy();
  peer.close();
  await server.close();
  await opened.close();
});

/** Contents of `range_response` of each message, or the failure. */
async function stream(
  fields: Fields,
  onPiece: (number: number) => void = () => {},
): Promise<{ readonly pieces: readonly Buffer[]; readonly end: string }> {
  const pieces: Buffer[] = [];
  return await new Promise((resolve) => {
    const call = client.open('/etcdserverpb.KV/RangeStream', {
      onMessage: (_call, bytes, start, end) => {
        const reader = new ProtobufReader().reset(bytes, start, end);
        assert.ok(reader.next() && reader.field === 1);
        reader.chunk();
        pieces.push(Buffer.from(bytes.subarray(reader.chunkStart, reader.chunkEnd)));
        onPiece(pieces.length);
      },
      onStatus: (_call, { code, message }) => resolve({ pieces, end: `${code} ${message}` }),
    });
    call.send(encode(fields));
    call.halfClose();
  });
}

/** A response's rows, the header first: where it stands on the wire is free. */
function rows(text: string): string[] {
  const all = text.split(' | ');
  return [
    ...all.filter((row) => row.startsWith('rev')),
    ...all.filter((row) => !row.startsWith('rev')),
  ];
}

const whole: Fields = [
  [1, 'k/'],
  [2, 'k0'],
];

test('pieces merge to what Range answers, for limits, revisions and key-only reads', async () => {
  const requests: Fields[] = [
    whole,
    [...whole, [3, 100]],
    [...whole, [4, 500]],
    [...whole, [4, 500], [3, 30]],
    [...whole, [8, 1]],
    [...whole, [9, 1]],
    [...whole, [5, 1]],
    [...whole, [6, 3]],
    [...whole, [6, 4], [3, 30]],
    [...whole, [6, 1]],
    [[1, 'k/00007']],
    [[1, 'none']],
    [
      [1, 'k/02990'],
      [2, '\0'],
    ],
  ];
  for (const fields of requests) {
    const { pieces, end } = await stream(fields);
    assert.equal(end, '0 ');
    const expected = await peer.show('KV/Range', fields);
    assert.deepEqual(rows(show(Buffer.concat(pieces))), rows(expected), JSON.stringify(fields));
    for (const piece of pieces.slice(0, -1)) assert.ok(!show(piece).includes('revision'));
  }
});

test('pieces begin with ten keys and grow', async () => {
  const { pieces } = await stream(whole);
  const sizes = pieces.map((piece) => show(piece).split(' | 2:').length);
  assert.ok(sizes.length > 5 && sizes.length < 15, `${sizes.length} pieces`);
  assert.deepEqual(sizes.slice(0, 3), [10, 20, 40]);
});

test('what it does not do is refused as etcd refuses it', async () => {
  const refused: readonly (readonly [Fields, string])[] = [
    [[], '3 etcdserver: key is not provided'],
    [[...whole, [5, 7]], '3 etcdserver: invalid sort option'],
    [[...whole, [4, 99_999]], '11 etcdserver: mvcc: required revision is a future revision'],
    [[...whole, [5, 2]], '12 RangeStream does not support custom sort orders'],
    [[...whole, [5, 1], [6, 3]], '12 RangeStream does not support custom sort orders'],
    [[...whole, [10, 5], [4, 99_999]], '12 RangeStream does not support revision filters'],
  ];
  for (const [fields, text] of refused) {
    const { pieces, end } = await stream(fields);
    assert.deepEqual([pieces.length, end], [0, text]);
  }
});

test('all pieces are of one revision, and a compaction beyond it ends them', async () => {
  const key = Buffer.from('k/02999');
  const change = (): void => {
    opened.store.putIf(key, 0, key.length, -1, key, 0, key.length, 0);
  };
  const before = opened.store.appliedRevision;
  const { pieces, end } = await stream(whole, change);
  assert.equal(end, '0 ');
  const merged = rows(show(Buffer.concat(pieces)));
  const expected = rows(await peer.show('KV/Range', [...whole, [4, before]]));
  assert.equal(merged[0], `revision ${before}`);
  assert.deepEqual(merged.slice(1), expected.slice(1));
  const cut = await stream(whole, (number) => {
    change();
    if (number === 2) opened.store.compact(opened.store.appliedRevision);
  });
  assert.equal(cut.end, '11 etcdserver: mvcc: required revision has been compacted');
});
