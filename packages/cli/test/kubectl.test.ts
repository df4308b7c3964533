import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { after, before, test } from 'node:test';
import { eventually, kubectlOf, kubectls, NO_KUBECTL, startCluster } from './cluster.ts';
import type { Cluster } from './cluster.ts';

const POD = `apiVersion: v1
kind: Pod
metadata:
  name: NAME
  labels: {app: web}
spec:
  containers:
  - name: main
    image: nginx:1.27
    resources: {requests: {cpu: 100m, memory: 64Mi}}
`;

// the one on PATH, the oldest and the newest; the minors between them in long runs
const [usual = '', ...others] = kubectls();
const isLong = process.env['MEGAPLANE_LONG'] === '1';
const ends = isLong ? others : [...others.slice(0, 1), ...others.slice(-1)];
const programs = [...new Set([usual, ...ends])].filter((path) => path !== '');
const skip = programs.length === 0 ? NO_KUBECTL : false;
let cluster: Cluster;

before(async () => {
  if (skip === false) cluster = await startCluster(['--nodes', '12']);
});
after(async () => {
  if (skip === false) await cluster.remove();
});

function columns(text: string): string[][] {
  const rows = text.trimEnd().split('\n');
  return rows.map((row) => row.trim().split(/\s{2,}|\t/));
}

for (const program of programs.length > 0 ? programs : ['kubectl']) {
  test(
    `${basename(program)}: nodes, pods and leases look as on any cluster`,
    { skip },
    async () => {
      const kubectl = kubectlOf(program, cluster);
      const version = JSON.parse(kubectl('version', '-o', 'json'));
      assert.match(version.serverVersion.gitVersion, /^v1\.\d+\.\d+/);

      const nodes = columns(kubectl('get', 'nodes', '-o', 'wide'));
      assert.equal(nodes.length, 13);
      assert.deepEqual(nodes[0]?.slice(0, 6), [
        'NAME',
        'STATUS',
        'ROLES',
        'AGE',
        'VERSION',
        'INTERNAL-IP',
      ]);
      assert.deepEqual([nodes[1]?.[0], nodes[1]?.[1]], ['node-0', 'Ready']);
      assert.match(nodes[1]?.[5] ?? '', /^10\.128\.0\.\d+$/);

      const name = basename(program).replaceAll(/[^a-z0-9]/g, '-');
      const file = join(cluster.dataDir, 'pod.yaml');
      writeFileSync(file, POD.replace('NAME', name));
      assert.match(kubectl('apply', '-f', file), /created/);
      assert.match(kubectl('apply', '-f', file), /unchanged/);
      const row = await eventually('the pod is Running', () => {
        const found = columns(kubectl('get', 'pod', name, '-o', 'wide'))[1];
        return found?.[2] === 'Running' ? found : undefined;
      });
      assert.equal(row[1], '1/1');
      assert.match(row[5] ?? '', /^10\.\d+\.\d+\.\d+$/);
      assert.match(row[6] ?? '', /^node-\d+$/);

      const leases = columns(kubectl('get', 'leases', '-A'));
      assert.deepEqual(leases[0], ['NAMESPACE', 'NAME', 'HOLDER', 'AGE']);
      assert(leases.filter(([namespace]) => namespace === 'kube-node-lease').length === 12);

      kubectl('label', 'pod', name, 'color=blue');
      kubectl('annotate', 'pod', name, 'note=hello');
      assert.match(
        kubectl('get', 'pods', '-l', 'color=blue', '-o', 'name'),
        new RegExp(`pod/${name}`),
      );
      assert.match(kubectl('describe', 'pod', name), /Status:\s+Running/);
      assert.match(kubectl('describe', 'node', 'node-0'), /Ready\s+True/);

      assert.match(kubectl('delete', 'pod', name), /deleted/);
      assert.throws(() => kubectl('get', 'pod', name), /NotFound/);
    },
  );
}

test('a pod that fits nowhere says why, and is scheduled once it can be', { skip }, async () => {
  const kubectl = kubectlOf(programs[0] ?? '', cluster);
  const file = join(cluster.dataDir, 'big.yaml');
  writeFileSync(file, POD.replace('NAME', 'big').replace('cpu: 100m', 'cpu: 1000'));
  kubectl('apply', '-f', file);
  const path = '{.status.conditions[?(@.type=="PodScheduled")].message}';
  const message = await eventually('the condition says why', () => {
    const text = kubectl('get', 'pod', 'big', '-o', `jsonpath=${path}`);
    return text === '' ? undefined : text;
  });
  assert.match(message, /^0\/12 nodes are available: 12 Insufficient cpu\./);
  kubectl('delete', 'pod', 'big');
});

test('a watch shows a pod from its creation to its end', { skip }, async () => {
  const kubectl = kubectlOf(programs[0] ?? '', cluster);
  kubectl('run', 'seen', '--image=nginx');
  const isRunning = (): true | undefined =>
    kubectl('get', 'pod', 'seen').includes('Running') ? true : undefined;
  await eventually('Running', isRunning);
  const args = ['get', 'pods', '--watch', '--output-watch-events', '--request-timeout=90s'];
  const env = { ...process.env, KUBECONFIG: cluster.kubeconfig };
  const watch = spawn(programs[0] ?? '', args, { env, stdio: ['ignore', 'pipe', 'ignore'] });
  let shown = '';
  watch.stdout.on('data', (chunk: Buffer) => (shown += chunk.toString()));
  const look = (pattern: RegExp): Promise<string> =>
    eventually(String(pattern), () => (pattern.test(shown) ? shown : undefined));
  await look(/ADDED.*seen.*Running/);
  kubectl('delete', 'pod', 'seen', '--wait=false');
  await look(/DELETED.*seen/);
  watch.kill();
});
