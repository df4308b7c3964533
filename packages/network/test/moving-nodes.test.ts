/** Three nodes on a segment: Services, restarts, prefixes that move, two families, many pods. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { Segment, segmentSkip } from './segment.ts';

const skip = segmentSkip();
const NODES = { a: '2001:db8:1::a', b: '2001:db8:1::b', c: '2001:db8:1::c' } as const;
const MOVED = '2001:db8:1::d:0:0/96';
const SERVICE = 'fd00:64:ff::10';
/** Entries of pods on one node; the kernel's time grows with the square. */
const MANY = process.env['MEGAPLANE_LONG'] === '1' ? 10_000 : 1000;
let segment: Segment;

/** Tells each client its address, as the server sees it. */
const SERVER = `require('net').createServer((s) => s.end(s.remoteAddress)).listen(8080, '::', () => console.log('up'))`;
const CLIENT = (address: string, waitMs: number): string =>
  `const s=require('net').connect(8080, '${address}'); s.setTimeout(${waitMs}, () => { console.log('silence'); s.destroy(); });` +
  `s.on('data', (b) => console.log(String(b))).on('error', (e) => console.log(e.code))`;

const prefixOf = (node: keyof typeof NODES): string => `${NODES[node]}:0:0/96`;

function up(node: keyof typeof NODES, ...more: string[]): void {
  const flags = ['--uplink', 'eth0', '--pod-cidr', prefixOf(node), '--trust-prefix', ...more];
  assert.deepEqual(segment.network(node, ...flags), { code: 0, out: '', err: '' });
}

before(() => {
  if (skip !== false) return;
  segment = new Segment();
  for (const node of ['a', 'b', 'c'] as const) {
    segment.addNode(node, `${NODES[node]}:0:5`);
    up(node, ...(node === 'c' ? ['--pod-cidr', '10.78.3.0/24'] : []));
  }
});
after(() => segment?.remove());

async function serve(pod: string): Promise<void> {
  const server = segment.start(pod, [process.execPath, '-e', SERVER]);
  if (server.stdout !== null) await once(server.stdout, 'data');
}

/** What a server at `address` says of a client in `from`; silence has to end. */
function seen(from: string, address: string, waitMs = 15_000): string {
  return segment.run(from, [process.execPath, '-e', CLIENT(address, waitMs)]).out.trim();
}

test(
  'a pod reaches one of another node by a Service, under its own address',
  { skip },
  async () => {
    const [client = ''] = segment.addPod('a', 'client');
    const [backend = ''] = segment.addPod('b', 'backend');
    await serve('backend');
    // as kube-proxy does where local traffic is what comes from the bridge
    segment.nft('a', 'add table ip6 services');
    segment.nft('a', 'add chain ip6 services pre { type nat hook prerouting priority dstnat; }');
    const to = `ip6 daddr ${SERVICE} tcp dport 8080 dnat to [${backend}]:8080`;
    segment.nft('a', `add rule ip6 services pre iifname "mp0" ${to}`);
    assert.equal(seen('client', SERVICE), client);
    assert.equal(seen('sw', backend), '2001:db8:1::ffff');
  },
);

test('three nodes: every pod sees every other as it is', { skip }, async () => {
  const pods = new Map<string, string>();
  for (const node of ['a', 'b', 'c'] as const) {
    pods.set(`of-${node}`, segment.addPod(node, `of-${node}`)[0] ?? '');
    await serve(`of-${node}`);
  }
  for (const [from, own] of pods) {
    for (const [to, address] of pods) {
      if (from !== to) assert.equal(seen(from, address), own, `${from} to ${to}`);
    }
  }
});

test('pods of two families have both, and IPv4 leaves under the node', { skip }, async () => {
  const [, four = ''] = segment.addPod('c', 'dual');
  assert.match(four, /^10\.78\.3\./);
  await serve('dual');
  assert.equal(seen('of-c', four), '::ffff:10.78.3.2');
  segment.ip('sw', 'addr', 'add', '198.51.100.1/24', 'dev', 'br0');
  segment.ip('c', 'addr', 'add', '198.51.100.3/24', 'dev', 'eth0');
  await serve('sw');
  assert.equal(seen('dual', '198.51.100.1'), '::ffff:198.51.100.3');
  assert.match(seen('dual', '2001:db8:1::ffff'), /^2001:db8:1::c:/);
});

test(
  'after a restart the kernel has nothing, and one command makes it again',
  { skip },
  async () => {
    const [address = ''] = segment.addPod('b', 'kept');
    await serve('kept');
    for (const one of segment.proxied('b')) {
      segment.ip('b', '-6', 'neigh', 'del', 'proxy', one, 'dev', 'eth0');
    }
    segment.run('b', ['sysctl', '-qw', 'net.ipv6.conf.all.forwarding=0']);
    segment.run('b', ['sysctl', '-qw', 'net.ipv6.conf.all.proxy_ndp=0']);
    assert.doesNotMatch(seen('of-a', address, 1500), /^2001/);
    up('b');
    assert.match(seen('of-a', address), /^2001:db8:1::a:/);
  },
);

test(
  'a prefix moves with its node: the new one is reached, the old one is free',
  { skip },
  async () => {
    const held = segment.network('b', '--uplink', 'eth0', '--pod-cidr', MOVED, '--trust-prefix');
    assert.match(held.err, /mp0 exists already, with .*: first take the network of before down/);
    const old = segment.proxied('b').filter((one) => !one.endsWith(':0:1'));
    assert.deepEqual(segment.network('b', '--down', '--force').err, '');
    const flags = ['--uplink', 'eth0', '--pod-cidr', MOVED, '--trust-prefix'];
    assert.deepEqual(segment.network('b', ...flags).err, '');
    const [moved = ''] = segment.addPod('b', 'moved');
    await serve('moved');
    assert.match(seen('of-a', moved), /^2001:db8:1::a:/);
    assert.deepEqual(segment.proxied('b').toSorted(), ['2001:db8:1::d:0:1', moved]);
    for (const one of old.slice(0, 1)) assert.doesNotMatch(seen('of-a', one, 1500), /^2001/);
  },
);

test('a node of many pods enters them all again, and takes them all out', { skip }, () => {
  const before = segment.proxied('a').length;
  segment.fillEntries('a', MANY, 1);
  up('a');
  assert.equal(segment.proxied('a').length, before + MANY);
  assert.deepEqual(segment.network('a', '--down', '--force'), { code: 0, out: '', err: '' });
  assert.deepEqual(segment.proxied('a'), []);
});
