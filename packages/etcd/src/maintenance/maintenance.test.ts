import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openStore } from '@megaplane/store/open';
import { NEWER, NEWER_SKIP } from '../testing/newer-etcd.sim.ts';
import { type Fields, Peer, has, startEtcd } from '../testing/peer.sim.ts';
import { serveEtcd } from '../server/run-store.ts';

const SKIP =
  has('etcd') && has('etcdctl') ? false : 'needs etcd: apt-get install etcd-server etcd-client';

const NOSPACE = 1;
const CORRUPT = 2;
const put: readonly [string, Fields] = [
  'KV/Put',
  [
    [1, 'a'],
    [2, 'b'],
  ],
];
function alarm(action: number, member: number, kind: number): readonly [string, Fields] {
  return [
    'Maintenance/Alarm',
    [
      [1, action],
      [2, member],
      [3, kind],
    ],
  ];
}
function lease(ttl: number, id: number): readonly [string, Fields] {
  return [
    'Lease/LeaseGrant',
    [
      [1, ttl],
      [2, id],
    ],
  ];
}
const one = (path: string, field: number, value: number | string): readonly [string, Fields] => [
  path,
  [[field, value]],
];

/** Calls whose answers do not depend on which server gives them. */
const SCRIPT: readonly (readonly [string, Fields])[] = [
  alarm(0, 0, 0),
  alarm(1, 77, NOSPACE),
  alarm(1, 77, NOSPACE),
  alarm(0, 0, NOSPACE),
  alarm(0, 0, CORRUPT),
  put,
  one('KV/Put', 2, 'b'),
  lease(10, 5),
  ['KV/Txn', []],
  [
    'KV/Txn',
    [
      [2, [[1, [[1, 'a']]]]],
      [3, [[2, [[1, 'a']]]]],
    ],
  ],
  ['KV/Txn', [[2, [[3, [[1, 'a']]]]]]],
  one('KV/DeleteRange', 1, 'a'),
  one('KV/Compact', 1, 1),
  alarm(2, 77, NOSPACE),
  alarm(2, 77, NOSPACE),
  put,
  alarm(1, 5, CORRUPT),
  put,
  one('KV/Put', 2, 'b'),
  one('KV/Range', 1, 'a'),
  one('KV/DeleteRange', 1, 'a'),
  ['KV/Txn', []],
  ['KV/Txn', [[2, [[1, [[1, 'a']]]]]]],
  ['KV/Txn', [[2, [[3, [[1, 'a']]]]]]],
  one('KV/Compact', 1, 2),
  lease(10, 6),
  one('Lease/LeaseRevoke', 1, 6),
  one('Lease/LeaseTimeToLive', 1, 6),
  ['Lease/LeaseLeases', []],
  ['Maintenance/HashKV', []],
  alarm(2, 5, CORRUPT),
  ['Maintenance/Defragment', []],
  one('Maintenance/HashKV', 1, 100),
  one('Maintenance/MoveLeader', 1, 5),
  ['Maintenance/MoveLeader', []],
  ['Cluster/MemberAdd', []],
  one('Cluster/MemberAdd', 1, 'nonsense'),
  one('Cluster/MemberAdd', 1, 'http://127.0.0.1:7777/path'),
  one('Cluster/MemberRemove', 1, 5),
  ['Cluster/MemberRemove', []],
  one('Cluster/MemberUpdate', 1, 5),
  one('Cluster/MemberPromote', 1, 5),
  lease(-5, 9),
  lease(0, 10),
  lease(9_000_000_001, 12),
  lease(9_000_000_000, 11),
  lease(10, -11),
  lease(10, 9),
  one('Lease/LeaseRevoke', 1, 0),
  one('Lease/LeaseRevoke', 1, -11),
  one('Lease/LeaseTimeToLive', 1, 0),
  one('Lease/LeaseTimeToLive', 1, 999),
  ['Lease/LeaseLeases', []],
  [
    'KV/Put',
    [
      [1, 'a'],
      [3, -7],
    ],
  ],
  one('KV/Compact', 1, -1),
  one('KV/Compact', 1, 0),
  one('KV/Compact', 1, 3000),
  one('KV/Range', 4, 1),
  ['Lease/Nothing', []],
];

/** 3.4 gives alarms no header, and hashes no revision. */
function shapeOf34(path: string, text: string): string {
  if (path === 'Maintenance/Alarm') return text.replace(/^revision \d+( \| )?/, '');
  return path === 'Maintenance/HashKV' ? text.replace(/ \| 4:-?\d+$/, '') : text;
}

async function compare(program: string, shape: typeof shapeOf34): Promise<void> {
  const etcd = await startEtcd(program);
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const server = await serveEtcd(opened, { listen: [{ port: 0 }] });
  const theirs = new Peer(etcd.port);
  const ours = new Peer(server.addresses[0]?.port ?? 0);
  try {
    for (const [index, [path, fields]] of SCRIPT.entries()) {
      const [expected, found] = await Promise.all([
        theirs.show(path, fields),
        ours.show(path, fields),
      ]);
      assert.equal(shape(path, found), expected, `${index}: ${path} ${JSON.stringify(fields)}`);
    }
  } finally {
    theirs.close();
    ours.close();
    await server.close();
    await opened.close();
    await etcd.stop();
  }
}

test('alarms, members, leases and bad requests answer as etcd 3.4', { skip: SKIP }, async () => {
  await compare('etcd', shapeOf34);
});

test('alarms, members, leases and bad requests answer as etcd 3.6', { skip: NEWER_SKIP }, () =>
  compare(NEWER?.etcd ?? '', (_path, text) => text),
);

test('an empty store has a size and a quota, and its own peer address is taken', async () => {
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const server = await serveEtcd(opened, { listen: [{ port: 0 }] });
  const peer = new Peer(server.addresses[0]?.port ?? 0);
  try {
    const status = await peer.show('Maintenance/Status', []);
    const numberOf = (field: number): number =>
      Number(new RegExp(`\\| ${field}:(\\d+)`).exec(status)?.[1]);
    assert(numberOf(3) > 0 && numberOf(9) > 0 && numberOf(9) <= numberOf(3), status);
    assert.equal(numberOf(12), 2_147_483_648);
    const add = (url: string): Promise<string> => peer.show('Cluster/MemberAdd', [[1, url]]);
    assert.equal(await add('http://localhost:2380'), '9 etcdserver: Peer URLs already exists');
    assert.match(await add('http://localhost:2381'), /^12 /);
  } finally {
    peer.close();
    await server.close();
    await opened.close();
  }
});
