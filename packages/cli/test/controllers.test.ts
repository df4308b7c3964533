import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startCluster } from './cluster.ts';

const SHARED = join(import.meta.dirname, '../../../../shared');
const RUNNER = join(SHARED, 'tools/scenarios/run.mjs');
const SCENARIOS = join(SHARED, 'data/controller-scenarios');
const skip = existsSync(RUNNER) ? false : `${RUNNER} is not there`;

/** Those that need neither the flags of a test cluster nor longer than a few seconds. */
const ONLY =
  '^(garbage/(background|cluster-owner|cross-namespace-owner|foreground-two-owners|late-dependent' +
  '|missing-owner|one-of-two-owners|wrong-uid)|namespace/.*|serviceaccount/.*' +
  '|node/no-execute-condition)$';

test('recorded scenarios end here as they did with kube-controller-manager', { skip }, async () => {
  const cluster = await startCluster(['--nodes', '0', '--components', 'apiserver,controllers']);
  try {
    const args = [RUNNER, '--kubeconfig', cluster.kubeconfig, '--only', ONLY, '--jobs', '12'];
    const runner = spawn(process.execPath, [...args, SCENARIOS]);
    let output = '';
    runner.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    runner.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const code = await new Promise<number | null>((resolve) => runner.once('exit', resolve));
    assert.equal(code, 0, output);
    assert.match(output, /1[0-9] passed, 0 failed/);
  } finally {
    await cluster.remove();
  }
});
