/** Providers that lie, clocks that jump, operators and shards that there are twice. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { clone, create } from '@bufbuild/protobuf';
import { HostRefSchema, MachineSchema } from '../contract/tables/provider.ts';
import type { Machine, MachineState as State } from '../contract/tables/provider.ts';
import { BETTER } from '../engine/differences.ts';
import { ENGINE, World, planOf } from './world.sim.ts';

const MACHINES = 8;
const DAY_MS = 86_400_000;
const PLAN = { ...planOf(MACHINES), engine: { ...ENGINE, differences: BETTER } };

function worldOf(seed: number, asked: Readonly<Record<string, number>>): World {
  const world = new World(seed, PLAN);
  world.faults = { delayMs: 100, lost: 0, twice: 0 };
  for (const [name, machines] of Object.entries(asked)) {
    world.connect(name);
    world.ask(name, machines * 4);
  }
  return world;
}

function actionsOf(world: World): number {
  return [...world.core.counts.actions.values.values()].reduce((a, b) => a + b, 0);
}

/** What a List says of one machine that is not so. */
const LIE = fc.oneof(
  fc.constantFrom(NaN, -1, Infinity, -Infinity, 1e308).map((price) => ({ pricePerHour: price })),
  fc.constantFrom(NaN, -0.1, 1.1, 2e9).map((share) => ({ interruptionProbability: share })),
  fc.constantFrom(0, 2, 3, 4, 5, 6, 7, 8, 99, -1).map((state) => ({ state: state as State })),
  fc.constantFrom('', 'c1', 'c2', 'nobody', '\0').map((cluster) => ({ cluster })),
  fc.constantFrom('-4', 'four', '').map((cpu) => ({
    resources: { $typeName: 'bigfleet.v1alpha1.Resources' as const, resources: { cpu } },
  })),
  fc.constantFrom('', 'm4-a-ondemand-1', '../..').map((id) => ({ id })),
  fc.constantFrom('__proto__', 'x8').map((instanceType) => ({ instanceType })),
  fc.constant({ host: create(HostRefSchema, { provider: '', ref: '' }) }),
  fc.constant('gone' as const),
);

type Lies = ReadonlyMap<number, Partial<Machine> | 'gone'>;

function lied(machines: readonly Machine[], lies: Lies): Machine[] {
  return machines.flatMap((machine, at) => {
    const lie = lies.get(at);
    if (lie === 'gone') return [];
    return [Object.assign(clone(MachineSchema, machine), lie)];
  });
}

test('once a provider does not lie any more, clusters have what they want', () => {
  const told = fc.array(fc.tuple(fc.nat({ max: MACHINES - 1 }), LIE), { maxLength: 5 });
  fc.assert(
    fc.property(fc.nat(), fc.array(told, { minLength: 1, maxLength: 8 }), (seed, rounds) => {
      const world = worldOf(seed, { c1: 3, c2: 2 });
      for (const lies of rounds) {
        const map: Lies = new Map(lies);
        world.lie = (machines) => lied(machines, map);
        world.run(world.nowMs + 3000, () => {});
        for (const machine of world.core.machines.inventory.machines) {
          assert.ok(machine.price >= 0 && machine.interruptionProbability <= 1, machine.id);
        }
      }
      world.lie = (machines) => machines;
      world.run(world.nowMs + 400_000, () => {});
      assert.equal(world.boundTo('c1'), 3);
      assert.equal(world.boundTo('c2'), 2);
      const before = actionsOf(world);
      world.run(world.nowMs + 60_000, () => {});
      assert.equal(actionsOf(world), before);
    }),
    { seed: 3, numRuns: 60 },
  );
});

test('clocks of clusters that jump by years move nothing', () => {
  const world = worldOf(1, { c1: 4, c2: 6 });
  world.run(60_000, () => {});
  const before = [actionsOf(world), world.boundTo('c1'), world.boundTo('c2')];
  for (const years of [10, -10, 0, -60, 90]) {
    world.clockGapMs = years * 365 * DAY_MS;
    for (const [name, { needs }] of world.clusters) world.demand(name, needs);
    world.run(world.nowMs + 30_000, () => {});
  }
  assert.deepEqual([actionsOf(world), world.boundTo('c1'), world.boundTo('c2')], before);
});

test('a shard that slept for a day while machines joined goes on', () => {
  const world = worldOf(1, { c1: 5 });
  world.faults = { delayMs: 3000, lost: 0.2, twice: 0.2 };
  for (let nap = 0; nap < 5; nap++) {
    world.run(world.nowMs + 2500, () => {});
    world.nowMs += DAY_MS;
  }
  world.faults = { delayMs: 100, lost: 0, twice: 0 };
  world.run(world.nowMs + 300_000, () => {});
  assert.equal(world.boundTo('c1'), 5);
});

test('two operators that speak for one cluster in turns move nothing', () => {
  const world = worldOf(1, { c1: 4 });
  world.run(60_000, () => {});
  const before = actionsOf(world);
  for (let turn = 0; turn < 100; turn++) {
    world.connect('c1');
    world.run(world.nowMs + 700, () => {});
  }
  assert.equal(actionsOf(world), before);
  assert.equal(world.boundTo('c1'), 4);
});

test('two shards of one domain give each cluster what it wants, and no more', () => {
  for (let seed = 1; seed <= 4; seed++) {
    const world = worldOf(seed, { c1: 3 });
    world.faults = { delayMs: 2000, lost: 0.1, twice: 0.2 };
    world.run(5000, () => {});
    world.beginTwin('s2');
    world.connect('c2');
    world.ask('c2', 12);
    world.run(60_000, () => {});
    world.faults = { delayMs: 100, lost: 0, twice: 0 };
    world.run(400_000, () => {
      const ours = [world.boundTo('c1'), world.boundTo('c2')];
      assert.ok(ours[0] !== undefined && ours[1] !== undefined && ours[0] + ours[1] <= MACHINES);
    });
    assert.deepEqual([world.boundTo('c1'), world.boundTo('c2')], [3, 3], `seed ${seed}`);
  }
});

test('a price that changes while its machine waits is taken', () => {
  const world = worldOf(1, { c1: 1 });
  world.run(10_000, () => {});
  world.lie = (machines) => machines.map((machine) => ({ ...machine, pricePerHour: 7 }));
  world.run(20_000, () => {});
  const prices = [...world.core.machines.inventory.machines].map(({ price }) => price);
  assert.deepEqual(new Set(prices), new Set([7]));
  assert.equal(world.boundTo('c1'), 1);
});
