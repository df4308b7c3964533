/**
 * Calls beside the keys, sane and absurd, beside a real etcd: leases, members, alarms, versions,
 * users with what each of them may do, sizes, and bytes that are no message.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openStore } from '@megaplane/store/open';
import { NEWER, NEWER_SKIP } from '../src/testing/newer-etcd.sim.ts';
import { type Fields, Peer, startEtcd } from '../src/testing/peer.sim.ts';
import { Message } from '../src/codec/message.ts';
import { serveEtcd } from '../src/server/run-store.ts';

const INT64_MAX = 2n ** 63n - 1n;
const INT64_MIN = -(2n ** 63n);
const BYTES_OF_PUT = 1_572_864 - 25;

/** One server of each kind, asked the same. */
class Both {
  readonly #ports: readonly [number, number];
  #peers: readonly [Peer, Peer];
  #ids: readonly bigint[] = [];
  readonly differences: string[] = [];

  constructor(theirs: number, ours: number) {
    this.#ports = [theirs, ours];
    this.#peers = [new Peer(theirs), new Peer(ours)];
  }

  async identify(): Promise<void> {
    const answers = this.#peers.map((peer) => peer.call('Maintenance/Status', []));
    this.#ids = (await Promise.all(answers)).map((answer) => {
      assert(Buffer.isBuffer(answer), String(answer));
      return BigInt.asUintN(64, new Message(answer).message(1).number(2));
    });
  }

  /** Whole answers, or only how the call ended. `me` stands for the member's own id. */
  async ask(path: string, make: Fields | Buffer | ((me: bigint) => Fields), isWhole = true) {
    const [theirs, ours] = await Promise.all(
      this.#peers.map(async (peer, index) => {
        const fields = typeof make === 'function' ? make(this.#ids[index] ?? 0n) : make;
        const text = await peer.show(path, fields);
        return isWhole || /^\d+ /.test(text) ? text : '0';
      }),
    );
    if (theirs === ours) return;
    const shown = Buffer.isBuffer(make) ? make.toString('hex') : show(make);
    this.differences.push(`${path} ${shown}\n  etcd ${theirs}\n  ours ${ours}`);
  }

  /** Goes on as a user; without a name as nobody. */
  async login(name: string, password: string): Promise<void> {
    const tokens = await Promise.all(
      this.#ports.map(async (port) => {
        if (name === '') return password;
        const peer = new Peer(port);
        const fields: Fields = [
          [1, name],
          [2, password],
        ];
        const answer = await peer.call('Auth/Authenticate', fields);
        peer.close();
        assert(Buffer.isBuffer(answer), String(answer));
        return new Message(answer).bytes(2).toString();
      }),
    );
    this.close();
    this.#peers = [new Peer(this.#ports[0], tokens[0]), new Peer(this.#ports[1], tokens[1])];
  }

  close(): void {
    for (const peer of this.#peers) peer.close();
  }
}

function show(make: unknown): string {
  const text = typeof make === 'function' ? String(make) : JSON.stringify(make, bigText);
  return text.slice(0, 200);
}

function bigText(_name: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}

/** `fields(a, b)`: the first fields of a message in order. */
function fields(...values: readonly Fields[number][1][]): Fields {
  return values.map((value, index) => [index + 1, value] as const);
}

async function beside(script: (both: Both) => Promise<void>): Promise<void> {
  const etcd = await startEtcd(NEWER?.etcd ?? '', undefined, ['--bcrypt-cost', '4']);
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const server = await serveEtcd(opened, { listen: [{ port: 0 }], auth: { bcryptCost: 4 } });
  const both = new Both(etcd.port, server.addresses[0]?.port ?? 0);
  try {
    await both.identify();
    await script(both);
    assert.deepEqual(both.differences, []);
  } finally {
    both.close();
    await server.close();
    await opened.close();
    await etcd.stop();
  }
}

