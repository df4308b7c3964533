import { INSTANCE_TYPE_KEY } from '../contract/api.ts';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { amountsOf } from './amounts.ts';
import { BETTER, type Differences, STRICT } from './differences.ts';
import { type Machine, NO_STAMP } from './machine.ts';
import type { NeedMessage } from './need-message.ts';
import { Operator, profileOf, WhenUnsatisfiable } from './profile.ts';
import type { Profile, Requirement } from './profile.ts';
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

interface Told {
  readonly id: string;
  readonly state?: Machine['state'];
  readonly cluster?: string;
  readonly type?: string;
  readonly cores?: number;
  readonly price?: number;
  readonly rack?: string;
  readonly stamp?: Partial<Machine['stamp']>;
}

function machineOf(told: Told): Machine {
  const { id, state = 'Idle', cluster = '', type = 'm', cores = 4, price = 1, rack } = told;
  return {
    ...{ id, state, cluster, instanceType: type, zone: 'z', capacityType: 'OnDemand', price },
    labels: new Map(rack === undefined ? [] : [['rack', rack]]),
    ...{ allocatable: amountsOf({ cpu: `${cores}` }), interruptionProbability: 0, idleSince: 0 },
    stamp: { ...NO_STAMP, ...told.stamp },
  };
}

interface Wish {
  readonly cpu: number;
  readonly priority?: number;
  readonly types?: readonly string[];
  readonly same?: boolean;
  readonly spread?: boolean;
}

function needOf({ cpu, priority = 100, types, same = false, spread = false }: Wish): NeedMessage {
  const requirements: Requirement[] = [];
  if (types !== undefined) {
    requirements.push({ key: INSTANCE_TYPE_KEY, operator: Operator.IN, values: types });
  }
  if (same) requirements.push({ key: 'rack', operator: Operator.SAME, values: [] });
  const { DO_NOT_SCHEDULE: whenUnsatisfiable } = WhenUnsatisfiable;
  const spreads = spread ? [{ topologyKey: 'rack', maxSkew: 1, whenUnsatisfiable }] : [];
  const buckets = { interruptionBucket: 0, reclamationBucket: 0 } as const;
  const profile = profileOf({ requirements, spread: spreads, priority, ...buckets });
  const aggregate = { cpu: `${cpu}` };
  return { profile, aggregate, minUnit: { cpu: '1' }, group: same ? 'g' : '' };
}

/** Actions of a first cycle with one difference, or with none. */
function actions(
  name: keyof Differences | null,
  machines: readonly Told[],
  wishes: readonly Wish[],
): string[] {
  const differences = name === null ? STRICT : { ...STRICT, [name]: true };
  const shard = new Shard({ ...SHARD_DEFAULTS, differences });
  for (const told of machines) shard.inventory.put(machineOf(told), 0);
  shard.rollup({ cluster: 'c', time: 0, needs: wishes.map(needOf) });
  return shard.cycle(0).actions.map(({ kind, machine }) => `${kind} ${machine.id}`);
}

test('rows get the machines that were bound for them, in whatever order they come', () => {
  const wide = needOf({ cpu: 4, types: ['m', 'n'] });
  const narrow = needOf({ cpu: 4, types: ['n'] });
  const bound = { state: 'Configured', cluster: 'c' } as const;
  const fingerprintOf = ({ profile }: NeedMessage): string => (profile as Profile).fingerprint;
  const machines: readonly Told[] = [
    { id: 'a', type: 'n', ...bound, stamp: { fingerprint: fingerprintOf(narrow) } },
    { id: 'b', type: 'm', price: 2, ...bound, stamp: { fingerprint: fingerprintOf(wide) } },
    { id: 'c', type: 'n' },
  ];
  const wishes: readonly Wish[] = [
    { cpu: 4, types: ['m', 'n'] },
    { cpu: 4, types: ['n'] },
  ];
  assert.deepEqual(actions(null, machines, wishes), ['Bootstrap c', 'Reclaim b']);
  assert.deepEqual(actions('ownFirst', machines, wishes), []);
  assert.deepEqual(actions('steadyOrder', machines, wishes), []);
});

