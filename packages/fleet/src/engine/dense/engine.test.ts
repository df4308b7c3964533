import assert from 'node:assert/strict';
import { test } from 'node:test';
import { amountsOf } from '../amounts.ts';
import { type Machine, NO_STAMP } from '../machine.ts';
import { Operator, type Profile, profileOf } from '../profile.ts';
import { type Cycle, SHARD_DEFAULTS, Shard } from '../shard.ts';

const RACK = 'topology.bigfleet/rack';
const gang: Profile = profileOf({
  requirements: [{ key: RACK, operator: Operator.SAME, values: [] }],
  ...{ spread: [], priority: 100, interruptionBucket: 0, reclamationBucket: 0 },
});

function machine(id: string, rack: string, cpu: string): Machine {
  return {
    ...{ id, state: 'Configured', cluster: 'c', instanceType: 'm', zone: 'z' },
    ...{
      capacityType: 'OnDemand',
      labels: new Map([[RACK, rack]]),
      allocatable: amountsOf({ cpu }),
    },
    ...{ price: 1, interruptionProbability: 0, stamp: NO_STAMP, idleSince: 0 },
  };
}

/** A cluster whose gang has all it wants in one rack, and is looked at no more. */
function settled(): Shard {
  const shard = new Shard(SHARD_DEFAULTS);
  for (const id of ['a', 'b']) shard.inventory.put(machine(id, 'r1', '4'), 0);
  const need = { profile: gang, aggregate: { cpu: '8' }, minUnit: { cpu: '4' }, group: 'g' };
  shard.rollup({ cluster: 'c', time: 0, needs: [need] });
  assert.deepEqual(actionsOf(shard.cycle(0)), []);
  assert.equal(shard.cycle(1).clustersVisited, 0);
  return shard;
}

function actionsOf({ actions }: Cycle): readonly string[] {
  return actions.map(({ kind, machine: { id } }) => `${kind} ${id}`);
}

test('a gang that rests folds once some machine could hold it whole', () => {
  const shard = settled();
  const big = { ...machine('big', 'r2', '8'), state: 'Idle' as const, cluster: '' };
  shard.inventory.put(big, 2);
  const cycle = shard.cycle(2);
  assert.deepEqual(actionsOf(cycle), ['Bootstrap big', 'Reclaim a']);
});

test('a gang that rests looks up when a machine is made for it elsewhere', () => {
  const shard = settled();
  const stamp = { ...NO_STAMP, fingerprint: gang.fingerprint, group: 'g' };
  for (const id of ['x', 'y']) {
    const made = { ...machine(id, 'r2', '4'), state: 'Creating' as const, cluster: '', stamp };
    shard.inventory.put(made, 2);
  }
  assert.deepEqual(actionsOf(shard.cycle(2)), ['Reclaim a']);
});

test('a roll-up that says what the last one said wakes nobody', () => {
  const shard = settled();
  const need = { profile: gang, aggregate: { cpu: '8' }, minUnit: { cpu: '4000m' }, group: 'g' };
  shard.rollup({ cluster: 'c', time: 5, needs: [need] });
  assert.equal(shard.cycle(5).clustersVisited, 0);
});
