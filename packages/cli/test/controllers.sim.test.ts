/**
 * An API server, its store, all controllers and a fleet of nodes in one process, under one seeded
 * clock, on a quiet and on a rough day: afterwards everything must be as the specifications say,
 * and the same after the same deeds.
 *
 * A failure names its seed; `MEGAPLANE_SEED=n` plays it again. With MEGAPLANE_LONG a week with a
 * thousand nodes is lived too, by `cluster-week.sim.ts`.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { live } from './cluster-life.ts';

const IS_LONG = process.env['MEGAPLANE_LONG'] === '1';
const SEED = Number(process.env['MEGAPLANE_SEED'] ?? 7);

test('a cluster lives through a rough day as through a quiet one', async () => {
  const day = { nodes: 8, renewMs: 10_000, deeds: 12, deedMs: 15_000, restMs: 420_000 };
  const plan = { ...day, seed: SEED, checkedDeeds: 1 };
  const quiet = await live({ ...plan, isQuiet: true });
  const rough = await live({ ...plan, isQuiet: false });
  assert.deepEqual(rough, quiet, `seed ${SEED}`);
});

test(
  'a thousand nodes live through a week',
  { skip: IS_LONG ? false : 'runs with MEGAPLANE_LONG=1' },
  async () => {
    // In a process of its own: the hooks of a test make every promise dearer.
    const program = new URL('cluster-week.sim.ts', import.meta.url).pathname;
    const [code] = await once(spawn(process.execPath, [program], { stdio: 'inherit' }), 'exit');
    assert.equal(code, 0);
  },
);