async function askLeases(both: Both): Promise<void> {
  // None may end by itself at one server before the other.
  for (const ttl of [600, 9_000_000_000, 9_000_000_001, INT64_MAX]) {
    for (const id of [1, -1, INT64_MIN, INT64_MAX]) {
      await both.ask('Lease/LeaseGrant', fields(ttl, id));
    }
  }
  for (const [index, ttl] of [-1, 0, 1, 3, INT64_MIN].entries()) {
    await both.ask('Lease/LeaseGrant', fields(ttl, 900 + index));
  }
  for (const id of [0, 1, 77, -1, INT64_MAX, INT64_MIN]) {
    await both.ask('Lease/LeaseRevoke', fields(id));
    await both.ask('KV/Put', fields('k', 'v', id));
  }
  await both.ask('Lease/LeaseGrant', fields(600, 500));
  for (const key of ['b', 'a', 'c']) await both.ask('KV/Put', fields(key, 'v', 500));
  await both.ask('KV/Put', [...fields('b', 'w'), [6, 1]]);
  await both.ask('KV/Put', fields('c', 'w'));
  await both.ask('Lease/LeaseRevoke', fields(500));
  await both.ask('KV/Range', fields('\0', '\0'));
}

async function askMembers(both: Both): Promise<void> {
  for (const method of ['MemberRemove', 'MemberPromote']) {
    await both.ask(`Cluster/${method}`, []);
    await both.ask(`Cluster/${method}`, fields(5));
    await both.ask(`Cluster/${method}`, (me) => fields(me));
  }
  for (const url of ['', 'x', 'http://a', 'http://a:1/x', 'a:1', 'ftp://a:1']) {
    await both.ask('Cluster/MemberAdd', url === '' ? [] : fields(url));
  }
  await both.ask('Cluster/MemberUpdate', fields(5, 'http://a:1'));
  for (const target of [0, 5, -1]) await both.ask('Maintenance/MoveLeader', fields(target));
  for (const version of ['', 'x', '3.4', '3.6.0', '3.8.0', 'v3.5.0', '3', '2.0.0']) {
    await both.ask('Maintenance/Downgrade', fields(0, version), false);
  }
}

const WRITES: readonly (readonly [string, Fields])[] = [
  ['KV/Put', fields('k', 'v')],
  ['KV/Put', []],
  ['KV/Put', [...fields('k', 'x'), [5, 1]]],
  ['KV/Txn', [[2, [[2, fields('a')]]]]],
  ['KV/Txn', [[3, [[2, fields('a')]]]]],
  ['KV/Txn', [[2, [[3, fields('a')]]]]],
  ['KV/Txn', [[2, [[1, fields('a')]]]]],
  ['KV/Txn', [[2, [[4, [[2, [[2, fields('q')]]]]]]]]],
  ['KV/Txn', []],
  ['KV/DeleteRange', fields('a')],
  ['KV/DeleteRange', []],
  ['KV/Range', fields('a')],
  ['KV/Compact', fields(0)],
  ['Lease/LeaseRevoke', fields(123)],
  ['Lease/LeaseGrant', fields(100)],
  ['Lease/LeaseTimeToLive', fields(3)],
  ['Lease/LeaseLeases', []],
  ['Auth/UserList', []],
  ['Maintenance/HashKV', []],
];

async function askAlarms(both: Both): Promise<void> {
  for (const kind of [0, 1, 2, 3, -1]) await both.ask('Maintenance/Alarm', fields(0, 7, kind));
  for (const kind of [1, 2]) {
    await both.ask('Maintenance/Alarm', (me) => fields(1, me, kind), false);
    for (const [path, request] of WRITES) await both.ask(path, request, false);
    await both.ask('Maintenance/Alarm', (me) => fields(2, me, kind), false);
    await both.ask('Maintenance/Alarm', (me) => fields(2, me, kind));
  }
  for (const revision of [0, 1, -1, 99, INT64_MAX]) {
    await both.ask('Maintenance/HashKV', fields(revision));
  }
}

