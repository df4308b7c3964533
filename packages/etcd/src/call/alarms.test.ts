import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { type OpenStore, openStore } from '@megaplane/store/open';
import { type Fields, Peer } from '../testing/peer.sim.ts';
import { type EtcdServer, serveEtcd } from '../server/run-store.ts';

const QUOTA_BYTES = 16 * 1024 * 1024;
const dir = mkdtempSync(join(tmpdir(), 'megaplane-alarms-'));
after(() => rmSync(dir, { recursive: true, force: true }));

interface Served {
  readonly opened: OpenStore;
  readonly server: EtcdServer;
  readonly peer: Peer;
}

async function serve(): Promise<Served> {
  const opened = openStore({ dataDir: dir, durability: 'buffered', prefixes: [] });
  const limits = { quotaBytes: QUOTA_BYTES };
  const server = await serveEtcd(opened, { listen: [{ port: 0 }], limits });
  return { opened, server, peer: new Peer(server.addresses[0]?.port ?? 0) };
}

async function stop({ opened, server, peer }: Served): Promise<void> {
  peer.close();
  await server.close();
  await opened.close();
}

const put = (key: string, value: string): Fields => [
  [1, key],
  [2, value],
];
const NO_SPACE = '8 etcdserver: mvcc: database space exceeded';

test('a full store refuses what grows until it is compacted and disarmed', async (context) => {
  let served = await serve();
  context.after(() => stop(served));
  const call = (path: string, fields: Fields): Promise<string> => served.peer.show(path, fields);
  await call('Lease/LeaseGrant', [
    [1, 100],
    [2, 9],
  ]);
  let answer = '';
  let count = 0;
  while (!answer.startsWith('8') && count < 100) {
    answer = await call('KV/Put', put('big', `${count++}`.padEnd(500_000, 'x')));
  }
  assert.equal(answer, NO_SPACE);
  assert.ok(count > 24 && count < 36, `${count} versions of 500 kB in 16 MiB`);
  // The alarm outlives a restart.
  await stop(served);
  served = await serve();
  assert.match(await call('Maintenance/Status', []), /8:memberID:\d+ alarm:NOSPACE {2}\|/);
  assert.equal(await call('KV/Put', put('new', 'x')), NO_SPACE);
  assert.equal(await call('KV/Put', put('big', 'y'.repeat(500_000))), NO_SPACE);
  assert.equal(await call('KV/Txn', [[3, [[2, put('new', 'x')]]]]), NO_SPACE);
  assert.equal(await call('Lease/LeaseGrant', [[1, 100]]), NO_SPACE);
  assert.match(await call('KV/Put', put('big', 'smaller')), /^revision/);
  assert.match(await call('KV/Txn', [[2, [[2, put('big', 'small')]]]]), /^revision/);
  assert.match(await call('KV/DeleteRange', [[1, 'big']]), /^revision \d+ \| 2:1$/);
  assert.match(await call('Lease/LeaseRevoke', [[1, 9]]), /^revision/);
  const revision = served.opened.store.appliedRevision;
  assert.match(await call('KV/Compact', [[1, revision]]), /^revision/);
  assert.equal(await call('Maintenance/Defragment', []), '');
  const { arenas } = served.opened.store;
  assert.ok(arenas.usedBytes < 5_000_000, `${arenas.usedBytes} bytes are still used`);
  assert.ok((served.opened.log?.bytesSinceSnapshot ?? Infinity) < 1_000_000);
  assert.equal(await call('KV/Put', put('new', 'x')), NO_SPACE);
  const alarms = await served.peer.call('Maintenance/Alarm', []);
  assert.ok(typeof alarms !== 'string');
  const [alarm] = served.opened.store.alarms.list();
  const member = BigInt(alarm?.memberHigh ?? 0) * 2n ** 32n + BigInt(alarm?.memberLow ?? 0);
  assert.equal(member, served.opened.memberId.readBigUInt64BE());
  const disarm: Fields = [
    [1, 2],
    [2, member],
    [3, 1],
  ];
  assert.match(await call('Maintenance/Alarm', disarm), /^revision \d+ \| 2:/);
  assert.match(await call('KV/Put', put('new', 'x')), /^revision/);
});
