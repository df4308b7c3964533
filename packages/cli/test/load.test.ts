import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { megaplane, startCluster, type Cluster } from './cluster.ts';

let cluster: Cluster;

before(async () => {
  cluster = await startCluster(['--nodes', '1', '--components', 'apiserver,controllers']);
});
after(async () => {
  await cluster?.remove();
});

function bench(name: string, ...flags: string[]): Readonly<Record<string, number>> {
  const output = join(cluster.dataDir, `${name}.json`);
  const own = ['--kubeconfig', cluster.kubeconfig, '--output', output];
  const ran = megaplane('bench', name, ...own, ...flags);
  assert(ran.status === 0 || name === 'gaps', ran.stderr);
  return JSON.parse(readFileSync(output, 'utf8')) as Record<string, number>;
}

test('numbered nodes are made, found missing, and deleted, in parts', () => {
  const machines = ['--machines', 'small:4:16Gi:110,big:64:256Gi', '--pod-cidr', '10.0.0.0/8'];
  assert.equal(bench('nodes', '--count', '40', '--skip', '5', ...machines)['nodes'], 40);
  assert.equal(bench('nodes', '--count', '50', '--rate', '500')['nodes'], 10);
  const gaps = (count: string): readonly unknown[] => {
    const { missing, others } = bench('gaps', '--prefix', 'kwok-node-', '--count', count);
    return [missing, others];
  };
  assert.deepEqual(gaps('50'), [0, 0]);
  bench('delete', '--resource', 'nodes', '--prefix', 'kwok-node-', '--skip', '10', '--count', '20');
  assert.deepEqual(gaps('52'), [22, 0]);
});

test('leases are written over what was written before', () => {
  const flags = ['--num-keys', '50', '--workers', '8', '--seconds', '1'];
  const { perSecond, conflicts, failures } = bench('lease-flood', ...flags);
  assert((perSecond ?? 0) > 50);
  assert.deepEqual([conflicts, failures], [0, 0]);
});

test('what the server refuses and flags that are none are told', () => {
  const own = ['--kubeconfig', cluster.kubeconfig];
  const refused = megaplane('bench', 'pods', ...own, '--namespace', 'nowhere', '--count', '5');
  assert.match(refused.stderr, /namespaces "nowhere" not found/);
  const wrong = megaplane('bench', 'pods', ...own, '--shape', 'heap');
  assert.equal(wrong.status, 2);
  assert.match(wrong.stderr, /--shape: one of pod, deployment, job, gang is needed/);
});