async function askSizes(both: Both): Promise<void> {
  for (const value of ['v'.repeat(BYTES_OF_PUT), 'v'.repeat(BYTES_OF_PUT + 3)]) {
    await both.ask('KV/Put', fields('k', value));
    await both.ask('KV/Txn', [[2, [[1, fields(value)]]]]);
  }
  await both.ask('KV/DeleteRange', fields('k'.repeat(BYTES_OF_PUT + 9)));
  await both.ask('KV/Put', fields('k', 'v'.repeat(2_097_152)));
  const many = (field: number, one: Fields): Fields =>
    Array.from({ length: 129 }, () => [field, one] as const);
  await both.ask('KV/Txn', many(2, [[1, fields('k')]]));
  await both.ask('KV/Txn', many(1, [[3, 'k']]));
}

test('leases, members, alarms and sizes as in etcd 3.6', { skip: NEWER_SKIP }, () =>
  beside(async (both) => {
    await askLeases(both);
    await askMembers(both);
    await askAlarms(both);
    await askSizes(both);
  }),
);

const GRANTS: readonly (readonly [string, string])[] = [
  ...[['u', 'r'] as const, ['u', 'r'] as const, ['u', 'none'] as const, ['none', 'r'] as const],
  ...[['', 'r'] as const, ['u', ''] as const, ['u', 'root'] as const, ['root', 'root'] as const],
];
/** Of a role: kind, key and end. */
const PERMISSIONS: readonly Fields[] = [
  ...[[], [[2, 'k'] as const], fields(2, 'a', 'c'), fields(2, 'a', 'c'), fields(0, 'a', 'c')],
  ...[fields(1, 'b', 'd'), fields(0, 'c', 'a'), fields(0, 'c', 'c'), fields(0, 'z', '\0')],
  ...[fields(0, '', '\0'), [[3, 'x'] as const], fields(9, 'q'), fields(0, 'p/', 'p0')],
];

async function makeUsers(both: Both): Promise<void> {
  const ask = (method: string, ...values: readonly Fields[number][1][]): Promise<void> =>
    both.ask(`Auth/${method}`, fields(...values));
  await ask('AuthEnable');
  await ask('AuthDisable');
  await ask('Authenticate', 'a', 'b');
  for (const name of ['', 'root', 'root', 'u', 'x'.repeat(300), 'n']) {
    await ask('UserAdd', name, 'pw');
  }
  await ask('UserAdd', 'nopw', 'pw', [[1, 1]]);
  await ask('UserAdd', 'long', 'p'.repeat(73));
  for (const name of ['', 'root', 'r', 'r', 's']) await ask('RoleAdd', name);
  for (const [user, role] of GRANTS) await ask('UserGrantRole', user, role);
  for (const [user, role] of GRANTS.slice(3)) await ask('UserRevokeRole', user, role);
  for (const permission of PERMISSIONS) await ask('RoleGrantPermission', 'r', permission);
  for (const role of ['none', '', 'root']) await ask('RoleGrantPermission', role, fields(0, 'k'));
  await ask('RoleGet', 'r');
  for (const end of ['c', 'c', '']) await ask('RoleRevokePermission', 'r', 'a', end);
  for (const name of ['u', 'none', '']) await ask('UserChangePassword', name, 'new');
  for (const name of ['u', 'none', '']) await ask('UserGet', name);
  await ask('UserGrantRole', 'root', 'root');
  await ask('AuthEnable');
}

