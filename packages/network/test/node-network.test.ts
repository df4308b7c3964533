/** Nodes on one segment, in namespaces: pods reach each other under their own addresses. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { requestOf, type NodeNetworkFlags } from '../src/node/node-network.ts';
import { Segment, segmentSkip } from './segment.ts';

const skip = segmentSkip();
const A = '2001:db8:1::a:0:0/96';
const B = '2001:db8:1::b:0:0/96';
const FLAGS: NodeNetworkFlags = {
  ...{ uplink: 'eth0', podCidr: [], mode: 'proxy', bridge: 'mp0', mtu: 0, neighbours: 1024 },
  ...{ route: [], cniConfigDir: '/c', cniBinDir: '/b', stateDir: '/s', trustsPrefix: true },
};
let segment: Segment;

/** Tells each client its address, as the server sees it. */
const SERVER = `require('net').createServer((s) => s.end(s.remoteAddress)).listen(8080, '::', () => console.log('up'))`;
const CLIENT = (address: string): string =>
  `require('net').connect(8080, '${address}').on('data', (b) => console.log(String(b))).on('error', (e) => console.log(e.code))`;

before(() => {
  if (skip !== false) return;
  segment = new Segment();
  // as at GCP: the node's own address is one of its prefix
  segment.addNode('a', '2001:db8:1::a:0:5');
  segment.addNode('b', '2001:db8:1::b:0:5');
});
after(() => segment?.remove());

async function serve(pod: string): Promise<void> {
  const server = segment.start(pod, [process.execPath, '-e', SERVER]);
  if (server.stdout !== null) await once(server.stdout, 'data');
}

/** What a server at `address` says of a client in `from`. */
function seenFrom(from: string, address: string): string {
  return segment.run(from, [process.execPath, '-e', CLIENT(address)]).out.trim();
}

