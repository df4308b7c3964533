/** The shortest soak: that it runs, reads every process, and nothing that is counted runs away. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';

const skip = process.env['MEGAPLANE_LONG'] === '1' ? false : 'takes a minute: MEGAPLANE_LONG=1';
const RUN_MS_MAX = 600_000;

test('a minute of a cluster at work leaves no timers, handles and descriptors', { skip }, () => {
  // so early memory grows by code that is compiled: an hour is for that, and a limit to begin with
  const flags = ['--minutes', '1', '--window', '0', '--growth-kib', '2000', '--nodes', '5'];
  const rhythm = ['--cycle-ms', '500', '--sample-seconds', '6', '--output', 'json'];
  const program = join(import.meta.dirname, 'soak.ts');
  const { stdout, stderr, status } = spawnSync(process.execPath, [program, ...flags, ...rhythm], {
    ...{ encoding: 'utf8', timeout: RUN_MS_MAX, maxBuffer: 2 ** 26 },
  });
  assert.equal(status, 0, stderr);
  const { samples } = JSON.parse(stdout) as {
    readonly samples: readonly { readonly held: Readonly<Record<string, { liveKib: number }>> }[];
  };
  assert(samples.length >= 3);
  for (const part of ['up', 'apiserver', 'controllers', 'scheduler', 'nodes']) {
    for (const { held } of samples) assert((held[part]?.liveKib ?? 0) > 1000, part);
  }
});