test('a gang takes all that it lacks or nothing, and drives out for no part', () => {
  const racks: readonly Told[] = [
    { id: 'a', rack: 'r' },
    { id: 'b', rack: 'r' },
  ];
  const gang: Wish = { cpu: 12, same: true };
  assert.deepEqual(actions(null, racks, [gang]), ['Bootstrap a', 'Bootstrap b']);
  assert.deepEqual(actions('wholeGangs', racks, [gang]), []);
  assert.deepEqual(actions('wholeGangs', racks, [{ ...gang, cpu: 8 }]).length, 2);
  const victim = { state: 'Configured', cluster: 'other', stamp: { priority: 1 } } as const;
  const taken: readonly Told[] = [
    { id: 'a', rack: 'r' },
    { id: 'b', rack: 'r', ...victim },
  ];
  assert.deepEqual(actions(null, taken, [gang]), ['Bootstrap a', 'Preempt b']);
  assert.deepEqual(actions('wholeGangs', taken, [gang]), []);
});

test('while a victim drains nobody else is driven out for the same need', () => {
  for (const [creditsDraining, victims] of [
    [false, 3],
    [true, 1],
  ] as const) {
    const shard = new Shard({ ...SHARD_DEFAULTS, differences: { ...STRICT, creditsDraining } });
    const victim = { state: 'Configured', cluster: 'other', stamp: { priority: 1 } } as const;
    for (const id of ['a', 'b', 'c']) shard.inventory.put(machineOf({ id, ...victim }), 0);
    shard.rollup({ cluster: 'c', time: 0, needs: [needOf({ cpu: 4 })] });
    let count = 0;
    for (let cycle = 0; cycle < 5; cycle++) {
      for (const { kind, machine } of shard.cycle(cycle * 10).actions) {
        if (kind !== 'Preempt') continue;
        count++;
        shard.inventory.put({ ...machine, state: 'Draining' }, cycle * 10);
      }
    }
    assert.equal(count, victims);
  }
});

test('machines are judged by what the whole set costs', () => {
  const machines: readonly Told[] = [
    ...['a', 'b', 'c', 'd'].map((id) => ({ id, cores: 2, price: 0.1 })),
    { id: 'e', cores: 8, price: 0.3 },
  ];
  assert.equal(actions(null, machines, [{ cpu: 8 }]).length, 4);
  assert.deepEqual(actions('cheapestCover', machines, [{ cpu: 8 }]), ['Bootstrap e']);
  // nobody offers it: nothing is taken for it
  const graphics = { ...needOf({ cpu: 1 }), aggregate: { 'nvidia.com/gpu': '1' } };
  for (const [cheapestCover, count] of [
    [false, 1],
    [true, 0],
  ] as const) {
    const shard = new Shard({ ...SHARD_DEFAULTS, differences: { ...STRICT, cheapestCover } });
    shard.inventory.put(machineOf({ id: 'a' }), 0);
    shard.rollup({ cluster: 'c', time: 0, needs: [graphics] });
    assert.equal(shard.cycle(0).actions.length, count);
  }
});

test('spread counts what a row has', () => {
  const bound = { state: 'Configured', cluster: 'c', rack: 'r1' } as const;
  const machines: readonly Told[] = [
    { id: 'a', ...bound },
    { id: 'b', rack: 'r1' },
    { id: 'c', rack: 'r2', price: 2 },
  ];
  const wish: Wish = { cpu: 8, spread: true };
  assert.deepEqual(actions(null, machines, [wish]), ['Bootstrap b']);
  assert.deepEqual(actions('countsSpread', machines, [wish]), ['Bootstrap c']);
});

test('an amount beyond all numbers is refused nothing, and gets nothing', () => {
  const shard = new Shard({ ...SHARD_DEFAULTS, differences: BETTER });
  shard.inventory.put(machineOf({ id: 'a' }), 0);
  shard.inventory.put(machineOf({ id: 'b' }), 0);
  const huge = { ...needOf({ cpu: 1, priority: 1 }), minUnit: { cpu: '9E' } };
  shard.rollup({ cluster: 'c', time: 0, needs: [needOf({ cpu: 4 }), huge] });
  const { actions: all, shortfalls } = shard.cycle(0);
  assert.deepEqual(
    all.map(({ machine }) => machine.id),
    ['a'],
  );
  assert.equal(shortfalls.length, 1);
});