test('prefixes, ways and sizes that make no sense are refused', () => {
  const faults = (change: object): string => {
    const found = requestOf({ ...FLAGS, podCidr: [A], ...change });
    return Array.isArray(found) ? found.join('; ') : '';
  };
  for (const one of ['fe80::/96', 'ff02::/96', '::/96', '::/0']) {
    assert.match(
      faults({ podCidr: [one] }),
      /is for no pods: addresses of links, loops and groups/,
    );
  }
  assert.match(faults({ podCidr: [A, '127.0.0.0/24'] }), /127.0.0.0\/24 is for no pods/);
  assert.match(faults({ route: [`${A}=2001:db8:1::9`] }), /leads the pods of this node elsewhere/);
  assert.match(faults({ route: ['::/0=2001:db8:1::9'] }), /the machine's own way to everywhere/);
  assert.match(faults({ mtu: 100 }), /100 is less than the 1280 that IPv6 needs/);
  assert.equal(faults({ podCidr: [A, '10.1.0.0/24'], mtu: 1280 }), '');
});

test('what cannot be is told before anything is done', { skip }, () => {
  const refused = (flags: readonly string[], code: number, words: RegExp): void => {
    const { code: found, err } = segment.network('a', ...flags);
    assert.match(err, words);
    assert.equal(found, code);
  };
  refused(['--uplink', 'eth9', '--pod-cidr', A], 1, /there is no interface eth9; there are eth0/);
  refused(['--uplink', 'eth0', '--pod-cidr', '2001:db8:1::a:0:0/126'], 2, /too small/);
  refused(['--uplink', 'eth0', '--pod-cidr', '2001:db8:1::a:0:1/96'], 2, /bits beyond its length/);
  refused(['--uplink', 'e;reboot', '--pod-cidr', A], 2, /no name of an interface/);
  refused(['--uplink', 'eth0', '--pod-cidr', '10.0.0.0/24'], 2, /one prefix of IPv6 is needed/);
  const uplink = ['--uplink', 'eth0', '--pod-cidr'];
  refused([...uplink, '2001:db8:1::/64'], 1, /holds all of the segment of eth0 \(2001:db8:1::/);
  refused(['--uplink', 'lo', '--pod-cidr', A], 1, /lo reaches nobody/);
  refused(['--uplink', 'eth0'], 2, /--uplink and --pod-cidr are needed/);
  refused(['--uplink', 'eth0', '--pod-cidr', '2001:db8:1::a:0:4/124'], 2, /bits beyond/);
  segment.ip('a', 'link', 'add', 'mp0', 'type', 'bridge');
  segment.ip('a', 'addr', 'add', 'fd00::1/64', 'dev', 'mp0');
  refused(['--uplink', 'eth0', '--pod-cidr', A], 1, /mp0 exists already, with fd00::1\/64/);
  segment.ip('a', 'link', 'del', 'mp0');
  assert.deepEqual(segment.proxied('a'), []);
});

test(
  'pods of two nodes reach each other, and each is seen under its own address',
  { skip },
  async () => {
    assert.deepEqual(segment.network('a', '--uplink', 'eth0', '--pod-cidr', A), {
      code: 0,
      out: '',
      err: '',
    });
    const other = segment.network('b', '--uplink', 'eth0', '--pod-cidr', A);
    assert.equal(other.code, 1);
    assert.match(other.err, /another node of this segment answers for 2001:db8:1::a:0:0\/96/);
    assert.equal(segment.network('b', '--uplink', 'eth0', '--pod-cidr', B).code, 0);
    const [first = ''] = segment.addPod('a', 'p1');
    const [second = ''] = segment.addPod('a', 'p2');
    const [far = ''] = segment.addPod('b', 'p3');
    // not that of the bridge, and not the node's own
    assert.deepEqual(
      [first, second, far],
      ['2001:db8:1::a:0:6', '2001:db8:1::a:0:7', '2001:db8:1::b:0:6'],
    );
    assert.deepEqual(segment.proxied('a').toSorted(), ['2001:db8:1::a:0:1', first, second]);
    await serve('p3');
    assert.equal(seenFrom('p1', far), first);
    await serve('p2');
    assert.equal(seenFrom('p1', second), first);
    assert.equal(seenFrom('p3', second), far);
    // from outside, and from the nodes themselves
    assert.equal(seenFrom('sw', far), '2001:db8:1::ffff');
    assert.equal(seenFrom('a', far), '2001:db8:1::a:0:5');
    assert.equal(seenFrom('b', far), '2001:db8:1::b:0:1');
  },
);

test(
  'entries are checked, made again after a restart, and removed with their pod',
  { skip },
  () => {
    const [address = ''] = segment.addPod('a', 'p4');
    const type = 'megaplane-ndp';
    const plugin = segment.conflist('a').plugins.find((one) => one.type === type);
    const prevResult = { cniVersion: '1.0.0', ips: [{ address: `${address}/96` }] };
    const config = { ...plugin, cniVersion: '1.0.0', name: 'megaplane', prevResult };
    assert.equal(segment.plugin('CHECK', 'a', 'p4', type, config).code, 0);
    for (const one of segment.proxied('a'))
      segment.ip('a', '-6', 'neigh', 'del', 'proxy', one, 'dev', 'eth0');
    const missing = segment.plugin('CHECK', 'a', 'p4', type, config);
    assert.match(missing.out, /"code":101,.*is not in the neighbour proxy of eth0/);
    assert.equal(segment.network('a', '--uplink', 'eth0', '--pod-cidr', A).code, 0);
    assert.equal(segment.plugin('CHECK', 'a', 'p4', type, config).code, 0);
    assert.equal(segment.proxied('a').length, 4);
    const { prevResult: _, ...bare } = config;
    // runtimes that have lost the result tell none
    assert.equal(segment.plugin('DEL', 'a', 'p4', type, bare).code, 0);
    assert.equal(segment.plugin('DEL', 'a', 'p4', type, bare).code, 0);
    assert(!segment.proxied('a').includes(address));
  },
);

test('what is no longer valid is collected, and the state of the network is told', { skip }, () => {
  const type = 'megaplane-ndp';
  const plugin = segment.conflist('a').plugins.find((one) => one.type === type);
  const valid = [{ containerID: 'id-p1', ifname: 'eth0' }];
  const base = { ...plugin, cniVersion: '1.1.0', name: 'megaplane' };
  assert.equal(segment.plugin('STATUS', 'a', '', type, base).code, 0);
  const config = { ...base, 'cni.dev/valid-attachments': valid };
  assert.deepEqual(segment.plugin('GC', 'a', '', type, config), { code: 0, out: '', err: '' });
  assert.deepEqual(segment.proxied('a').toSorted(), ['2001:db8:1::a:0:1', '2001:db8:1::a:0:6']);
  segment.run('a', ['sysctl', '-qw', 'net.ipv6.conf.eth0.proxy_ndp=0']);
  assert.match(
    segment.plugin('STATUS', 'a', '', type, base).out,
    /"code":50,.*proxy of eth0 is off/,
  );
});

test('garbage is answered as CNI has it, and changes nothing', { skip }, () => {
  const before = segment.proxied('a');
  const type = 'megaplane-ndp';
  for (const [verb, text, code] of [
    ['ADD', '', 6],
    ['ADD', 'x', 6],
    ['ADD', '{"a":', 6],
    ['ADD', '[]', 6],
    ['ADD', '{}}', 6],
    ['ADD', '{"a":"\\"}', 6],
    ['ADD', '{}', 7],
    ['ADD', '{"cniVersion":"7.0.0"}', 1],
    ['ADD', '{"cniVersion":"1.0.0","uplink":"$(reboot)","stateDir":"/tmp"}', 7],
    ['ADD', '{"cniVersion":"1.0.0","uplink":"eth0","stateDir":"tmp"}', 7],
    ['ADD', '{"cniVersion":"1.0.0","uplink":"eth0","stateDir":"/tmp"}', 7],
    [
      'ADD',
      '{"cniVersion":"1.0.0","uplink":"eth0","stateDir":"/tmp","prevResult":{"ips":[{"address":"`id`"}]}}',
      7,
    ],
    ['EAT', '{}', 4],
  ] as const) {
    const { code: ended, out } = segment.plugin(verb, 'a', 'p1', type, text);
    const answer = JSON.parse(out) as { code: number; msg: string };
    assert.deepEqual([ended, answer.code], [1, code], `${text}: ${out}`);
  }
  assert.deepEqual(segment.proxied('a'), before);
});

test('taken down, nothing is left behind', { skip }, () => {
  const held = segment.network('b', '--down');
  assert.equal(held.code, 1);
  assert.match(held.err, /one pod is still on mp0 .*--force cuts them off/);
  for (const node of ['a', 'b']) {
    assert.deepEqual(segment.network(node, '--down', '--force'), { code: 0, out: '', err: '' });
    assert.deepEqual(segment.proxied(node), []);
    assert.doesNotMatch(segment.ip(node, 'link', 'show'), /mp0/);
    for (const path of ['all/forwarding', 'all/proxy_ndp', 'eth0/proxy_ndp', 'eth0/accept_ra']) {
      const { out } = segment.run(node, ['cat', `/proc/sys/net/ipv6/conf/${path}`]);
      assert.equal(out.trim(), path === 'eth0/accept_ra' ? '1' : '0', path);
    }
    assert.deepEqual(readdirSync(segment.configDir(node)), []);
    assert(!existsSync(segment.state(node)) || readdirSync(segment.state(node)).length === 0);
  }
  assert.deepEqual(readdirSync(join(segment.dir, 'bin')), []);
  assert.equal(segment.network('a', '--down').code, 0);
});
