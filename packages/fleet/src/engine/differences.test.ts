import assert from 'node:assert/strict';
import { test } from 'node:test';
import { amountsOf } from './amounts.ts';
import { BETTER, type Differences, STRICT } from './differences.ts';
import { type Machine, NO_STAMP } from './machine.ts';
import { profileOf } from './profile.ts';
import { SHARD_DEFAULTS, Shard } from './shard.ts';

interface World {
  readonly cluster: string;
  readonly instanceType: string;
  readonly priority: number;
  readonly stamped: number;
}

/** One row of two machines; one machine, stamped with a lower priority. */
function victims(differences: Differences, world: World): readonly string[] {
  const shard = new Shard({ ...SHARD_DEFAULTS, differences });
  const machine: Machine = {
    ...{ id: 'a', state: 'Configured', cluster: world.cluster, zone: 'z', price: 1 },
    ...{ instanceType: world.instanceType, capacityType: 'OnDemand', labels: new Map() },
    ...{ allocatable: amountsOf({ cpu: '4' }), interruptionProbability: 0, idleSince: 0 },
    stamp: { ...NO_STAMP, priority: world.stamped },
  };
  shard.inventory.put(machine, 0);
  const fields = { requirements: [], spread: [], priority: world.priority } as const;
  const profile = profileOf({ ...fields, interruptionBucket: 0, reclamationBucket: 0 });
  const need = { profile, aggregate: { cpu: '8' }, minUnit: {}, group: '' };
  shard.rollup({ cluster: 'c', time: 0, needs: [need] });
  return shard.cycle(0).actions.map(({ kind, machine: { id }, graceSeconds }) => {
    return `${kind} ${id} ${graceSeconds}`;
  });
}

const BASE: World = { cluster: 'other', instanceType: 'm', priority: 1000, stamped: 100 };

test('a row does not drive itself out of what it was credited', () => {
  const own = { ...BASE, cluster: 'c' };
  assert.deepEqual(victims(STRICT, own), ['Preempt a 600']);
  assert.deepEqual(victims(BETTER, own), []);
  assert.deepEqual(victims({ ...STRICT, sparesCredited: true }, own), []);
  assert.deepEqual(victims(BETTER, BASE), ['Preempt a 600']);
});

test('the larger the gap of priorities, the shorter the grace, beyond 32 bits too', () => {
  const far = { ...BASE, priority: 2_000_000_000, stamped: -2_000_000_000 };
  assert.deepEqual(victims(STRICT, far), ['Preempt a 600']);
  assert.deepEqual(victims({ ...STRICT, wholeGaps: true }, far), ['Preempt a 10']);
});

test('a machine without a type hides no victim', () => {
  const untyped = { ...BASE, instanceType: '' };
  assert.deepEqual(victims(STRICT, untyped), []);
  assert.deepEqual(victims({ ...STRICT, untypedVictims: true }, untyped), ['Preempt a 600']);
});
