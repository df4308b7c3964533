/** What envtest starts is small enough to be started twenty times over. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';

const skip =
  process.env['MEGAPLANE_LONG'] === '1' ? false : 'starts 42 processes: MEGAPLANE_LONG=1';
const RUN_MS_MAX = 900_000;
const PAIR_MIB_MAX = 120;
const ALL_MIB_MAX = 4096;

test('a pair takes 120 MiB, and twenty at once come up in 4 GiB', { skip }, () => {
  const flags = ['--runs', '1', '--parallel', '20', '--output', 'json'];
  const program = join(import.meta.dirname, 'envtest.ts');
  const { stdout, stderr, status } = spawnSync(process.execPath, [program, ...flags], {
    ...{ encoding: 'utf8', timeout: RUN_MS_MAX },
  });
  assert.equal(status, 0, stderr);
  const { runs, parallel } = JSON.parse(stdout) as {
    readonly runs: { readonly ours: readonly { etcdMib: number; serverMib: number }[] };
    readonly parallel: { readonly ours: { readonly mib: number } };
  };
  const [one] = runs.ours;
  assert(one !== undefined && one.etcdMib + one.serverMib <= PAIR_MIB_MAX, stdout);
  assert(parallel.ours.mib > 0 && parallel.ours.mib <= ALL_MIB_MAX, stdout);
});
