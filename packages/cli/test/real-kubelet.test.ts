/** Real kubelets with containerd join by one command, run pods, and leave again. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { eventually, megaplane, startCluster, type Cluster } from './cluster.ts';
import { BOX_IMAGE, CONTAINERD_CONFIG, OUTSIDE, realNodeSkip } from './real-node.sim.ts';
import { RealSegment, type RealNode } from './real-node.sim.ts';

const skip = realNodeSkip();
const kubeadm = process.env['MEGAPLANE_KUBEADM'] ?? '';
const SIMULATED = 20;
const PREFIXES = ['fd00:77::a:1:0:0/96', 'fd00:77::a:2:0:0/96'] as const;
let segment: RealSegment;
let cluster: Cluster;
let words: readonly string[] = [];
let first: RealNode;
let second: RealNode;

before(async () => {
  if (skip !== false) return;
  segment = new RealSegment();
  const flags = ['--join', '--nodes', `${SIMULATED}`, '--advertise-address', OUTSIDE];
  cluster = await startCluster(flags);
  const printed = megaplane('join-command', '--kubeconfig', cluster.kubeconfig, '--ttl', '1h');
  words = (/^megaplane (node join .*)$/m.exec(printed.stdout)?.[1] ?? '').split(' ');
  first = await segment.addNode(1);
  first.run(['sh', '-c', 'echo mine > /var/lib/kubelet/of-others']);
  second = await segment.addNode(2);
});
after(async () => {
  await segment?.remove();
  await cluster?.remove();
});

function kubectl(...args: string[]): { readonly out: string; readonly err: string } {
  const all = ['--kubeconfig', cluster.kubeconfig, ...args];
  const { stdout, stderr } = spawnSync('kubectl', all, { encoding: 'utf8' });
  return { out: stdout, err: stderr };
}

const prefixWords = (number: 0 | 1): string[] => [
  ...['--uplink', 'eth0', '--pod-cidr', PREFIXES[number]],
];

function create(object: object): void {
  const args = ['--kubeconfig', cluster.kubeconfig, 'create', '-f', '-'];
  execFileSync('kubectl', args, { input: JSON.stringify(object), stdio: 'pipe' });
}

function pod(name: string, nodeName: string, script: string): void {
  const container = {
    ...{ name: 'box', image: BOX_IMAGE, imagePullPolicy: 'Never' },
    command: ['sh', '-c', script],
  };
  create({
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name } },
    spec: { nodeName, terminationGracePeriodSeconds: 1, containers: [container] },
  });
}

const isReady = (name: string): true | undefined =>
  / Ready /.test(kubectl('get', 'node', name, '--no-headers').out) || undefined;
const field = (name: string, path: string): string =>
  kubectl('get', 'pod', name, '-o', `jsonpath={${path}}`).out;
const running = (name: string): Promise<string> =>
  eventually(`pod ${name} runs`, () => {
    return field(name, '.status.phase') === 'Running' ? field(name, '.status.podIP') : undefined;
  });

test('a machine joins until Ready, with certificates of its own', { skip }, async () => {
  first.join(...words, ...prefixWords(0));
  await eventually(`real-1 is Ready: ${first.log}`, () => isReady('real-1'));
  const address = '{.status.addresses[?(@.type=="InternalIP")].address}';
  assert.equal(kubectl('get', 'node', 'real-1', '-o', `jsonpath=${address}`).out, first.address);
  await eventually('both certificates are issued', () => {
    const { out } = kubectl('get', 'csr', '--no-headers');
    const issued = out.split('\n').filter((line) => line.includes('Approved,Issued'));
    return issued.length === 2 || undefined;
  });
});

test('a pod runs, is read and entered, under an address of its node', { skip }, async () => {
  pod(
    'one',
    'real-1',
    'echo hello; mkdir /tmp/w; echo here > /tmp/w/f; httpd -f -p 8080 -h /tmp/w',
  );
  const address = await running('one');
  assert.match(address, /^fd00:77::a:1:0:/);
  await eventually('its log', () => kubectl('logs', 'one').out === 'hello\n' || undefined);
  assert.equal(kubectl('exec', 'one', '--', 'cat', '/tmp/w/f').out, 'here\n');
});

test(
  'another machine with that name or prefix is refused, and joins with its own',
  { skip },
  async () => {
    const refused = second.megaplane(
      ...[...words, '--node-name', 'real-1', '--foreground', '--kubelet', '/bin/true'],
    );
    assert.match(refused.err, /a node real-1 is there, and Ready: take another name/);
    const taken = second.megaplane(
      ...[...words, '--node-name', 'real-2', '--foreground', '--kubelet', '/bin/true'],
      ...prefixWords(0),
    );
    assert.match(taken.err, /another node of this segment answers for fd00:77::a:1:0:0\/96/);
    assert.equal(second.run(['ls', '/var/lib/kubelet']).out, '');
    second.join(...words, ...prefixWords(1));
    await eventually(`real-2 is Ready: ${second.log}`, () => isReady('real-2'));
    pod('two', 'real-2', 'sleep 1000');
    await running('two');
    // a program that is linked statically and finds no files of names: the address as it is
    const get = `printf 'GET /f HTTP/1.0\\r\\n\\r\\n' | nc ${field('one', '.status.podIP')} 8080`;
    const asked = kubectl('exec', 'two', '--', 'sh', '-c', get);
    assert.match(asked.out, /here\n$/, asked.err);
  },
);

test('simulated nodes live on beside them, and none plays for another', { skip }, () => {
  const { out } = kubectl('get', 'nodes', '--no-headers');
  const ready = out.split('\n').filter((line) => / Ready /.test(line));
  assert.equal(ready.length, SIMULATED + 2, out);
  const version = '{.items[*].status.nodeInfo.kubeletVersion}';
  const real = ['get', 'node', '-l', '!megaplane.dev/simulated', '-o', `jsonpath=${version}`];
  assert.match(kubectl(...real).out, /^v1\.\d+\.\d+ v1\.\d+\.\d+$/);
  const holder = ['get', 'lease', '-n', 'kube-node-lease', 'real-1'];
  assert.equal(kubectl(...holder, '-o', 'jsonpath={.spec.holderIdentity}').out, 'real-1');
});

test('a restarted kubelet finds its pods, and containerd may be away', { skip }, async () => {
  const before = field('one', '.status.containerStatuses[0].containerID');
  await first.stopKubelet();
  first.join(...words, ...prefixWords(0));
  await eventually('the kubelet answers again', () => {
    return kubectl('logs', 'one').out === 'hello\n' || undefined;
  });
  assert.equal(field('one', '.status.containerStatuses[0].containerID'), before);
});

test('a node in use is not reset unless it is said, and nothing stays', { skip }, async () => {
  const early = first.megaplane('node', 'reset');
  assert.match(early.err, /one pod runs here .*: drain the node first, or say --force/);
  const living = first.megaplane('node', 'reset', '--force');
  assert.match(living.err, /the kubelet still runs \(\d+\): end it first/);
  await first.stopKubelet();
  const { code, err, out } = first.megaplane('node', 'reset', '--force');
  assert.deepEqual([code, err], [0, '']);
  assert.match(out, /kubectl delete node real-1/);
  assert.equal(first.run(['ctr', '-n', 'k8s.io', 'task', 'ls', '-q']).out, '');
  assert.equal(first.run(['cat', '/etc/containerd/config.toml']).out.trim(), CONTAINERD_CONFIG);
  for (const dir of ['/etc/kubernetes', '/var/lib/kubelet', '/etc/cni']) {
    const left = dir === '/var/lib/kubelet' ? `${dir}/of-others\n` : '';
    assert.equal(first.run(['find', dir, '-type', 'f']).out, left);
  }
  assert.doesNotMatch(first.run(['ip', 'link', 'show']).out, /mp0/);
});

test(
  "kubeadm's own preparations for a join find all they need",
  {
    skip:
      skip ||
      (existsSync(kubeadm) ? false : 'needs MEGAPLANE_KUBEADM=path: build cmd/kubeadm likewise'),
  },
  () => {
    const join = ['join', ...words.slice(2), '--ignore-preflight-errors=all'];
    const { code, out, err } = first.run([kubeadm, ...join, '--node-name', 'k1', '--dry-run']);
    assert.equal(code, 0, out + err);
  },
);
