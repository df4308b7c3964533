import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { stateWord } from './machine-words.ts';
import { World, planOf } from './world.sim.ts';

const MACHINES = 12;
const CPU_EACH = 4;
const CLUSTERS = ['c1', 'c2', 'c3'];

/** Demand stays as it is and nothing is lost any more: all that is wanted is there, and no more. */
function settles(world: World): void {
  world.faults = { delayMs: 50, lost: 0, twice: 0 };
  for (const name of CLUSTERS) world.connect(name);
  world.run(world.nowMs + 300_000, () => {});
  for (const name of CLUSTERS) {
    const wanted = Math.ceil((world.clusters.get(name)?.cpu ?? 0) / CPU_EACH);
    assert.equal(world.boundTo(name), wanted, `machines of ${name}`);
  }
  const seen = [...world.core.machines.inventory.machines];
  const shown = new Map(seen.map(({ id, state, cluster }) => [id, `${state} ${cluster}`]));
  for (const { id, state, cluster } of world.truth) {
    assert.equal(shown.get(id), `${stateWord(state)} ${cluster}`, `machine ${id}`);
  }
  const calls = (): number =>
    [...world.core.counts.actions.values.values()].reduce((a, b) => a + b, 0);
  const before = calls();
  world.run(world.nowMs + 60_000, () => {});
  assert.equal(calls(), before, 'nothing is done where nothing changes');
  assert.deepEqual([world.core.actuator.inFlight, world.core.actuator.queued], [0, 0]);
}

type Step =
  | { readonly kind: 'ask'; readonly cluster: number; readonly machines: number }
  | { readonly kind: 'connect'; readonly cluster: number }
  | { readonly kind: 'restart' }
  | { readonly kind: 'wait'; readonly ms: number };

const cluster = fc.nat({ max: CLUSTERS.length - 1 });
const STEP: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('ask' as const), cluster, machines: fc.nat({ max: 4 }) }),
  fc.record({ kind: fc.constant('connect' as const), cluster }),
  fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 20_000 }) }),
  fc.record({ kind: fc.constant('restart' as const) }),
);

function play(world: World, steps: readonly Step[]): void {
  for (const name of CLUSTERS) world.connect(name);
  for (const step of steps) {
    if (step.kind === 'wait') world.run(world.nowMs + step.ms, () => {});
    else if (step.kind === 'restart') world.restart();
    else {
      const name = CLUSTERS[step.cluster] ?? '';
      if (step.kind === 'ask') world.ask(name, step.machines * CPU_EACH);
      else world.connect(name);
    }
  }
}

test('late, lost, doubled and reordered words count nothing twice, and the fleet settles', () => {
  fc.assert(
    fc.property(fc.nat(), fc.array(STEP, { maxLength: 25 }), (seed, steps) => {
      const world = new World(seed, planOf(MACHINES));
      world.faults = { delayMs: 3000, lost: 0.15, twice: 0.3 };
      play(world, steps);
      settles(world);
      for (const refusal of world.refusals) {
        // the shard before the last restart is fenced, and late calls of it come to nothing
        assert.doesNotMatch(refusal, /is bound to/);
      }
    }),
    { seed: 7, numRuns: 150 },
  );
});

test('where nothing is lost, a provider is never asked for what it must refuse', () => {
  const step = STEP.filter(({ kind }) => kind !== 'restart');
  fc.assert(
    fc.property(fc.nat(), fc.array(step, { maxLength: 25 }), (seed, steps) => {
      const world = new World(seed, planOf(MACHINES));
      world.faults = { delayMs: 3000, lost: 0, twice: 0.3 };
      play(world, steps);
      settles(world);
      assert.deepEqual(world.refusals, []);
    }),
    { seed: 8, numRuns: 100 },
  );
});
