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

/** Without those that take long, or tell by their steps how fast the machine is. */
const ONLY =
  '^(replicaset/.*|deployment/(annotations-to-replicaset|create.*|delete-background' +
  '|hash-collision|history-limit-0|paused.*|proportional-scaling|recreate-waits-for-ending-pods)' +
  '|endpoints/(headless|labels-copied|named-port|no-pods|publish-not-ready|selector-changed' +
  '|service-deleted|terminating)|job/(backoff-(kills|limit).*|delete.*|finalizer.*|indexed.*' +
  '|max-failed-indexes|on-failure-restarts|parallel|pod-failure.*|suspended.*|ttl.*|zero.*)' +
  '|(cronjob|disruption|clusterrole|daemonset|statefulset|quota)/.*|deployment/quota-failure)$';
const EVERY = '^(?!node|volume|garbage|namespace|serviceaccount|pod-gc)';

test('recorded scenarios of workloads and services end here as they did', { skip }, async () => {
  const cluster = await startCluster(['--nodes', '0', '--components', 'apiserver,controllers']);
  const isLong = process.env['MEGAPLANE_LONG'] === '1';
  try {
    const chosen = ['--only', isLong ? EVERY : ONLY, '--jobs', isLong ? '2' : '8'];
    const args = [RUNNER, '--kubeconfig', cluster.kubeconfig, ...chosen, SCENARIOS];
    const runner = spawn(process.execPath, args);
    let output = '';
    runner.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    runner.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const code = await new Promise<number | null>((resolve) => runner.once('exit', resolve));
    assert.equal(code, 0, output);
    assert.match(output, /([5-9][0-9]|1[0-9]{2}) passed, 0 failed/);
  } finally {
    await cluster.remove();
  }
});
