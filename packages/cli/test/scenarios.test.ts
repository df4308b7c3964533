/**
 * Every scenario that was recorded from a kube-controller-manager, played against our API server
 * and controllers. Many at a time, as most of them wait; one that fails in the crowd, where it may
 * have waited too long for its turn, is played once more alone.
 */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, globSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startCluster, type Cluster } from './cluster.ts';

const SHARED = join(import.meta.dirname, '../../../../shared');
const RUNNER = join(SHARED, 'tools/scenarios/run.mjs');
const SCENARIOS = join(SHARED, 'data/controller-scenarios');
const skip = existsSync(RUNNER) ? false : `${RUNNER} is not there`;
/** As many as were recorded when this was written; more may lie there. */
const COUNT_MIN = 131;
/** Those that wait longest begin first. */
const SLOW = '^(node/.*|pod-gc/.*|job/(two-failures.*|pod-deleted)|daemonset/.*)$';
const ENTRY = join(import.meta.dirname, '..', 'src', 'main.ts');
/** What the recordings were made with. */
const FLAGS = [
  '--leader-elect=false',
  ...['--node-monitor-period', '2s', '--node-monitor-grace-period', '8s'],
  ...['--node-startup-grace-period', '10s', '--terminated-pod-gc-threshold', '100'],
];

interface Played {
  readonly id: string;
  readonly passed: boolean;
  readonly failures: readonly unknown[];
}

let cluster: Cluster;
let controllers: ChildProcess;

before(async () => {
  if (skip !== false) return;
  cluster = await startCluster(['--nodes', '0', '--components', 'apiserver']);
  const args = [ENTRY, 'controllers', '--kubeconfig', cluster.kubeconfig, ...FLAGS];
  controllers = spawn(process.execPath, args, { stdio: 'ignore' });
});

after(async () => {
  if (skip !== false) return;
  controllers.kill();
  await cluster.remove();
});

/** Plays scenarios; their results as the runner tells them. */
async function play(...choice: readonly string[]): Promise<Played[]> {
  const results = join(tmpdir(), `megaplane-scenarios-${process.pid}-${Math.random()}.json`);
  const args = ['--kubeconfig', cluster.kubeconfig, '--quiet', '--json', results, ...choice];
  const runner = spawn(process.execPath, [RUNNER, ...args, SCENARIOS], { stdio: 'ignore' });
  await new Promise((resolve) => runner.once('exit', resolve));
  try {
    return JSON.parse(readFileSync(results, 'utf8')) as Played[];
  } finally {
    rmSync(results, { force: true });
  }
}

test(
  'all recorded scenarios end here as they did with kube-controller-manager',
  { skip },
  async () => {
    const crowds = [play('--only', SLOW, '--jobs', '16'), play('--skip', SLOW, '--jobs', '8')];
    const played = (await Promise.all(crowds)).flat();
    const recorded = globSync('**/*.json', { cwd: SCENARIOS }).length;
    assert.ok(recorded >= COUNT_MIN, `${recorded} scenarios`);
    assert.equal(played.length, recorded);
    const failed: Played[] = [];
    for (const { id } of played.filter(({ passed }) => !passed)) {
      failed.push(...(await play('--only', `^${id}$`)).filter(({ passed }) => !passed));
    }
    assert.deepEqual(failed, []);
  },
);