const RANGES: readonly (readonly [string, string])[] = [
  ...[['b', ''] as const, ['b', 'd'] as const, ['a', 'd'] as const, ['p/', 'p0'] as const],
  ...[['p/x', ''] as const, ['p', 'q'] as const, ['z', '\0'] as const, ['zz', '\0'] as const],
  ...[['\0', '\0'] as const, ['q', ''] as const, ['k', ''] as const],
];
const OTHERS =
  'KV/Compact Lease/LeaseGrant Lease/LeaseLeases Maintenance/Alarm Maintenance/Status ' +
  'Maintenance/HashKV Maintenance/MoveLeader Maintenance/Downgrade Cluster/MemberList ' +
  'Cluster/MemberAdd Cluster/MemberRemove Auth/UserAdd Auth/UserGet Auth/UserList Auth/RoleGet ' +
  'Auth/UserGrantRole Auth/RoleAdd Auth/RoleList Auth/RoleDelete Auth/AuthStatus';

/** What whoever is logged in may do. */
async function askRights(both: Both): Promise<void> {
  for (const [key, end] of RANGES) {
    await both.ask('KV/Range', fields(key, end));
    await both.ask('KV/Put', [...fields(key, 'v'), [4, 1]]);
    await both.ask('KV/DeleteRange', fields(key, end, 1));
    await both.ask('KV/Txn', [
      [
        1,
        [
          [3, key],
          [64, end],
        ],
      ],
      [3, [[2, fields(key)]]],
    ]);
    await both.ask('KV/Txn', [[2, [[4, [[2, [[3, fields(key, end)]]]]]]]]);
  }
  for (const path of ['KV/Range', 'KV/Put', 'KV/DeleteRange']) await both.ask(path, []);
  await both.ask('KV/Txn', []);
  await both.ask('KV/Txn', [[2, []]]);
  for (const path of OTHERS.split(' ')) await both.ask(path, [], false);
  await both.ask('Auth/UserGet', fields('u'));
  await both.ask('Auth/RoleGet', fields('s'));
  for (const name of ['p', 'x']) {
    await both.ask('/v3lockpb.Lock/Lock', fields(name, 55));
    await both.ask('/v3electionpb.Election/Leader', fields(name));
  }
}

test('users, roles and their rights as in etcd 3.6', { skip: NEWER_SKIP }, () =>
  beside(async (both) => {
    await makeUsers(both);
    for (const [name, password] of [
      ['root', 'bad'],
      ['none', 'x'],
      ['nopw', ''],
      ['u', 'pw'],
    ]) {
      await both.ask('Auth/Authenticate', fields(name ?? '', password ?? ''), false);
    }
    for (const [name, password] of [
      ['', ''],
      ['u', 'new'],
      ['n', 'pw'],
      ['', 'bad.1'],
      ['root', 'pw'],
    ]) {
      await both.login(name ?? '', password ?? '');
      await askRights(both);
    }
    await both.ask('Lease/LeaseGrant', fields(600, 321));
    await both.ask('KV/Put', fields('secret', '', 321));
    await both.login('u', 'new');
    for (const method of ['LeaseRevoke', 'LeaseTimeToLive', 'LeaseKeepAlive']) {
      await both.ask(`Lease/${method}`, fields(321, 1), false);
    }
    await both.ask('KV/Put', fields('p/l', '', 321));
    await both.login('root', 'pw');
    for (const name of ['root', 'u', 'none']) await both.ask('Auth/UserDelete', fields(name));
    for (const name of ['r', 'root', 'none']) await both.ask('Auth/RoleDelete', fields(name));
    await both.ask('Auth/AuthDisable', []);
    await both.ask('Auth/UserList', []);
  }),
);

