/** Jobs whose pods live by the set `jobs`, with the Job controller beside them. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { eventually, kubectlOf, kubectls, NO_KUBECTL, startCluster } from './cluster.ts';
import type { Cluster } from './cluster.ts';

const [program] = kubectls();
const skip = program === undefined ? NO_KUBECTL : false;
const END = 'pod-end.stage.kwok.x-k8s.io';
let cluster: Cluster;
let kubectl: ReturnType<typeof kubectlOf>;

before(async () => {
  if (skip !== false) return;
  cluster = await startCluster(['--nodes', '2', '--stages', 'jobs']);
  kubectl = kubectlOf(program ?? '', cluster);
});
after(async () => {
  await cluster?.remove();
});

/** Makes a Job of two pods. */
function make(name: string, annotations: object, spec: object = {}): void {
  const template = {
    metadata: { annotations },
    spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }] },
  };
  const job = {
    ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name } },
    spec: { completions: 2, parallelism: 2, backoffLimit: 0, ...spec, template },
  };
  const file = join(cluster.dataDir, `${name}.json`);
  writeFileSync(file, JSON.stringify(job));
  kubectl('create', '-f', file);
}

/** Names of a Job's pods in this phase, once there are two. */
function pods(job: string, phase: string): Promise<readonly string[]> {
  return eventually(`two pods of ${job} ${phase}`, () => {
    const selected = ['-l', `job-name=${job}`, `--field-selector=status.phase=${phase}`];
    const names = kubectl('get', 'pods', ...selected, '-o', 'name')
      .split('\n')
      .filter(Boolean);
    return names.length === 2 ? names : undefined;
  });
}

function jobStatus(name: string, path: string): string {
  return kubectl('get', 'job', name, '-o', `jsonpath={.status.${path}}`);
}

test('a Job runs until its pods are told to end, and is complete then', { skip }, async () => {
  make('told', {});
  const names = await pods('told', 'Running');
  await eventually('ready pods', () => jobStatus('told', 'ready') === '2' || undefined);
  kubectl('annotate', names[0] ?? '', `${END}/exit-code=0`);
  await eventually('one success', () => jobStatus('told', 'succeeded') === '1' || undefined);
  assert.equal(jobStatus('told', 'active'), '1');
  kubectl('annotate', names[1] ?? '', `${END}/exit-code=0`);
  kubectl('wait', '--for=condition=Complete', 'job/told', '--timeout=90s');
});

test('a Job whose pod ends with another code fails', { skip }, async () => {
  make('broken', {});
  const [name = ''] = await pods('broken', 'Running');
  kubectl('annotate', name, `${END}/exit-code=7`, `${END}/reason=OOMKilled`);
  kubectl('wait', '--for=condition=Failed', 'job/broken', '--timeout=90s');
  const path = 'jsonpath={.status.containerStatuses[0].state.terminated}';
  const terminated = JSON.parse(kubectl('get', name, '-o', path)) as Record<string, unknown>;
  assert.deepEqual([terminated['exitCode'], terminated['reason']], [7, 'OOMKilled']);
});

test('pods of a Job end when their time has come', { skip }, () => {
  make('timed', { [`${END}/delay`]: '1s' });
  kubectl('wait', '--for=condition=Complete', 'job/timed', '--timeout=90s');
  assert.equal(jobStatus('timed', 'succeeded'), '2');
});

test('a deleted pod of a Job fails, and another one takes its place', { skip }, async () => {
  make('replaced', {}, { backoffLimit: 3, podReplacementPolicy: 'Failed' });
  const [name = ''] = await pods('replaced', 'Running');
  kubectl('delete', name, '--timeout=90s');
  await eventually('a failure', () => jobStatus('replaced', 'failed') === '1' || undefined);
  assert.ok(!(await pods('replaced', 'Running')).includes(name));
  kubectl('delete', 'job', 'replaced', '--timeout=90s');
});
