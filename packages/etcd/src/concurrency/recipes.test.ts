import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type OpenStore, openStore } from '@megaplane/store/open';
import type { GrpcSink } from '@megaplane/wire/grpc';
import { type Fields, Peer, encode, has, show, startEtcd } from '../testing/peer.sim.ts';
import { type EtcdServer, serveEtcd } from '../server/run-store.ts';
import { Message } from '../codec/message.ts';

const SKIP =
  has('etcd') && has('etcdctl') ? false : 'needs etcd: apt-get install etcd-server etcd-client';
const LOCK = '/v3lockpb.Lock';
const ELECTION = '/v3electionpb.Election';

let opened: OpenStore;
let server: EtcdServer;

before(async () => {
  opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  server = await serveEtcd(opened, { listen: [{ port: 0 }] });
});

after(async () => {
  await server.close();
  await opened.close();
});

function peer(): Peer {
  return new Peer(server.addresses[0]?.port ?? 0);
}

function leaderOf(key: string, rev: number, lease: number): Fields {
  return [
    [1, 'e'],
    [2, key],
    [3, rev],
    [4, lease],
  ];
}

test('a call without a request ends', async () => {
  const caller = peer();
  for (const [method, expected] of [
    ['Lock', '2 EOF'],
    [
      'Observe',
      '13 cardinality violation: received no request message from non-client-streaming RPC',
    ],
  ] as const) {
    const path = `${method === 'Lock' ? LOCK : ELECTION}/${method}`;
    const told = await new Promise((resolve) => {
      const sink: GrpcSink = {
        onMessage: () => {},
        onStatus: (_call, { code, message }) => resolve(`${code} ${message}`),
      };
      caller.client.open(path, sink).halfClose();
    });
    assert.equal(told, expected);
  }
  caller.close();
});

/** Requests that are answered at once; the answers depend on those before. */
const SCRIPT: readonly (readonly [string, Fields])[] = [
  ...[0x77, 0x78].map(
    (id) =>
      [
        'Lease/LeaseGrant',
        [
          [1, 600],
          [2, id],
        ],
      ] as const,
  ),
  [
    `${LOCK}/Lock`,
    [
      [1, 'n'],
      [2, 0x77],
    ],
  ],
  [
    `${LOCK}/Lock`,
    [
      [1, 'n'],
      [2, 0x77],
    ],
  ],
  [
    `${LOCK}/Lock`,
    [
      [1, 'm'],
      [2, 5],
    ],
  ],
  [
    `${LOCK}/Lock`,
    [
      [1, 'm'],
      [2, -5],
    ],
  ],
  [`${LOCK}/Lock`, [[2, 0x78]]],
  [`${LOCK}/Unlock`, []],
  [`${LOCK}/Unlock`, [[1, 'nokey']]],
  [`${LOCK}/Unlock`, [[1, 'n/77']]],
  [
    `${ELECTION}/Campaign`,
    [
      [1, 'e'],
      [2, 0x77],
      [3, 'v1'],
    ],
  ],
  [
    `${ELECTION}/Campaign`,
    [
      [1, 'e'],
      [2, 0x77],
      [3, 'v2'],
    ],
  ],
  [
    `${ELECTION}/Campaign`,
    [
      [1, 'e'],
      [2, 1],
      [3, 'v3'],
    ],
  ],
  [`${ELECTION}/Campaign`, [[2, 0x78]]],
  [`${ELECTION}/Leader`, [[1, 'e']]],
  [`${ELECTION}/Leader`, [[1, 'none']]],
  [`${ELECTION}/Proclaim`, []],
  [`${ELECTION}/Resign`, []],
  [
    `${ELECTION}/Proclaim`,
    [
      [1, []],
      [2, 'x'],
    ],
  ],
  [`${ELECTION}/Resign`, [[1, []]]],
  [
    `${ELECTION}/Proclaim`,
    [
      [1, leaderOf('e/77', 99, 0x77)],
      [2, 'x'],
    ],
  ],
  [`${ELECTION}/Resign`, [[1, leaderOf('e/77', 99, 0x77)]]],
  [
    `${ELECTION}/Proclaim`,
    [
      [1, leaderOf('e/77', 5, 0x77)],
      [2, 'x'],
    ],
  ],
  [
    `${ELECTION}/Proclaim`,
    [
      [1, leaderOf('e/77', 5, 5)],
      [2, 'x'],
    ],
  ],
  [
    'KV/Range',
    [
      [1, '\0'],
      [2, '\0'],
    ],
  ],
  [`${ELECTION}/Resign`, [[1, leaderOf('e/77', 5, 0x77)]]],
  [
    'KV/Range',
    [
      [1, '\0'],
      [2, '\0'],
    ],
  ],
  [`${LOCK}/TryLock`, []],
  ['/grpc.health.v1.Health/Check', []],
  ['/grpc.health.v1.Health/Check', [[1, 'etcdserverpb.KV']]],
];

test('locks and elections answer as those of etcd', { skip: SKIP }, async () => {
  const etcd = await startEtcd();
  const fresh = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const own = await serveEtcd(fresh, { listen: [{ port: 0 }] });
  const theirs = new Peer(etcd.port);
  const ours = new Peer(own.addresses[0]?.port ?? 0);
  try {
    for (const [path, fields] of SCRIPT) {
      const expected = await theirs.show(path, fields);
      assert.equal(await ours.show(path, fields), expected, `${path} ${JSON.stringify(fields)}`);
    }
  } finally {
    theirs.close();
    ours.close();
    await own.close();
    await fresh.close();
    await etcd.stop();
  }
});

