/** The laws of the better engine, over random worlds; each failure names its seed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { type Amounts, add, covers, NO_AMOUNTS, subtract } from './amounts.ts';
import { ClosedLoop } from './closed-loop.sim.ts';
import { BETTER, STRICT } from './differences.ts';
import { attributeOf, matches } from './machine.ts';
import { sameKeyOf } from './profile.ts';
import type { Row } from './row.ts';
import type { Cycle } from './shard.ts';

const IS_LONG = process.env['MEGAPLANE_LONG'] !== undefined;
const WORLDS = IS_LONG ? Number(process.env['FLEET_WORLDS'] ?? 2000) : 25;
const CALM_CYCLES = 90;
const LAST_CYCLES = 20;

/** No machine is counted for two rows, and none that is not bound, on its way, or taken now. */
function noDoubleCredit(cycle: Cycle, where: string): void {
  const seen = new Set<string>();
  for (const { verdict } of cycle.views) {
    for (const { id, state } of verdict.claimed) {
      assert.ok(!seen.has(id), `${where}: ${id} is counted twice`);
      seen.add(id);
      assert.ok(state !== 'Draining' && state !== 'Deleting' && state !== 'Failed', where);
    }
  }
}

/** Who is driven out matters less, and is in use for nobody who matters as much. */
function priorityOrder(cycle: Cycle, where: string): void {
  const halves = new Set<string>();
  for (const { verdict } of cycle.views) {
    const { row, claimed, deficit } = verdict;
    if (sameKeyOf(row.profile) === undefined || subtract(deficit, NO_AMOUNTS).size === 0) continue;
    for (const { id } of claimed) halves.add(id);
  }
  for (const { kind, machine, preemptorPriority = 0 } of cycle.actions) {
    // what a gang has that cannot be whole is of no use
    if (kind !== 'Preempt' || halves.has(machine.id)) continue;
    assert.ok(machine.stamp.priority < preemptorPriority, `${where}: ${machine.id} matters more`);
    for (const { verdict } of cycle.views) {
      if (verdict.row.profile.priority < preemptorPriority) continue;
      assert.ok(!verdict.claimed.some(({ id }) => id === machine.id), `${where}: own machine`);
    }
  }
}

/** At most the configured share of a cluster is given up in one cycle, and one at least. */
function rails(
  loop: ClosedLoop,
  cycle: Cycle,
  configured: Map<string, number>,
  where: string,
): void {
  const counts = new Map<string, number>();
  for (const { kind, cluster } of cycle.actions) {
    if (kind === 'Reclaim') counts.set(cluster, (counts.get(cluster) ?? 0) + 1);
  }
  for (const [cluster, count] of counts) {
    const limit = Math.max(1, Math.floor(0.05 * (configured.get(cluster) ?? 0)));
    assert.ok(count <= limit, `${where}: ${count} of ${cluster} at ${loop.nowSeconds}`);
  }
}

/** A gang takes all that it lacks, or nothing. */
function wholeGangs(cycle: Cycle, where: string): void {
  for (const { verdict } of cycle.views) {
    const { row, claimed } = verdict;
    if (sameKeyOf(row.profile) === undefined) continue;
    const fresh = claimed.filter(({ state }) => state === 'Idle' || state === 'Speculative');
    if (fresh.length === 0) continue;
    const sum = claimed.reduce((total, { allocatable }) => add(total, allocatable), NO_AMOUNTS);
    assert.ok(covers(sum, row.aggregate), `${where}: a gang takes a part`);
  }
}

function configuredOf(loop: ClosedLoop): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { state, cluster } of loop.shard.inventory.machines) {
    if (state === 'Configured') counts.set(cluster, (counts.get(cluster) ?? 0) + 1);
  }
  return counts;
}

test('in random worlds with delays and failures no law is broken at any cycle', () => {
  for (let seed = 1; seed <= WORLDS; seed++) {
    const random = new Random(seed);
    const loop = new ClosedLoop(random, { differences: BETTER, delayMax: 4, failures: 0.05 });
    for (let step = 0; step < 40; step++) {
      const where = `seed ${seed}, cycle ${step}`;
      if (random.below(5) === 0) loop.demand(['c1', 'c2', 'c3'][random.below(3)] ?? 'c1');
      const configured = configuredOf(loop);
      const cycle = loop.step();
      noDoubleCredit(cycle, where);
      priorityOrder(cycle, where);
      rails(loop, cycle, configured, where);
      wholeGangs(cycle, where);
    }
  }
});

