/** Members of a group on a journal that does what journals may do, by seeds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Group } from './group.sim.ts';

const IS_LONG = process.env['MEGAPLANE_LONG'] === '1';
const SEEDS = IS_LONG ? 10_000 : 15;
const STEPS = 1200;
const FIRST = Number(process.env['MEGAPLANE_SEED'] ?? 1);

test('whatever happens, nobody is told what another one is not', async (t) => {
  let acknowledged = 0;
  let crashes = 0;
  let epochs = 0;
  let overlaps = 0;
  for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
    const group = new Group(seed);
    try {
      for (let step = 0; step < STEPS; step++) await group.step();
      await group.heal();
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
    acknowledged += group.acknowledged;
    crashes += group.crashes;
    overlaps += group.overlaps;
    epochs += group.epochs.size;
  }
  const both = `${overlaps} steps with two leaders`;
  const counts = `${acknowledged} writes, ${crashes} crashes, ${epochs} epochs, ${both}`;
  t.diagnostic(`${SEEDS} seeds: ${counts}`);
  assert(acknowledged > SEEDS * 5 && epochs > SEEDS && overlaps > SEEDS, 'the runs do too little');
});