test('bytes that are no message are refused, whatever the method', async () => {
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const server = await serveEtcd(opened, { listen: [{ port: 0 }] });
  const peer = new Peer(server.addresses[0]?.port ?? 0);
  const methods = [
    ...['KV/Range', 'KV/Put', 'KV/Txn', 'Lease/LeaseGrant', 'Auth/RoleAdd'],
    // Those without fields.
    ...['Maintenance/Status', 'Maintenance/Defragment', 'Maintenance/Hash', 'Auth/AuthStatus'],
    ...['Cluster/MemberList', 'Lease/LeaseLeases'],
  ];
  for (const path of [
    ...methods,
    'Watch/Watch',
    'Maintenance/Snapshot',
    '/v3lockpb.Lock/Lock',
    '/v3electionpb.Election/Observe',
  ]) {
    const isStream = /\/(Observe|Watch|Snapshot)$/.test(path);
    for (const hex of ['0a', '0aff', '0b', '0c', '00', '07', 'ff', '80808080808080808001']) {
      // The text is that of etcd 3.7.
      const where = isStream
        ? 'failed to unmarshal the received message'
        : 'error unmarshalling request';
      const expected = `13 grpc: ${where}: proto: cannot parse invalid wire-format data`;
      assert.equal(await peer.call(path, Buffer.from(hex, 'hex')), expected, `${path} ${hex}`);
    }
  }
  const expected = '13 grpc: error unmarshalling request: string field contains invalid UTF-8';
  assert.equal(await peer.call('Auth/UserAdd', fields('\xff')), expected);
  assert.match(await peer.show('Auth/RoleRevokePermission', fields('r', '\xff')), /role name not/);
  peer.close();
  await server.close();
  await opened.close();
});

const NO_MESSAGE =
  '13 grpc: error unmarshalling request: proto: cannot parse invalid wire-format data';

test('a message inside another has to be one, whatever else is wrong or replaced', async () => {
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const server = await serveEtcd(opened, { listen: [{ port: 0 }] });
  const peer = new Peer(server.addresses[0]?.port ?? 0);
  const cut = '\x0a\x09k';
  const range: Fields = [[1, 'k']];
  const requests: readonly (readonly [string, Fields])[] = [
    [
      'KV/Txn',
      [
        [2, [[2, []]]],
        [2, [[1, cut]]],
      ],
    ],
    [
      'KV/Txn',
      [
        [
          2,
          [
            [1, cut],
            [1, range],
          ],
        ],
      ],
    ],
    [
      'KV/Txn',
      [
        [1, [[2, 9]]],
        [3, [[4, [[2, [[3, cut]]]]]]],
      ],
    ],
    ['/v3electionpb.Election/Proclaim', [[1, cut]]],
    ['/v3electionpb.Election/Resign', [[1, cut]]],
    ['Auth/RoleGrantPermission', fields('r', cut)],
    ['Auth/UserAdd', fields('u', 'pw', cut)],
  ];
  for (const [path, request] of requests) {
    assert.equal(await peer.call(path, request), NO_MESSAGE, path);
  }
  // A varint may be longer than it has to be; such options are no text.
  assert(Buffer.isBuffer(await peer.call('Auth/UserAdd', fields('u', '', '\x08\x81\x00'))));
  assert(
    Buffer.isBuffer(
      await peer.call('Auth/UserAdd', [
        [1, 'v'],
        [9, '\xff'],
      ]),
    ),
  );
  peer.close();
  await server.close();
  await opened.close();
});

test('an empty new password fits nothing but the hash that comes with it', async () => {
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const server = await serveEtcd(opened, { listen: [{ port: 0 }], auth: { bcryptCost: 4 } });
  const peer = new Peer(server.addresses[0]?.port ?? 0);
  const hash = '$2a$04$/uaF/uaF/uaF/uaF/uaF/uyUa5B4sNev9rTvA6TvEBWYO4koffwMy';
  await peer.call('Auth/UserAdd', fields('root', 'pw'));
  await peer.call('Auth/UserGrantRole', fields('root', 'root'));
  for (const name of ['empty', 'hashed']) await peer.call('Auth/UserAdd', fields(name, 'pw'));
  await peer.call('Auth/UserAdd', fields('certified', '', [[1, 1]]));
  const change = (name: string, sent: string): Promise<Buffer | string> =>
    peer.call('Auth/UserChangePassword', [
      [1, name],
      [3, sent],
    ]);
  const refused = '2 auth: authentication failed, password was given for no password user';
  assert.equal(await change('hashed', '!'), refused);
  assert.equal(await change('none', '!'), '9 etcdserver: user name not found');
  assert(Buffer.isBuffer(await change('certified', '!')));
  assert(Buffer.isBuffer(await change('empty', '')));
  assert(Buffer.isBuffer(await change('hashed', Buffer.from(hash).toString('base64'))));
  await peer.call('Auth/AuthEnable', []);
  const failed = '3 etcdserver: authentication failed, invalid user ID or password';
  for (const [name, password] of [
    ['empty', ''],
    ['empty', 'pw'],
    ['hashed', ''],
    ['hashed', 'pw'],
  ] as const) {
    assert.equal(await peer.call('Auth/Authenticate', fields(name, password)), failed);
  }
  assert(Buffer.isBuffer(await peer.call('Auth/Authenticate', fields('hashed', 'secret'))));
  peer.close();
  await server.close();
  await opened.close();
});

