// shell: reads the arguments, prints, and tells the processor time that it took
/**
 * A week of a cluster with a thousand nodes, quiet and then rough, on simulated time:
 *
 *     node packages/cli/test/cluster-week.sim.ts [--seed 7] [--nodes 1000] [--days 7] [--only rough]
 *
 * Ends with 0 where every invariant held and both weeks came to the same end. With `--only` there is
 * one of them, and nothing to compare it with.
 */
import assert from 'node:assert/strict';
import { parseArgs } from 'node:util';
import { live } from './cluster-life.ts';

const DAY_MS = 86_400_000;
const DEED_MS = 300_000;

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: process.env['MEGAPLANE_SEED'] ?? '7' },
    nodes: { type: 'string', default: '1000' },
    days: { type: 'string', default: '7' },
    only: { type: 'string', default: '' },
  },
});
const seed = Number(values.seed);
const nodes = Number(values.nodes);
const deeds = Math.round((Number(values.days) * DAY_MS) / DEED_MS);

function processorSeconds(): string {
  const { user, system } = process.cpuUsage();
  return `${((user + system) / 1e6).toFixed(0)} s of processor`;
}

async function week(isQuiet: boolean): Promise<readonly string[]> {
  const kind = isQuiet ? 'quiet' : 'rough';
  const lived = (count: number): void => {
    const days = (count * DEED_MS) / DAY_MS;
    if (Number.isInteger(4 * days)) console.log(`${kind} day ${days}: ${processorSeconds()}`);
  };
  return live({
    ...{ seed, isQuiet, nodes, deeds, lived, deedMs: DEED_MS },
    renewMs: 600_000,
    restMs: DAY_MS / 6,
    checkedDeeds: 12,
  });
}

console.log(`seed ${seed}, ${nodes} nodes, ${deeds} deeds`);
const weeks = [true, false].filter(
  (isQuiet) => values.only === '' || isQuiet === (values.only === 'quiet'),
);
const ends: (readonly string[])[] = [];
for (const isQuiet of weeks) ends.push(await week(isQuiet));
for (const end of ends) assert.deepEqual(end, ends[0], `seed ${seed}`);
console.log(`${ends[0]?.length} objects at the end of each; ${processorSeconds()}`);
