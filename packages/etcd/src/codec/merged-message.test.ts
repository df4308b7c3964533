import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openStore } from '@megaplane/store/open';
import { type Fields, Peer, encode } from '../testing/peer.sim.ts';
import { serveEtcd } from '../server/run-store.ts';
import { mergedMessage } from './merged-message.ts';
import { WATCH_CREATE, WatchRequest } from '../watch/watch-request.ts';

const PUT = 2;
const DELETE = 3;
const TXN = 4;

function merged(fields: Fields): string {
  return mergedMessage(encode(fields), 'TxnRequest').toString('latin1');
}

function text(fields: Fields): string {
  return encode(fields).toString('latin1');
}

test('parts of a message are one, the last member of a union counts', () => {
  const key = (name: string): Fields => [[1, name]];
  assert.equal(
    merged([
      [
        2,
        [
          [PUT, key('a')],
          [PUT, [[2, 'v']]],
        ],
      ],
    ]),
    text([
      [
        2,
        [
          [
            PUT,
            [
              [1, 'a'],
              [2, 'v'],
            ],
          ],
        ],
      ],
    ]),
  );
  assert.equal(
    merged([
      [
        2,
        [
          [PUT, key('a')],
          [DELETE, key('b')],
        ],
      ],
    ]),
    text([[2, [[DELETE, key('b')]]]]),
  );
  assert.equal(
    merged([
      [
        2,
        [
          [PUT, key('a')],
          [DELETE, key('b')],
          [PUT, [[2, 'v']]],
        ],
      ],
    ]),
    text([[2, [[PUT, [[2, 'v']]]]]]),
  );
  const inner: Fields = [
    [
      3,
      [
        [TXN, [[2, [[PUT, key('a')]]]]],
        [TXN, [[2, [[PUT, key('b')]]]]],
      ],
    ],
  ];
  assert.equal(
    merged(inner),
    text([
      [
        3,
        [
          [
            TXN,
            [
              [2, [[PUT, key('a')]]],
              [2, [[PUT, key('b')]]],
            ],
          ],
        ],
      ],
    ]),
  );
});

test('a transaction whose operation comes in parts does what they say together', async () => {
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const server = await serveEtcd(opened, { listen: [{ port: 0 }] });
  const peer = new Peer(server.addresses[0]?.port ?? 0);
  try {
    await peer.call('KV/Txn', [
      [
        2,
        [
          [
            PUT,
            [
              [1, 'a'],
              [2, 'one'],
            ],
          ],
          [PUT, [[2, 'two']]],
        ],
      ],
    ]);
    assert.match(await peer.show('KV/Range', [[1, 'a']]), /two/);
    const range: Fields = [
      [DELETE, [[1, 'a']]],
      [DELETE, [[2, 'b']]],
    ];
    await peer.call('KV/Txn', [[2, range]]);
    assert.doesNotMatch(await peer.show('KV/Range', [[1, 'a']]), /two/);
  } finally {
    peer.close();
    await server.close();
    await opened.close();
  }
});

test('rights are asked for all parts of an operation together', async () => {
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const server = await serveEtcd(opened, { listen: [{ port: 0 }] });
  const port = server.addresses[0]?.port ?? 0;
  const nobody = new Peer(port);
  const call = async (path: string, fields: Fields): Promise<void> =>
    assert.notEqual(typeof (await nobody.call(path, fields)), 'string', path);
  try {
    for (const name of ['root', 'u']) {
      await call('Auth/UserAdd', [
        [1, name],
        [2, 'p'],
      ]);
      await call('Auth/RoleAdd', [[1, name]]);
      await call('Auth/UserGrantRole', [
        [1, name],
        [2, name],
      ]);
    }
    const all = [
      [1, 2],
      [2, 'a'],
    ] as const;
    await call('Auth/RoleGrantPermission', [
      [1, 'u'],
      [2, all],
    ]);
    await call('KV/Put', [
      [1, 'b'],
      [2, 'secret'],
    ]);
    await call('Auth/AuthEnable', []);
    const login = await nobody.call('Auth/Authenticate', [
      [1, 'u'],
      [2, 'p'],
    ]);
    assert(Buffer.isBuffer(login));
    const token = /[\w]+\.\d+/.exec(login.toString('latin1'))?.[0] ?? '';
    const user = new Peer(port, token);
    const parts: Fields = [
      [1, [[1, 'a']]],
      [1, [[2, 'c']]],
    ];
    assert.equal(await user.show('KV/Txn', [[2, parts]]), '7 etcdserver: permission denied');
    assert.doesNotMatch(await user.show('KV/Txn', [[2, [[1, [[1, 'a']]]]]]), /denied/);
    user.close();
  } finally {
    nobody.close();
    await server.close();
    await opened.close();
  }
});

test('a watch that is asked for in parts is all of them', () => {
  const request = new WatchRequest();
  const bytes = encode([
    [
      1,
      [
        [1, 'a'],
        [5, 0],
        [7, 3],
      ],
    ],
    [
      1,
      [
        [2, 'z'],
        [5, 1],
        [6, 1],
      ],
    ],
  ]);
  assert(request.decode(bytes, 0, bytes.length));
  assert.equal(request.kind, WATCH_CREATE);
  assert.equal(request.bytes.latin1Slice(request.keyAt, request.keyTo), 'a');
  assert.equal(request.bytes.latin1Slice(request.endAt, request.endTo), 'z');
  const { watchId, noPut, noDelete, prevKv } = request;
  assert.deepEqual(
    { watchId, noPut, noDelete, prevKv },
    { watchId: 3, noPut: true, noDelete: true, prevKv: true },
  );
});
