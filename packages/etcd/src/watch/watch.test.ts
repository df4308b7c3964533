import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import type { GrpcClientCall } from '@megaplane/wire/grpc';
import { type OpenStore, openStore } from '@megaplane/store/open';
import { type Fields, Peer, encode, has, startEtcd } from '../testing/peer.sim.ts';
import { ETCD_LIMITS, type EtcdServer, serveEtcd } from '../server/run-store.ts';
import { EtcdContext } from '../call/context.ts';
import { SimulatedCall, SimulatedConnection } from '../testing/network.sim.ts';
import { WatchService } from './watch.ts';
import { type Shown, showWatch } from './watch-peer.sim.ts';

const SKIP =
  has('etcd') && has('etcdctl') ? false : 'needs etcd: apt-get install etcd-server etcd-client';
const isLong = process.env['MEGAPLANE_LONG'] !== undefined;
/** Watches that wait for history at once. */
const WAITING_MAX = 400;
const KEYS = ['a', 'aa', 'ab', 'b', 'c'];

/** A stream of watches with everything that came, by watch. */
class Stream {
  readonly all: Shown[] = [];
  readonly #call: GrpcClientCall;

  constructor(peer: Peer) {
    this.#call = peer.client.open('/etcdserverpb.Watch/Watch', {
      onMessage: (_call, bytes, start, end) => this.all.push(showWatch(bytes, start, end)),
      onStatus: () => {},
    });
  }

  send(fields: Fields): void {
    this.#call.send(encode(fields));
  }

  async until(isThere: (all: readonly Shown[]) => boolean, what: string): Promise<void> {
    for (let i = 0; !isThere(this.all); i++) {
      assert(i < 2000, `${what}: ${JSON.stringify(this.all.slice(-3))}`);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  of(id: string): Shown[] {
    return this.all.filter((one) => one.id === id);
  }

  cancel(): void {
    this.#call.cancel();
  }
}

async function withServer(
  use: (peer: Peer, opened: OpenStore, server: EtcdServer) => Promise<void>,
  limits = {},
): Promise<void> {
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const server = await serveEtcd(opened, { listen: [{ port: 0 }], limits });
  const peer = new Peer(server.addresses[0]?.port ?? 0);
  try {
    await use(peer, opened, server);
  } finally {
    peer.close();
    await server.close();
    await opened.close();
  }
}

const op = fc.oneof(
  fc.record({ key: fc.constantFrom(...KEYS), value: fc.string({ maxLength: 3 }) }),
  fc.record({ key: fc.constantFrom(...KEYS), value: fc.constant(null) }),
);
const txn = fc.uniqueArray(op, { minLength: 1, maxLength: 3, selector: ({ key }) => key });
const create = fc.record({
  key: fc.constantFrom(...KEYS, '\0'),
  end: fc.constantFrom('', '', '\0', 'ab', 'b', 'zz'),
  back: fc.nat(40),
  filters: fc.subarray([0, 1]),
  prevKv: fc.boolean(),
  fragment: fc.boolean(),
});
type Create = typeof create extends fc.Arbitrary<infer T> ? T : never;

function txnFields(ops: readonly { key: string; value: string | null }[]): Fields {
  return ops.map(({ key, value }) => {
    const put: Fields = [
      [1, key],
      [2, value ?? ''],
    ];
    return [2, [value === null ? [3, [[1, key]]] : [2, put]]] as const;
  });
}

test('watches of every kind get the events of a real etcd', { skip: SKIP }, async () => {
  const etcd = await startEtcd();
  const theirs = new Peer(etcd.port);
  try {
    await withServer(async (ours, opened) => {
      const seed = Number(process.env['SEED'] ?? 7);
      for (const ops of fc.sample(txn, { numRuns: isLong ? 3000 : 60, seed })) {
        const fields = txnFields(ops);
        assert.equal(await ours.show('KV/Txn', fields), await theirs.show('KV/Txn', fields));
      }
      const compacted = opened.store.appliedRevision - 30;
      for (const peer of [ours, theirs]) {
        await peer.show('KV/Put', [
          [1, 'k'],
          [2, 'v'],
        ]);
        await peer.show('KV/Compact', [[1, compacted]]);
      }
      const revision = opened.store.appliedRevision;
      const creates = fc.sample(create, { numRuns: isLong ? 2000 : 150, seed });
      // etcd goes on telling events to watches that it cancelled as compacted when more than 512
      // wait for history at once.
      for (let from = 0; from < creates.length; from += WAITING_MAX) {
        const some = creates.slice(from, from + WAITING_MAX);
        await compareWatches(ours, theirs, some, { revision, compacted, seed });
      }
    });
  } finally {
    theirs.close();
    await etcd.stop();
  }
});

/** Opens the same watches on two servers, and compares what each of them is told. */
async function compareWatches(
  ours: Peer,
  theirs: Peer,
  creates: readonly Create[],
  { revision, compacted, seed }: { revision: number; compacted: number; seed: number },
): Promise<void> {
  const streams = [new Stream(ours), new Stream(theirs)] as const;
  for (const [index, { key, end, back, filters, prevKv, fragment }] of creates.entries()) {
    const from = revision - back;
    const fields: Fields = [
      [1, key],
      [2, end],
      [3, from === compacted ? from + 1 : from],
      ...filters.map((filter) => [5, filter] as const),
      [6, prevKv ? 1 : 0],
      [7, index + 1],
      [8, fragment ? 1 : 0],
    ];
    for (const stream of streams) stream.send([[1, fields]]);
  }
  // Everything above is older than this; both servers tell it last.
  const last: Fields = [
    [1, 'end'],
    [3, revision],
    [7, 99_999],
  ];
  for (const stream of streams) stream.send([[1, last]]);
  for (const peer of [ours, theirs]) await peer.show('KV/Put', [[1, 'end']]);
  for (const stream of streams) {
    await stream.until(() => stream.of('99999').length >= 2, 'the end is told');
  }
  await settle(streams, creates.length);
  // Every third one is given up, and says so; then what is left is told one more change.
  for (let id = 3; id <= creates.length; id += 3) {
    for (const stream of streams) stream.send([[2, [[1, id]]]]);
  }
  const marker: Fields = [
    [1, 'none'],
    [7, 99_998],
  ];
  for (const stream of streams) {
    stream.send([[1, marker]]);
    stream.send([[2, [[1, 99_998]]]]);
    await stream.until(() => stream.of('99998').length === 2, 'cancels');
  }
  await settle(streams, creates.length);
  for (const peer of [ours, theirs]) {
    for (const key of [...KEYS, 'end']) await peer.show('KV/Put', [[1, key]]);
  }
  for (const stream of streams) {
    await stream.until(() => stream.of('99999').flatMap((one) => one.events).length >= 2, 'puts');
  }
  await settle(streams, creates.length);
  for (let id = 1; id <= creates.length; id++) {
    const [found, expected] = streams.map((stream) => summary(stream.of(`${id}`)));
    assert.deepEqual(found, expected, `SEED=${seed} watch ${JSON.stringify(creates[id - 1])}`);
  }
  for (const stream of streams) stream.cancel();
}

/** Waits for a moment, and then until both servers have told the same: one may be slower. */
async function settle(streams: readonly [Stream, Stream], count: number): Promise<void> {
  await sleep(300);
  const differs = (id: number): boolean => {
    const [found, expected] = streams.map((stream) => summary(stream.of(`${id}`)));
    return !isDeepStrictEqual(found, expected);
  };
  for (let id = 1, tries = 0; id <= count && tries < 500; id++) {
    for (; differs(id) && tries < 500; tries++) await sleep(20);
  }
}

/** What a watch was told, however it was cut into responses. */
function summary(all: readonly Shown[]) {
  return {
    flags: all
      .map(({ created, canceled, compact, reason }) =>
        [created ? 'created' : '', canceled ? 'canceled' : '', compact, reason].join(' ').trim(),
      )
      .filter((text) => text !== '0' && text !== ''),
    events: all.flatMap(({ events }) => events),
  };
}

test('ids that clients choose are kept to the last bit, and refused when taken', async () => {
  await withServer(async (peer) => {
    const stream = new Stream(peer);
    const large = Buffer.from([0x38, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
    const request = Buffer.concat([encode([[1, 'a']]), large]).toString('latin1');
    stream.send([[1, request]]);
    stream.send([[1, request]]);
    stream.send([[1, [[1, 'a']]]]);
    await stream.until((all) => all.length === 3, 'three answers');
    assert.deepEqual(
      stream.all.map(({ id, created, canceled, reason }) => ({ id, created, canceled, reason })),
      [
        { id: '9223372036854775807', created: true, canceled: false, reason: '' },
        {
          id: '-1',
          created: true,
          canceled: true,
          reason: 'mvcc: duplicate watch ID provided on the WatchStream',
        },
        { id: '0', created: true, canceled: false, reason: '' },
      ],
    );
    stream.cancel();
  });
});

test('a key that one revision changes twice was, each time, what it was before', async () => {
  await withServer(async (peer) => {
    const stream = new Stream(peer);
    const create: Fields = [
      [1, 'k'],
      [6, 1],
    ];
    stream.send([[1, create]]);
    const put = (value: string): Fields => [
      [1, 'k'],
      [2, value],
    ];
    await peer.show('KV/Put', put('old'));
    // Only a range without end escapes the check for keys that are given twice.
    const remove: Fields = [
      [1, 'k'],
      [2, '\0'],
    ];
    await peer.show('KV/Txn', [
      [2, [[2, put('new')]]],
      [2, [[3, remove]]],
    ]);
    await peer.show('KV/Put', put('old'));
    await peer.show('KV/Txn', [
      [2, [[3, remove]]],
      [2, [[2, put('new')]]],
    ]);
    await stream.until((all) => all.flatMap(({ events }) => events).length === 6, 'six events');
    assert.deepEqual(
      stream.all.flatMap(({ events }) => events),
      [
        'PUT k 2 2/1/0=old',
        'PUT k 3 2/2/0=new was k 2 2/1/0=old',
        'DELETE k 3 0/0/0= was k 2 2/1/0=old',
        'PUT k 4 4/1/0=old',
        'DELETE k 5 0/0/0= was k 4 4/1/0=old',
        'PUT k 5 5/1/0=new',
      ],
    );
    stream.cancel();
  });
});

test('who may not watch a range is not told that it is empty', async () => {
  await withServer(async (peer) => {
    const root: Fields = [
      [1, 'root'],
      [2, 'root'],
    ];
    await peer.show('Auth/UserAdd', root);
    await peer.show('Auth/UserGrantRole', root);
    await peer.show('Auth/AuthEnable', []);
    const stream = new Stream(peer);
    const empty: Fields = [
      [1, 'b'],
      [2, 'a'],
    ];
    stream.send([[1, empty]]);
    stream.send([[1, [...empty, [3, -1]]]]);
    await stream.until((all) => all.length === 2, 'two refusals');
    assert.deepEqual(
      stream.all.map(({ reason }) => reason),
      [
        'rpc error: code = InvalidArgument desc = etcdserver: user name is empty',
        'etcdserver: mvcc: required revision has been compacted',
      ],
    );
    stream.cancel();
  });
});

test('progress of a stream without watches is not told, now or later', async () => {
  await withServer(async (peer) => {
    const stream = new Stream(peer);
    const watch: Fields = [[1, [[1, 'k']]]];
    stream.send([[3, []]]);
    stream.send(watch);
    await stream.until((all) => all.length === 1, 'the watch');
    await peer.show('KV/Put', [[1, 'k']]);
    stream.send([[3, []]]);
    await stream.until((all) => all.length === 3, 'an event and its progress');
    assert.deepEqual(
      stream.all.map(({ id, created, events }) => `${id} ${created} ${events.length}`),
      ['0 true 0', '0 false 1', '-1 false 0'],
    );
    stream.cancel();
  });
});

test('the id of a watch behind the compaction is taken until it is cancelled', async () => {
  await withServer(async (peer) => {
    for (const value of ['1', '2', '3']) {
      await peer.show('KV/Put', [
        [1, 'k'],
        [2, value],
      ]);
    }
    await peer.show('KV/Compact', [[1, 4]]);
    const stream = new Stream(peer);
    const create: Fields = [
      [1, 'k'],
      [3, 2],
      [7, 5],
    ];
    const told = (): string =>
      stream.all
        .map(({ id, created, canceled, compact, reason }) =>
          [id, created ? 'created' : '', canceled ? 'canceled' : '', compact, reason].join(' '),
        )
        .join('\n');
    stream.send([[1, create]]);
    await stream.until((all) => all.length === 2, 'behind the compaction');
    stream.send([[1, create]]);
    stream.send([[2, [[1, 5]]]]);
    stream.send([[2, [[1, 5]]]]);
    stream.send([[1, create]]);
    await stream.until((all) => all.length === 6, 'all is answered');
    assert.equal(
      told(),
      [
        '5 created  0 ',
        '5  canceled 4 ',
        '-1 created canceled 0 mvcc: duplicate watch ID provided on the WatchStream',
        '5  canceled 0 ',
        '5 created  0 ',
        '5  canceled 4 ',
      ].join('\n'),
    );
    stream.cancel();
  });
});

test('a watch is told no revision whose events are still to come', async () => {
  await withServer(async (_peer, opened) => {
    const context = new EtcdContext(opened.store, ETCD_LIMITS, opened, () => 0);
    const service = new WatchService(context);
    const connection = new SimulatedConnection();
    const seen: Shown[] = [];
    const call = new SimulatedCall(connection, (bytes) =>
      seen.push(showWatch(bytes, 0, bytes.length)),
    );
    call.accept(service.factory(call));
    const key = Buffer.from('k');
    // All in one turn: the write counts as published at once, its event is shown at the end.
    const revision = opened.store.putIf(key, 0, 1, -1, key, 0, 1, 0);
    call.request(encode([[1, [[1, 'k']]]]));
    call.request(encode([[3, []]]));
    await new Promise((resolve) => setImmediate(resolve));
    while (connection.pending > 0) connection.deliver();
    const events = seen.flatMap(({ events: all }) => all);
    const first = seen[0]?.revision ?? 0;
    assert(seen[0]?.created === true);
    assert.equal(
      events.length,
      first < revision ? 1 : 0,
      `created at ${first}, put at ${revision}`,
    );
    const progress = seen.findIndex(({ id }) => id === '-1');
    const event = seen.findIndex(({ events: all }) => all.length > 0);
    const told = seen[progress]?.revision ?? 0;
    assert(progress < 0 || event < 0 || progress > event || told < revision, 'progress is ahead');
    call.cancel('cancelled');
  });
});

test('a large revision comes in fragments where asked, whole otherwise', async () => {
  const use = async (peer: Peer): Promise<void> => {
    const value = 'v'.repeat(30_000);
    const keys = Array.from({ length: 30 }, (_, n) => `f${n}`);
    const ops: Fields = keys.map(
      (key) =>
        [
          2,
          [
            [
              2,
              [
                [1, key],
                [2, value],
              ],
            ],
          ],
        ] as const,
    );
    await peer.show('KV/Txn', ops);
    const stream = new Stream(peer);
    const range: Fields = [
      [1, 'f'],
      [2, 'g'],
      [6, 1],
    ];
    stream.send([[1, [...range, [7, 1], [8, 1]]]]);
    stream.send([[1, [...range, [7, 2]]]]);
    await stream.until((all) => all.length === 2, 'both watches');
    await peer.show('KV/Txn', ops);
    await stream.until(() => stream.of('2').length === 2, 'the whole one');
    const isOver = (): boolean => stream.of('1').at(-1)?.fragment === false;
    await stream.until(() => stream.of('1').length > 1 && isOver(), 'the last part');
    const parts = stream.of('1').slice(1);
    // Old and new values make 1.8 MB of a request of 0.9 MB.
    assert.deepEqual(
      parts.map(({ fragment }) => fragment),
      [true, false],
    );
    assert.deepEqual(
      parts.flatMap(({ events }) => events),
      stream.of('2')[1]?.events,
    );
    assert.equal(stream.of('2')[1]?.events.length, 30);
    stream.cancel();
  };
  await withServer(use, { requestBytesMax: 1_000_000 });
});

test('a stream that reads nothing costs little, slows nobody and loses nothing', async () => {
  await withServer(async (peer, opened, server) => {
    const slow = new Peer(server.addresses[0]?.port ?? 0);
    const stream = new Stream(peer);
    let seen = 0;
    let last = 0;
    const call = slow.client.open('/etcdserverpb.Watch/Watch', {
      onMessage: (_call, bytes, start, end) => {
        for (const event of showWatch(bytes, start, end).events) {
          const revision = Number(event.split(' ')[2]);
          assert(revision > last, 'events come in order, once');
          last = revision;
          seen++;
        }
      },
      onStatus: () => {},
    });
    call.send(
      encode([
        [
          1,
          [
            [1, 's'],
            [2, 't'],
          ],
        ],
      ]),
    );
    stream.send([
      [
        1,
        [
          [1, 's'],
          [2, 't'],
        ],
      ],
    ]);
    await stream.until((all) => all.length === 1, 'created');
    call.pause();
    const value = Buffer.alloc(50_000, 'x');
    const before = process.memoryUsage().arrayBuffers - opened.store.arenas.allocatedBytes;
    for (let n = 0; n < 1200; n++) {
      const key = Buffer.from(`s${n % 10}`);
      opened.store.putIf(key, 0, key.length, -1, value, 0, value.length, 0);
      if (n % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    const events = (): number => stream.all.reduce((sum, { events: all }) => sum + all.length, 0);
    await stream.until(() => events() === 1200, 'the other stream has all');
    const after = process.memoryUsage().arrayBuffers - opened.store.arenas.allocatedBytes;
    assert(after - before < 40_000_000, `${after - before} bytes for a stream that does not read`);
    call.resume();
    for (let i = 0; seen < 1200; i++) {
      assert(i < 2000, `only ${seen} of 1200 came`);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    stream.cancel();
    call.cancel();
    slow.close();
  });
});
