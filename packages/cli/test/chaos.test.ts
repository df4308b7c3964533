import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import {
  ENTRY,
  eventually,
  kubectlOf,
  kubectls,
  megaplane,
  NO_KUBECTL,
  startCluster,
} from './cluster.ts';
import type { Cluster } from './cluster.ts';
import { CommandHost } from './command-host.ts';

const [program] = kubectls();
const skip = program === undefined ? NO_KUBECTL : false;
let cluster: Cluster;

/** Leases that are renewed each second: tests wait for renewals. */
const LEASES = ['--node-lease-duration-seconds', '4'];
let nodes: ChildProcess | undefined;

before(async () => {
  if (skip !== false) return;
  cluster = await startCluster(['--nodes', '0', '--components', '-nodes']);
  const own = ['--kubeconfig', cluster.kubeconfig, '--create', '6', ...LEASES];
  const selected = ['--manage-nodes-with-label-selector', 'megaplane.dev/simulated=true'];
  nodes = spawn(process.execPath, [ENTRY, 'nodes', ...own, ...selected], { stdio: 'ignore' });
  await eventually('six nodes', () => {
    const names = kubectl('get', 'nodes', '-o', 'name').trim();
    return names.split('\n').length === 6 || undefined;
  });
  kubectl('wait', '--for=condition=Ready', 'nodes', '--all', '--timeout=90s');
});
after(async () => {
  nodes?.kill();
  await cluster?.remove();
});

function write(text: string): string {
  const file = join(cluster.dataDir, 'object.json');
  writeFileSync(file, text);
  return file;
}

const kubectl = (...args: string[]): string => kubectlOf(program ?? '', cluster)(...args);
function chaos(...args: string[]): string {
  const ran = megaplane('nodes', 'chaos', ...args, '--kubeconfig', cluster.kubeconfig);
  assert.equal(ran.status, 0, ran.stderr);
  return ran.stdout.trim();
}

test('nodes of a zone fall silent, and catch up when they are healed', { skip }, async () => {
  const renewals = (node: string): string =>
    kubectl('get', 'lease', node, '-n', 'kube-node-lease', '-o', 'jsonpath={.spec.renewTime}');
  assert.equal(
    chaos('kill', '--zone', 'zone-a'),
    'f1: 100 % of nodes with topology.kubernetes.io/zone=zone-a down, until healed',
  );
  assert.match(chaos('list'), /^f1: /);
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } };
  const spec = { nodeName: 'node-0', containers: [{ name: 'c', image: 'i' }] };
  const text = JSON.stringify({ ...pod, spec });
  kubectl('create', '--raw', '/api/v1/namespaces/default/pods', '-f', write(text));
  const before = renewals('node-0');
  const live = renewals('node-1');
  await eventually('a renewal of a living node', () => renewals('node-1') !== live || undefined);
  assert.equal(renewals('node-0'), before);
  const phase = (): string => kubectl('get', 'pod', 'p', '-o', 'jsonpath={.status.phase}');
  assert.equal(phase(), 'Pending');
  assert.equal(chaos('heal', 'f1'), 'healed: f1');
  await eventually('the pod runs', () => phase() === 'Running' || undefined);
  await eventually('a renewal', () => renewals('node-0') !== before || undefined);
  assert.equal(chaos('list'), 'no fault');
});

test('flapping nodes are ready in turns, and ready again when it is over', { skip }, async () => {
  const status = (): string => {
    const path = '{.status.conditions[?(@.type=="Ready")].status}';
    return kubectl('get', 'node', 'node-2', '-o', `jsonpath=${path}`);
  };
  chaos(
    'flap',
    '--selector',
    'kubernetes.io/hostname=node-2',
    '--percent',
    '100',
    '--period',
    '2s',
  );
  await eventually('not ready', () => status() === 'False' || undefined);
  await eventually('ready', () => status() === 'True' || undefined);
  await eventually('not ready again', () => status() === 'False' || undefined);
  chaos('heal');
  await eventually('ready', () => status() === 'True' || undefined);
});

test('drained nodes are empty; upgraded ones show another version', { skip }, async () => {
  kubectl('create', 'deployment', 'web', '--image=i', '--replicas=6');
  kubectl('rollout', 'status', 'deployment/web', '--timeout=90s');
  assert.equal(chaos('drain', 'node-1', 'node-3'), '2 nodes are drained');
  for (const node of ['node-1', 'node-3']) {
    const pods = kubectl('get', 'pods', '--field-selector', `spec.nodeName=${node}`, '-o', 'name');
    assert.equal(pods, '');
  }
  const to = ['--to', 'v9.9.9', '--wave', '2', '--down', '100ms'];
  assert.equal(
    chaos('upgrade', 'node-3', 'node-4', 'node-5', ...to),
    '3 nodes are upgraded to v9.9.9',
  );
  const path = '{range .items[*]}{.status.nodeInfo.kubeletVersion}{.spec.unschedulable} {end}';
  const shown = kubectl('get', 'nodes', '-o', `jsonpath=${path}`).trim().split(' ');
  assert.deepEqual(
    shown.map((one) => (one.startsWith('v1.') ? one.replace(/^v1.*?(true)?$/, 'old$1') : one)),
    // who cordoned a node before an upgrade wants it so after it
    ['old', 'oldtrue', 'old', 'v9.9.9true', 'v9.9.9', 'v9.9.9'],
  );
});

