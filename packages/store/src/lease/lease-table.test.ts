import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FAILURE } from '../contract.ts';
import { Store } from '../mvcc/store.ts';

function newStore(): Store {
  return new Store({ dataDir: null, durability: 'none', prefixes: [] }, 1);
}

function put(store: Store, key: string, lease: number): void {
  const bytes = Buffer.from(key);
  store.putIf(bytes, 0, bytes.length, -1, bytes, 0, 0, lease);
}

function keysOf(store: Store, lease: number): string {
  const keys: string[] = [];
  store.leases.eachKey(lease, (ref) => {
    keys.push(store.record(ref).latin1Slice(store.keyAt(ref), store.keyTo(ref)));
  });
  return keys.join(' ');
}

/** A story, one line a step, and what it printed. */
function play(script: string): string {
  const store = newStore();
  const printed: string[] = [];
  for (const line of script.trim().split('\n')) {
    const [verb = '', ...args] = line.trim().split(' ');
    const [a = 0, b = 0] = args.map(Number);
    const lease = store.leases.find(0, a);
    printed.push(line.trim());
    if (verb === 'grant') printed.push(`  ${store.leases.grant(0, a, b, 0) > 0}`);
    if (verb === 'put') put(store, args[1] ?? '', lease);
    if (verb === 'keep') printed.push(`  ttl ${store.leases.keepAlive(lease, b)}`);
    if (verb === 'revoke') printed.push(`  ${store.leases.revoke(lease)}`);
    if (verb === 'keys') printed.push(`  ${keysOf(store, lease)}`);
    if (verb === 'tick') {
      const before = store.appliedRevision;
      store.tick(a);
      const names: number[] = [];
      store.leases.each((one) => names.push(store.leases.idLow(one)));
      printed.push(`  leases ${names.join(',')} revisions +${store.appliedRevision - before}`);
    }
  }
  return printed.join('\n');
}

test('a lease ends at its deadline, one revision each, and keeps what is kept alive', () => {
  assert.equal(
    play(`grant 1 5
      grant 2 9
      grant 2 9
      grant 3 1
      put 1 a
      put 1 b
      put 2 c
      put 0 b
      keys 1
      tick 1999
      tick 2000
      keep 1 4000
      tick 8999
      tick 9000`),
    `grant 1 5
  true
grant 2 9
  true
grant 2 9
  false
grant 3 1
  true
put 1 a
put 1 b
put 2 c
put 0 b
keys 1
  a
tick 1999
  leases 1,2,3 revisions +0
tick 2000
  leases 1,2 revisions +0
keep 1 4000
  ttl 5
tick 8999
  leases 1,2 revisions +0
tick 9000
  leases  revisions +2`,
  );
});

test('few keys of a lease are shown in order, many as they lie', () => {
  for (const count of [4096, 4097]) {
    const store = newStore();
    const lease = store.leases.grant(0, 1, 100, 0);
    const keys = Array.from({ length: count }, (_, n) => `k${(n * 7919) % count}`);
    for (const key of keys) put(store, key, lease);
    const shown = keysOf(store, lease).split(' ');
    assert.deepEqual(shown, count === 4096 ? keys.toSorted() : keys.toReversed());
  }
});

test('limits and unknown leases are refused', () => {
  const { leases } = newStore();
  assert.equal(leases.grant(0, 1, 9_000_000_001, 0), FAILURE.leaseTtlTooLarge);
  assert.equal(leases.keepAlive(leases.find(0, 7), 0), FAILURE.leaseNotFound);
  assert.equal(leases.revoke(0), FAILURE.leaseNotFound);
  const lease = leases.grant(0x7fffffff, 0xffffffff, -5, 0);
  assert.equal(leases.ttlSeconds(lease), 2);
});

test('any order of grants, keep-alives and time ends each lease at its last deadline', () => {
  const step = fc.record({
    id: fc.integer({ min: 1, max: 12 }),
    ttl: fc.nat(20),
    wait: fc.nat(4000),
    keep: fc.boolean(),
  });
  const run = (
    steps: readonly { id: number; ttl: number; wait: number; keep: boolean }[],
  ): void => {
    const { leases } = newStore();
    const deadlines = new Map<number, number>();
    const ttls = new Map<number, number>();
    let nowMs = 0;
    for (const { id, ttl, wait, keep } of steps) {
      nowMs += wait;
      leases.expire(nowMs);
      for (const [name, deadline] of deadlines) if (deadline <= nowMs) deadlines.delete(name);
      const lease = leases.find(0, id);
      assert.equal(lease !== 0, deadlines.has(id));
      if (lease === 0) {
        leases.grant(0, id, ttl, nowMs);
        ttls.set(id, Math.max(2, ttl));
      } else if (!keep) continue;
      else leases.keepAlive(lease, nowMs);
      deadlines.set(id, nowMs + (ttls.get(id) ?? 0) * 1000);
    }
    assert.equal(leases.size, deadlines.size);
  };
  fc.assert(fc.property(fc.array(step, { maxLength: 80, size: 'max' }), run), { numRuns: 300 });
});