/** Actions of the last cycles, once demand has stood still for long. */
function restless(seed: number, differences: typeof BETTER): string[] {
  const random = new Random(seed);
  const loop = new ClosedLoop(random, { differences, delayMax: 3, failures: 0 });
  for (let step = 0; step < 10; step++) {
    if (random.below(3) === 0) loop.demand(['c1', 'c2', 'c3'][random.below(3)] ?? 'c1');
    loop.step();
  }
  const late: string[] = [];
  for (let step = 0; step < CALM_CYCLES; step++) {
    const { actions } = loop.step();
    if (step < CALM_CYCLES - LAST_CYCLES) continue;
    late.push(...actions.map(({ kind, machine }) => `${step} ${kind} ${machine.id}`));
  }
  return late;
}

test('at constant demand everything comes to rest, in whatever order rows come', () => {
  const restlessWorlds: string[] = [];
  for (let seed = 1; seed <= WORLDS; seed++) {
    const late = restless(seed, BETTER);
    if (late.length > 0) restlessWorlds.push(`seed ${seed}: ${late.slice(0, 4).join('; ')}`);
  }
  assert.deepEqual(restlessWorlds, []);
});

test('the reference does not come to rest in each of them: the worlds can tell', () => {
  const seeds = Array.from({ length: 200 }, (_, at) => at + 1);
  assert.ok(seeds.some((seed) => restless(seed, STRICT).length > 0));
});

test('what is lacking and could be had is had in the end', () => {
  for (let seed = 1; seed <= WORLDS; seed++) {
    const random = new Random(seed);
    const loop = new ClosedLoop(random, { differences: BETTER, delayMax: 2, failures: 0.1 });
    let cycle = loop.step();
    for (let step = 0; step < 60; step++) cycle = loop.step();
    for (const { verdict, unmet } of cycle.views) {
      if (unmet === undefined || sameKeyOf(verdict.row.profile) !== undefined) continue;
      const { idle, speculative } = unmet.supply;
      const left = subtract(verdict.deficit, NO_AMOUNTS);
      const lacks = `${[...left.keys()].join()} lacking, ${idle} idle, ${speculative} slots`;
      // whoever lacks something has nothing left to take but what others took before it
      const taken = cycle.actions.filter(
        ({ kind }) => kind === 'Bootstrap' || kind === 'Provision',
      );
      assert.ok(idle + speculative <= taken.length + loop.busy, `seed ${seed}: ${lacks}`);
    }
  }
});

/** What is free in one domain for the machines of one row, in all. */
function freeFor(loop: ClosedLoop, row: Row, key: string, domain: string): Amounts {
  let sum: Amounts = NO_AMOUNTS;
  for (const machine of loop.shard.inventory.machines) {
    const isFree = machine.state === 'Idle' || machine.state === 'Speculative';
    const isThere = isFree && attributeOf(machine, key) === domain;
    if (!isThere || !matches(row.profile, machine)) continue;
    if (covers(machine.allocatable, row.minUnit)) sum = add(sum, machine.allocatable);
  }
  return sum;
}

test('a gang that one domain could hold with what is free is not left waiting', () => {
  for (let seed = 1; seed <= WORLDS; seed++) {
    const random = new Random(seed);
    const loop = new ClosedLoop(random, { differences: BETTER, delayMax: 2, failures: 0.1 });
    let cycle = loop.step();
    for (let step = 0; step < 60; step++) cycle = loop.step();
    if (loop.busy > 0 || cycle.actions.length > 0) continue;
    for (const { verdict } of cycle.views) {
      const { row, deficit, parked } = verdict;
      const key = sameKeyOf(row.profile);
      if (key === undefined || parked || subtract(deficit, NO_AMOUNTS).size === 0) continue;
      for (const domain of ['r1', 'r2', 'r3', 'a', 'b']) {
        const free = freeFor(loop, row, key, domain);
        assert.ok(!covers(free, row.aggregate), `seed ${seed}: ${row.group} fits ${domain}`);
      }
    }
  }
});
