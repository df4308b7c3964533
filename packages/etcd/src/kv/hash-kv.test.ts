import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { openStore } from '@megaplane/store/open';
import { NEWER, NEWER_SKIP } from '../testing/newer-etcd.sim.ts';
import { type Fields, Peer, has, startEtcd } from '../testing/peer.sim.ts';
import { serveEtcd } from '../server/run-store.ts';

const SKIP =
  has('etcd') && has('etcdctl') ? false : 'needs etcd: apt-get install etcd-server etcd-client';
const REQUESTS = process.env['MEGAPLANE_LONG'] === undefined ? 420 : 20_000;

/** One request of a random history; revisions are those of the store at that time. */
function draw(random: () => number, revision: number): readonly [string, Fields] {
  const key = (): string => `k/${Math.floor(random() * 30)}`;
  const value = 'v'.repeat(Math.floor(random() * 40));
  const put = (name: string): Fields => [
    [1, name],
    [2, value],
    [3, random() < 0.2 ? 77 : 0],
  ];
  const kind = random();
  if (kind < 0.5) return ['KV/Put', put(key())];
  if (kind < 0.65) return ['KV/DeleteRange', [[1, key()]]];
  if (kind < 0.7) {
    return [
      'KV/DeleteRange',
      [
        [1, key()],
        [2, 'k/3'],
      ],
    ];
  }
  if (kind < 0.97) {
    return [
      'KV/Txn',
      [
        [2, [[2, put(key())]]],
        [2, [[2, put(`t${key()}`)]]],
        [
          2,
          [
            [
              3,
              [
                [1, 'x'],
                [2, 'y'],
              ],
            ],
          ],
        ],
        [2, [[2, put(`u${key()}`)]]],
      ],
    ];
  }
  return [
    'KV/Compact',
    [
      [1, Math.max(0, revision - Math.floor(random() * 40))],
      [2, 1],
    ],
  ];
}

/** 3.4 hashes no revision of its own and refuses the compacted one itself. */
async function compare(program: string, is34: boolean): Promise<void> {
  const etcd = await startEtcd(program);
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [] });
  const server = await serveEtcd(opened, { listen: [{ port: 0 }] });
  const theirs = new Peer(etcd.port);
  const ours = new Peer(server.addresses[0]?.port ?? 0);
  const both = async (path: string, fields: Fields): Promise<void> => {
    const answers = await Promise.all([theirs.show(path, fields), ours.show(path, fields)]);
    const [expected, found] = answers;
    const shown = is34 ? found.replace(/ \| 4:-?\d+$/, '') : found;
    const isHash = path.endsWith('HashKV');
    assert.equal(isHash ? shown : found, expected, `${path} ${JSON.stringify(fields)}`);
  };
  const source = new Random(20261121);
  const random = (): number => source.below(1_000_000) / 1_000_000;
  const hashAll = async (): Promise<void> => {
    const { compactRevision, appliedRevision } = opened.store;
    const first = Math.max(1, compactRevision + (is34 ? 1 : 0));
    for (let revision = first; revision <= appliedRevision; revision++) {
      await both('Maintenance/HashKV', [[1, revision]]);
    }
    await both('Maintenance/HashKV', []);
  };
  try {
    await both('Lease/LeaseGrant', [
      [1, 5000],
      [2, 77],
    ]);
    for (let i = 0; i < REQUESTS; i++) {
      const [path, fields] = draw(random, opened.store.appliedRevision);
      await both(path, fields);
      if (path === 'KV/Compact') await both('Maintenance/HashKV', []);
      if (i % 210 === 209) await hashAll();
    }
    await both('Lease/LeaseRevoke', [[1, 77]]);
    await hashAll();
    await both('KV/DeleteRange', [
      [1, '\0'],
      [2, '\0'],
    ]);
    await hashAll();
    await both('KV/Compact', [
      [1, opened.store.appliedRevision],
      [2, 1],
    ]);
    await hashAll();
  } finally {
    theirs.close();
    ours.close();
    await server.close();
    await opened.close();
    await etcd.stop();
  }
}

test('a random history has the hashes of etcd 3.4 at all its revisions', { skip: SKIP }, () =>
  compare('etcd', true),
);

test('a random history has the hashes of etcd 3.6 at all its revisions', { skip: NEWER_SKIP }, () =>
  compare(NEWER?.etcd ?? '', false),
);
