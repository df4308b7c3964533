// The same world, with shards and relays that die, hang and come again around each scheduler: every
// pod is evaluated in full, by whoever is there. `MEGAPLANE_SEED=n` plays these worlds again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Cluster } from './cluster.sim.ts';

const LONG = process.env['MEGAPLANE_LONG'] === '1';
const GIVEN = process.env['MEGAPLANE_SEED']?.split(',').map(Number);
const SEEDS = GIVEN ?? (LONG ? Array.from({ length: 200 }, (_, at) => at + 1) : [1, 3]);
const ROUNDS = LONG ? 3 : 1;
const STEPS = LONG ? 120 : 80;
const SECOND_MS = 1000;
const SETTLE_MS = 90_000;

/** Pods that were placed by shards, in all worlds. */
let byShards = 0;

for (const seed of SEEDS) {
  test(`no law is broken and nothing is forgotten in sharded world ${seed}`, async () => {
    const cluster = new Cluster(seed, true);
    const { world, laws, schedulers } = cluster;
    const found = new Map<object, number>();
    for (let round = 0; round < ROUNDS; round++) {
      world.isCalm = false;
      for (let step = 0; step < STEPS && world.faults.length === 0; step++) {
        cluster.disturb();
        await world.runUntil(world.nowMs + world.random.below(800));
        for (const { shards } of schedulers) {
          if (shards !== null) found.set(shards, shards.host.counts.outcomes.found);
        }
      }
      world.calmDown();
      await world.runUntil(world.nowMs + SETTLE_MS);
      const before = new Set(laws.forgotten());
      await world.runUntil(world.nowMs + 20 * SECOND_MS);
      const after = laws.forgotten().filter((text) => before.has(text));
      assert.deepEqual([...world.faults, ...after], [], `round ${round}`);
      const isTold = schedulers.every(
        ({ shards }) => shards === null || !shards.host.isThere || shards.host.isReady,
      );
      assert.ok(isTold, 'shards that are there know all in the end');
    }
    assert(laws.bound > 0, 'no pod was bound');
    byShards += [...found.values()].reduce((sum, one) => sum + one, 0);
  });
}

test('shards placed pods in these worlds', () => {
  // what was decided without them proves nothing
  assert(byShards > 3 * SEEDS.length, `only ${byShards} pods were placed by shards`);
});