test('a client whose version is no text is refused, whatever it calls', async () => {
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const server = await serveEtcd(opened, { listen: [{ port: 0 }] });
  const port = server.addresses[0]?.port ?? 0;
  const wrong = new Peer(port, ['client-api-version', '3.6.0\xff']);
  const right = new Peer(port, ['client-api-version', '3.6.0\xc3\xa9']);
  for (const path of ['KV/Range', 'Maintenance/Snapshot', 'Lease/LeaseKeepAlive']) {
    const answer = await wrong.call(path, fields('k'));
    assert.equal(answer, '3 etcdserver: invalid client api version', path);
  }
  assert(Buffer.isBuffer(await right.call('KV/Range', fields('k'))));
  wrong.close();
  right.close();
  await server.close();
  await opened.close();
});

test('enumerations have 32 bits, and a message that comes in parts is all of them', async () => {
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const server = await serveEtcd(opened, { listen: [{ port: 0 }] });
  const peer = new Peer(server.addresses[0]?.port ?? 0);
  const none = 2n ** 32n;
  try {
    await peer.call('KV/Put', [[1, 'a']]);
    const sorted: Fields = [
      [1, 'a'],
      [5, none + 1n],
      [6, none],
    ];
    assert.equal(await peer.show('KV/Range', sorted), await peer.show('KV/Range', [[1, 'a']]));
    const compare: Fields = [
      [1, none],
      [2, none],
      [3, 'a'],
      [4, 1],
    ];
    assert.match(await peer.show('KV/Txn', [[1, compare]]), /2:1/);
    assert.match(await peer.show('Maintenance/Alarm', [[1, none]]), /^revision/);
    await peer.call('Auth/RoleAdd', [[1, 'r']]);
    const granted = await peer.show('Auth/RoleGrantPermission', [
      [1, 'r'],
      [2, [[1, none + 2n]]],
      [2, [[2, 'k']]],
      [2, [[3, 'm']]],
    ]);
    assert.match(granted, /^revision/);
    assert.equal(
      await peer.show('Auth/RoleGet', [[1, 'r']]),
      'revision 2 | 2:\b\x02\x12\x01k\x1a\x01m',
    );
    await peer.call('Auth/UserAdd', [
      [1, 'u'],
      [3, [[1, 2]]],
    ]);
    await peer.call('Auth/UserAdd', [
      [1, 'root'],
      [3, [[1, 1]]],
      [3, [[9, 1]]],
    ]);
    await peer.call('Auth/UserGrantRole', [
      [1, 'root'],
      [2, 'root'],
    ]);
    await peer.call('Auth/AuthEnable', []);
    const refusal = /without password|has no password|authentication failed/;
    for (const name of ['u', 'root']) {
      const login: Fields = [
        [1, name],
        [2, ''],
      ];
      assert.match(await peer.show('Auth/Authenticate', login), refusal);
    }
  } finally {
    peer.close();
    await server.close();
    await opened.close();
  }
});
