import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type OpenStore, openStore } from '@megaplane/store/open';
import { type Fields, Peer, encode } from '../src/testing/peer.sim.ts';
import { type EtcdServerOptions, serveEtcd } from '../src/server/run-store.ts';

const SPACE = '8 etcdserver: mvcc: database space exceeded';

async function withPeer(
  memoryBytesMax: number | undefined,
  options: Partial<EtcdServerOptions>,
  use: (peer: Peer, opened: OpenStore) => Promise<void>,
): Promise<void> {
  const memory = memoryBytesMax === undefined ? {} : { memoryBytesMax };
  const opened = openStore({ dataDir: null, durability: 'none', prefixes: [], ...memory });
  const server = await serveEtcd(opened, { ...options, listen: [{ port: 0 }] });
  const peer = new Peer(server.addresses[0]?.port ?? 0);
  try {
    await use(peer, opened);
  } finally {
    peer.close();
    await server.close();
    await opened.close();
  }
}

function put(key: string, size: number): Fields {
  return [
    [1, key],
    [2, 'v'.repeat(size)],
  ];
}

test('at the memory limit puts are refused, reads, deletes and compaction go on', async () => {
  await withPeer(24 * 1024 * 1024, {}, async (peer, opened) => {
    await peer.show('Lease/LeaseGrant', [
      [1, 600],
      [2, 9],
    ]);
    let count = 0;
    for (let answer = ''; answer !== SPACE; count++) {
      assert(count < 2000, 'there is no limit');
      answer = await peer.show('KV/Put', put(`k${count}`, 100_000));
    }
    assert.equal(await peer.show('KV/Txn', [[2, [[2, put('t', 100_000)]]]]), SPACE);
    assert.match(await peer.show('KV/Range', [[1, 'k1']]), /k1/);
    assert.match(await peer.show('Lease/LeaseTimeToLive', [[1, 9]]), /4:600/);
    const range: Fields = [
      [1, 'k'],
      [2, 'l'],
    ];
    assert.match(await peer.show('KV/DeleteRange', range), new RegExp(`2:${count - 1}$`));
    assert.match(await peer.show('KV/Txn', [[2, [[3, range]]]]), /revision/);
    const revision = opened.store.appliedRevision;
    assert.match(await peer.show('KV/Compact', [[1, revision]]), /revision/);
    for (let i = 0; (await peer.show('KV/Put', put('again', 100_000))) === SPACE; i++) {
      assert(i < 3000, 'memory does not come back');
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  });
});

test('size and number of operations are limited in the words of etcd', async () => {
  const limits = { requestBytesMax: 1000, txnOpsMax: 3 };
  await withPeer(undefined, { limits }, async (peer) => {
    assert.equal(await peer.show('KV/Put', put('k', 1100)), '3 etcdserver: request is too large');
    const ops = Array.from({ length: 4 }, (_, n) => [2, [[2, put(`k${n}`, 1)]]] as const);
    assert.equal(
      await peer.show('KV/Txn', ops),
      '3 etcdserver: too many operations in txn request',
    );
    assert.match(
      await peer.show('KV/Put', put('k', 600_000)),
      /^8 grpc: received message larger than max \(6000\d\d vs\. 525288\)$/,
    );
  });
});

/** A put inside so many transactions. */
function nested(depth: number): Fields {
  let fields: Fields = [[2, [[2, put('deep', 200)]]]];
  // from the inside: the stack is not as deep everywhere as thousands of calls need
  for (let i = 0; i < depth; i++) fields = [[2, [[4, encode(fields)]]]];
  return fields;
}

/** What is told of it: responses as deep, lengths included. */
function nestedAnswer(depth: number, revision: number): Fields {
  const put: Fields = [[2, [[1, [[3, revision]]]]]];
  const inner: Fields = depth === 0 ? put : [[4, [[1, []], ...nestedAnswer(depth - 1, revision)]]];
  return [
    [2, 1],
    [3, inner],
  ];
}

test('transactions nest as deep as their operations allow', async () => {
  await withPeer(undefined, {}, async (peer, opened) => {
    const tooMany = '3 etcdserver: too many operations in txn request';
    for (const depth of [1, 40, 127]) {
      const answer = await peer.call('KV/Txn', nested(depth));
      assert(Buffer.isBuffer(answer), `${depth} deep: ${String(answer)}`);
      const expected = encode(nestedAnswer(depth, opened.store.appliedRevision));
      assert.equal(answer.subarray(-expected.length).toString('hex'), expected.toString('hex'));
    }
    assert.equal(await peer.show('KV/Txn', nested(128)), tooMany);
  });
  await withPeer(undefined, { limits: { txnOpsMax: 100_000 } }, async (peer) => {
    assert.match(await peer.show('KV/Txn', nested(1000)), /^revision 2 /);
    const tooMany = '3 etcdserver: too many operations in txn request';
    assert.equal(await peer.show('KV/Txn', nested(3000)), tooMany);
  });
});