/** A call that goes on: what it has received, how it ended. */
function begin(client: Peer, path: string, fields: Fields) {
  const seen: Message[] = [];
  let told = (): void => {};
  let ended: string | null = null;
  const call = client.client.unary(path, encode(fields), {
    onMessage: (_call, bytes, start, end) => {
      seen.push(new Message(Buffer.from(bytes.subarray(start, end))));
      told();
    },
    onStatus: (_call, { code, message }) => {
      ended = `${code} ${message}`;
      told();
    },
  });
  const until = async (isReached: () => boolean): Promise<void> => {
    while (!isReached()) await new Promise<void>((resolve) => (told = resolve));
  };
  return {
    seen,
    cancel: () => call?.cancel(),
    messages: (count: number) => until(() => seen.length >= count),
    ended: async () => {
      await until(() => ended !== null);
      return ended;
    },
  };
}

async function granted(client: Peer, id: number): Promise<void> {
  await client.call('Lease/LeaseGrant', [
    [1, 600],
    [2, id],
  ]);
}

async function keysBelow(client: Peer, prefix: string): Promise<string[]> {
  const answer = await client.call('KV/Range', [
    [1, `${prefix}/`],
    [2, `${prefix}0`],
  ]);
  assert(Buffer.isBuffer(answer), show(Buffer.from(answer)));
  return new Message(answer).messages(2).map((kv) => kv.bytes(1).toString());
}

/** Until something holds that another connection brings about. */
async function eventually(isSo: () => Promise<boolean>): Promise<void> {
  for (let i = 0; !(await isSo()); i++) {
    assert(i < 5000, 'it did not come about');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const lockFields = (name: string, lease: number): Fields => [
  [1, name],
  [2, lease],
];

test('a lock goes to those who wait in the order in which they came', async () => {
  const client = peer();
  for (const id of [1, 2, 3]) await granted(client, id);
  assert.equal(await begin(client, `${LOCK}/Lock`, lockFields('q', 1)).ended(), '0 ');
  const second = begin(client, `${LOCK}/Lock`, lockFields('q', 2));
  await eventually(async () => (await keysBelow(client, 'q')).length === 2);
  const third = begin(client, `${LOCK}/Lock`, lockFields('q', 3));
  await eventually(async () => (await keysBelow(client, 'q')).length === 3);
  await client.call(`${LOCK}/Unlock`, [[1, 'q/1']]);
  assert.equal(await second.ended(), '0 ');
  assert.equal(third.seen.length, 0);
  await client.call('Lease/LeaseRevoke', [[1, 2]]);
  assert.equal(await third.ended(), '0 ');
  assert.equal(third.seen[0]?.bytes(2).toString(), 'q/3');
  client.close();
});

test('whoever stops waiting leaves the queue, and a lost lease ends the wait', async () => {
  const client = peer();
  for (const id of [11, 12, 13]) await granted(client, id);
  await begin(client, `${LOCK}/Lock`, lockFields('w', 11)).ended();
  const gone = begin(client, `${LOCK}/Lock`, lockFields('w', 12));
  const lost = begin(client, `${LOCK}/Lock`, lockFields('w', 13));
  await eventually(async () => (await keysBelow(client, 'w')).length === 3);
  gone.cancel();
  await eventually(async () => (await keysBelow(client, 'w')).length === 2);
  await client.call('Lease/LeaseRevoke', [[1, 13]]);
  await client.call(`${LOCK}/Unlock`, [[1, 'w/b']]);
  assert.equal(await lost.ended(), '2 mutex: session is expired');
  assert.equal(opened.store.hub.size, 0);
  client.close();
});

test('an observer hears each leader and what it says', async () => {
  const client = peer();
  for (const id of [21, 22]) await granted(client, id);
  const heard = begin(client, `${ELECTION}/Observe`, [[1, 'o']]);
  const campaign = (lease: number, value: string) =>
    begin(client, `${ELECTION}/Campaign`, [...lockFields('o', lease), [3, value]]);
  const first = campaign(21, 'one');
  assert.equal(await first.ended(), '0 ');
  await heard.messages(1);
  const own = first.seen[0]?.message(2);
  assert(own !== undefined);
  const leaderKey: Fields = [
    [1, 'o'],
    [2, own.bytes(2).toString()],
    [3, own.number(3)],
    [4, own.number(4)],
  ];
  await client.call(`${ELECTION}/Proclaim`, [
    [1, leaderKey],
    [2, 'two'],
  ]);
  await heard.messages(2);
  const second = campaign(22, 'three');
  await eventually(async () => (await keysBelow(client, 'o')).length === 2);
  await client.call(`${ELECTION}/Resign`, [[1, leaderKey]]);
  assert.equal(await second.ended(), '0 ');
  await heard.messages(3);
  assert.deepEqual(
    heard.seen.map((message) => message.message(2).bytes(5).toString()),
    ['one', 'two', 'three'],
  );
  heard.cancel();
  await eventually(() => Promise.resolve(opened.store.hub.size === 0));
  client.close();
});

test('the health service tells the state of the server and knows no other', async () => {
  const client = peer();
  const watch = begin(client, '/grpc.health.v1.Health/Watch', []);
  await watch.messages(1);
  assert.equal(watch.seen[0]?.number(1), 1n);
  const other = begin(client, '/grpc.health.v1.Health/Watch', [[1, 'x']]);
  await other.messages(1);
  assert.equal(other.seen[0]?.number(1), 3n);
  watch.cancel();
  other.cancel();
  client.close();
});
