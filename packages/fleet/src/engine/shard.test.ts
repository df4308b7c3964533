import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { textsOf } from './amounts.ts';
import { type Cycle, SHARD_DEFAULTS, Shard } from './shard.ts';
import { RandomWorld } from './worlds.sim.ts';

const IS_LONG = process.env['MEGAPLANE_LONG'] !== undefined;

/** What a cycle says, without what only dense or only plain phases tell. */
function told(cycle: Cycle): object {
  const actions = cycle.actions.map(({ machine, profile, ...action }) => {
    return [machine.id, profile?.fingerprint ?? '', action];
  });
  return {
    all: actions.map((action) => JSON.stringify(action)).toSorted(),
    others: actions.filter((_, at) => !isAcquisition(cycle, at)),
    withheld: cycle.withheld.map(({ machine }) => machine.id),
    shortfalls: cycle.shortfalls.map(({ profile, deficit, age }) => {
      return [profile.fingerprint, textsOf(deficit), age];
    }),
    hints: cycle.hints
      .map(({ cluster, profile, ...hint }) => JSON.stringify([cluster, profile.fingerprint, hint]))
      .toSorted(),
  };
}

function isAcquisition(cycle: Cycle, at: number): boolean {
  const kind = cycle.actions[at]?.kind;
  return kind === 'Bootstrap' || kind === 'Provision';
}

test('a cycle that looks at what changed decides what one from nothing does', () => {
  for (let seed = 1; seed <= (IS_LONG ? 20_000 : 60); seed++) {
    const world = new RandomWorld(new Random(seed));
    const dense = new Shard({ ...SHARD_DEFAULTS, checkEachCycles: 3 });
    const full = new Shard(SHARD_DEFAULTS);
    const plain = new Shard({ ...SHARD_DEFAULTS, phases: 'plain' });
    for (let step = 0; step < 14; step++) {
      world.step([dense, full, plain]);
      const cycle = dense.cycle(world.nowSeconds);
      const wanted = told(plain.cycle(world.nowSeconds));
      assert.deepEqual(told(cycle), wanted, `seed ${seed}, step ${step}: dense`);
      const anew = full.cycle(world.nowSeconds, { isFull: true });
      assert.deepEqual(told(anew), wanted, `seed ${seed}, step ${step}: from nothing`);
      world.carryOut(cycle.actions);
    }
  }
});
