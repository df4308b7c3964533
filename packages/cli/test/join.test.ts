/** A machine that joins: what it is told, what it believes, and what it writes. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { after, before, test } from 'node:test';
import { createKubeClient } from '@megaplane/client/kube-client';
import { listAt, stringAt } from '@megaplane/machinery/json';
import { megaplane, startCluster, type Cluster } from './cluster.ts';

const hasAddress = Object.values(networkInterfaces())
  .flatMap((all) => all ?? [])
  .some(({ internal, family }) => !internal && family === 'IPv4');
const skip = hasAddress ? false : 'needs an IPv4 address that is not of loopback';
const kubeadm = spawnSync('kubeadm', ['version', '-o', 'short']).status === 0;
let cluster: Cluster;
let words: readonly string[] = [];

before(async () => {
  if (skip !== false) return;
  cluster = await startCluster(['--join', '--nodes', '1']);
  const printed = megaplane('join-command', '--kubeconfig', cluster.kubeconfig, '--ttl', '1h');
  assert.equal(printed.status, 0, printed.stderr);
  words = (/^megaplane (node join .*)$/m.exec(printed.stdout)?.[1] ?? '').split(' ');
});
after(async () => {
  await cluster?.remove();
});

/** Joins without doing it; `change` makes other words of those that were printed. */
function join(change: (word: string) => string, ...more: string[]): string {
  const { stdout, stderr } = megaplane(...words.map(change), '--dry-run', ...more);
  return stdout + stderr;
}

test('what is printed is believed, and says what would be written', { skip }, () => {
  const network = ['--uplink', 'eth0', '--pod-cidr', 'fd00:10::1:0:0/96'];
  const text = join((word) => word, '--node-name', 'worker-1', ...network);
  assert.match(text, /\/etc\/kubernetes\/pki\/ca\.crt <<'END'\n-----BEGIN CERTIFICATE-----/);
  assert.match(text, /install -D -m 0600 .*bootstrap-kubelet\.conf/);
  assert.match(text, /kind: KubeletConfiguration[^]*serverTLSBootstrap: true/);
  assert.match(text, /containerd\/config\.toml/);
  assert.match(text, /--hostname-override=worker-1/);
});

test('what is wrong is told before anything is written', { skip }, () => {
  const of = (flag: string, text: string) => (word: string) =>
    words[words.indexOf(word) - 1] === flag ? text : word;
  const id = (words[words.indexOf('--token') + 1] ?? '').slice(0, 6);
  assert.match(
    join(of('--token', `${id}.aaaaaaaaaaaaaaaa`)),
    /the secret of the token .* is wrong/,
  );
  assert.match(
    join(of('--token', 'zzzzzz.aaaaaaaaaaaaaaaa')),
    /is not known at .*: it has run out/,
  );
  assert.match(join(of('--token', 'short')), /--token: 6 letters or digits/);
  const hash = `sha256:${'0'.repeat(64)}`;
  assert.match(join(of('--discovery-token-ca-cert-hash', hash)), /another one than the hash says/);
  assert.match(join(of('join', '127.0.0.1:1')), /cannot be reached: .*ECONNREFUSED/);
  assert.match(join(of('join', 'http://x')), /is no host:port/);
  const { stderr } = megaplane(...words, '--node-name', 'node-0', '--kubelet', '/bin/true');
  assert.match(stderr, /a node node-0 is there, and Ready/);
  assert.match(megaplane('node', 'reset', '--state-dir', cluster.dataDir).stderr, /has not joined/);
});

test('a cluster that nobody reaches from outside says so', async () => {
  const inner = await startCluster(['--nodes', '0', '--components', 'apiserver']);
  try {
    const { status, stderr } = megaplane('join-command', '--kubeconfig', inner.kubeconfig);
    assert.equal(status, 1);
    assert.match(stderr, /tells no address that other machines reach: start it with --join/);
    const lost = megaplane('join-command', '--kubeconfig', '/surely/not/there');
    assert.match(lost.stderr, /--kubeconfig: there is no \/surely\/not\/there: name the one/);
  } finally {
    await inner.remove();
  }
});

test(
  'the objects are those that kubeadm makes, and tokens are good for nothing else',
  { skip },
  async () => {
    const client = await createKubeClient({ kubeconfig: cluster.kubeconfig });
    const read = async (path: string) => {
      const answer = await client.request({ method: 'GET', path });
      assert(answer.ok, path);
      return answer.object;
    };
    const info = await read('/api/v1/namespaces/kube-public/configmaps/cluster-info');
    assert(Object.keys(info['data'] ?? {}).some((key) => key.startsWith('jws-kubeconfig-')));
    const map = await read('/api/v1/namespaces/kube-system/configmaps/kubeadm-config');
    assert.match(stringAt(map, 'data', 'ClusterConfiguration'), /kind: ClusterConfiguration/);
    const bound =
      '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/kubeadm:kubelet-bootstrap';
    const [subject] = listAt(await read(bound), 'subjects');
    const group = 'system:bootstrappers:kubeadm:default-node-token';
    assert.equal(stringAt(subject, 'name'), group);
    client.close();
  },
);

test(
  'kubeadm joins by the same words',
  { skip: skip || (kubeadm ? false : 'needs kubeadm: build k8s.io/kubernetes/cmd/kubeadm') },
  () => {
    const args = ['join', ...words.slice(2), '--ignore-preflight-errors=all', '--node-name', 'k1'];
    const ran = spawnSync('kubeadm', [...args, '--dry-run'], { encoding: 'utf8' });
    assert.equal(ran.status, 0, ran.stdout + ran.stderr);
  },
);

test('a kubelet is told its address, and takes old control groups', { skip }, () => {
  const text = join((word) => word, '--node-name', 'worker-1', '--kubelet', '/opt/kubelet');
  const server = words[words.indexOf('join') + 1] ?? '';
  const own = server.slice(0, server.lastIndexOf(':')).replace(/^\[(.*)\]$/, '$1');
  // the machine that joins is that of the server here
  assert.match(text, new RegExp(`^/opt/kubelet .* --node-ip=${own.replaceAll('.', '\\.')}$`, 'm'));
  const isOld = !existsSync('/sys/fs/cgroup/cgroup.controllers');
  assert.equal(/^failCgroupV1: false$/m.test(text), isOld);
});