test('an upgrade that is interrupted brings its wave back as it was', { skip }, async () => {
  const args = ['nodes', 'chaos', 'upgrade', 'node-0', 'node-2', '--to', 'v8.8.8', '--down', '10m'];
  const upgrade = spawn(process.execPath, [ENTRY, ...args, '--kubeconfig', cluster.kubeconfig]);
  const ended = Promise.all([text(upgrade.stdout), text(upgrade.stderr), once(upgrade, 'exit')]);
  await eventually('the wave is down', () => chaos('list') !== 'no fault' || undefined);
  upgrade.kill('SIGINT');
  const [out, err, [code]] = await ended;
  assert.match(out, /^stopped: 0 nodes are upgraded to v8\.8\.8, 2 are as they were$/m);
  assert.match(err, /stopping: the nodes of this wave are brought back/);
  assert.equal(code, 130);
  assert.equal(chaos('list'), 'no fault');
  const path = '{.spec.unschedulable}{.status.nodeInfo.kubeletVersion}';
  for (const node of ['node-0', 'node-2']) {
    assert.match(kubectl('get', 'node', node, '-o', `jsonpath=${path}`), /^v1\./);
  }
});

test('the nodes of an upgrade that was killed are brought back', { skip }, async () => {
  const names = ['node-0', 'node-2'];
  const args = ['nodes', 'chaos', 'upgrade', ...names, '--to', 'v8.8.8', '--down', '10m'];
  const die = async (): Promise<void> => {
    const upgrade = spawn(process.execPath, [ENTRY, ...args, '--kubeconfig', cluster.kubeconfig]);
    await eventually('the wave is down', () => chaos('list') !== 'no fault' || undefined);
    upgrade.kill('SIGKILL');
    await once(upgrade, 'exit');
  };
  const path = '{range .items[*]}{.metadata.name}{.spec.unschedulable} {end}';
  const shown = (): string => kubectl('get', 'nodes', '-o', `jsonpath=${path}`);
  await die();
  assert.match(shown(), /^node-0true node-1true node-2true node-3true /);
  assert.match(chaos('heal'), /^healed: f\d+; 2 nodes of an upgrade are uncordoned$/);
  assert.match(shown(), /^node-0 node-1true node-2 node-3true /);
  await die();
  const [fault = ''] = chaos('list').split(':');
  assert.equal(chaos('heal', fault), `healed: ${fault}`);
  const again = ['--to', 'v8.8.8', '--down', '0s'];
  assert.equal(chaos('upgrade', ...names, ...again), '2 nodes are upgraded to v8.8.8');
  assert.match(shown(), /^node-0 node-1true node-2 node-3true /);
  assert.equal(kubectl('get', 'nodes', '-l', 'megaplane.dev/cordoned-by', '-o', 'name'), '');
});

test('what cannot be meant is refused', { skip }, async (t) => {
  const host = new CommandHost();
  t.after(() => host.close());
  const refuse = async (...args: string[]): Promise<string> => {
    const ran = await host.run('nodes', 'chaos', ...args, '--kubeconfig', cluster.kubeconfig);
    assert.notEqual(ran.status, 0, args.join(' '));
    return ran.stderr;
  };
  assert.match(await refuse('kill', '--selector', 'a in'), /--selector: /);
  for (const part of ['0', '101', '-1', 'x']) {
    assert.match(await refuse('freeze', `--percent=${part}`), /--percent .*is needed/);
  }
  assert.match(await refuse('freeze', '--for', '0'), /--for .*1s or longer/);
  assert.match(await refuse('flap', '--period=-1s'), /--period .*1s or longer/);
  assert.match(await refuse('upgrade', '--to', 'v2.0.0', '--down=-1s'), /--down .*0s or longer/);
  assert.match(await refuse('upgrade', '--to', 'v2'), /a version such as v1\.37\.0 is needed/);
  assert.match(await refuse('kill'), /give --zone, --selector, --percent or --all/);
  assert.match(await refuse('kill', '--zone', 'nowhere'), /no node has the labels .*zone=nowhere/);
  assert.match(await refuse('drain'), /name nodes, or give --selector or --all/);
  assert.match(await refuse('drain', '--selector', 'no=where'), /no node has the labels no=where/);
  assert.match(await refuse('drain', 'node-0', 'nowhere'), /node nowhere: .*not found/);
  assert.match(
    await refuse('upgrade', 'node-0', 'nowhere', '--to', 'v2.0.0'),
    /nowhere: .*not found/,
  );
  assert.match(kubectl('get', 'node', 'node-0'), / Ready /, 'nothing is begun');
  assert.match(await refuse('heal', 'f77'), /there is no fault f77/);
  assert.equal(chaos('heal'), 'there was no fault');
});
