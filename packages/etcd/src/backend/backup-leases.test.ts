import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { Store } from '@megaplane/store/store';
import { BackupLeases } from './backup-leases.ts';

const LEASES = 40_000;

test('leases of a backup are in the order of their ids, found in small steps', () => {
  const store = new Store({ dataDir: null, durability: 'none', prefixes: [] }, 3);
  const random = new Random(5);
  const ids: bigint[] = [];
  for (let n = 0; n < LEASES; n++) {
    // Some share their upper half, some their lower one.
    const high = random.below(n % 3 === 0 ? 4 : 2 ** 31);
    const low = random.below(2 ** 16) * (n % 5 === 0 ? 1 : 65_537);
    if (store.leases.grant(high, low, 100, 0) < 0) continue;
    ids.push((BigInt(high) << 32n) | BigInt(low));
  }
  const [gone = 0n] = ids.splice(7, 1);
  store.leases.revoke(store.leases.find(Number(gone >> 32n), Number(gone & 0xffffffffn)));
  const leases = new BackupLeases(store.leases.copyRows(), 1500);
  // What happens from now on is not in it.
  store.leases.grant(0, 1, 100, 0);
  const [later = 0n] = ids;
  store.leases.revoke(store.leases.find(Number(later >> 32n), Number(later & 0xffffffffn)));
  let steps = 0;
  while (!leases.step()) steps++;
  assert(steps > 20, `${steps} steps`);
  assert.equal(leases.count, ids.length);
  const key = Buffer.alloc(8);
  const found = ids.map((_, index) => {
    assert.equal(leases.writeKey(index, key, 0), leases.keySize());
    return key.readBigUInt64BE(0);
  });
  assert.deepEqual(found, BigUint64Array.from(ids).sort().values().toArray());
  const value = Buffer.alloc(32);
  assert.equal(leases.writeValue(0, value, 0), leases.valueSize(0));
  assert.equal(
    value.subarray(leases.valueSize(0) - 4, leases.valueSize(0)).toString('hex'),
    '10641863',
  );
});
