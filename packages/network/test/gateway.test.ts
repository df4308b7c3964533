/** A gateway to IPv4 and a firewall, in namespaces, with tayga, unbound and nft. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Segment, segmentSkip } from './segment.ts';

const hasPrograms = ['tayga', 'unbound'].every((name) => {
  return spawnSync('sh', ['-c', `command -v ${name}`]).status === 0;
});
const skip =
  segmentSkip() || (hasPrograms ? false : 'needs tayga and unbound: apt-get install tayga unbound');
const BASE = '2001:db8:1::a:0:0/95';
const SERVER = (port: number): string =>
  `require('net').createServer((s) => s.end(s.remoteAddress)).listen(${port}, '::', () => console.log('up'))`;
const CLIENT = (address: string, port: number, waitMs: number): string =>
  `const s=require('net').connect(${port}, '${address}'); s.setTimeout(${waitMs}, () => { console.log('silence'); s.destroy(); });` +
  `s.on('data', (b) => console.log(String(b))).on('error', (e) => console.log(e.code))`;
/** Answers every question for A with 198.51.100.2, and every other one with nothing. */
const NAMES = `
const s = require('dgram').createSocket('udp4');
s.on('message', (m, from) => {
  let at = 12; while (m[at] !== 0) at += m[at] + 1;
  const isA = m.readUInt16BE(at + 1) === 1;
  const head = Buffer.from([m[0], m[1], 0x81, 0x80, 0, 1, 0, isA ? 1 : 0, 0, 0, 0, 0]);
  const own = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 198, 51, 100, 2]);
  s.send(Buffer.concat([head, m.subarray(12, at + 5), ...(isA ? [own] : [])]), from.port, from.address);
});
s.bind(53, () => console.log('up'));`;
let segment: Segment;

before(() => {
  if (skip !== false) return;
  segment = new Segment();
  segment.addNode('a', '2001:db8:1::a:0:5');
  segment.addNode('gw', '2001:db8:1::64');
  segment.addBehind('gw', 'v4', '198.51.100.1/24', '198.51.100.2/24');
});
after(() => segment?.remove());

async function start(short: string, program: string): Promise<void> {
  const child = segment.start(short, [process.execPath, '-e', program]);
  if (child.stdout !== null) await once(child.stdout, 'data');
}

/** Who the server says asks. An answer may take long on a busy machine; silence has to end. */
function ask(from: string, address: string, port = 8080, waitMs = 15_000): string {
  return segment.run(from, [process.execPath, '-e', CLIENT(address, port, waitMs)]).out.trim();
}

test(
  'names without IPv6 get an address behind the gateway, and it is reached',
  { skip },
  async () => {
    const state = join(segment.dir, 'nat64');
    const flags = ['--uplink', 'eth1', '--client', '2001:db8:1::/64', '--state-dir', state];
    const dns = ['--listen', '2001:db8:1::64', '--forward', '198.51.100.2'];
    await start('v4', SERVER(8080));
    await start('v4', NAMES);
    const wrong = segment.megaplane('gw', 'nat64', '--uplink', 'eth1', '--state-dir', state);
    assert.deepEqual([wrong.code, /without a prefix of clients/.test(wrong.err)], [2, true]);
    const made = segment.megaplane('gw', 'nat64', ...flags, ...dns, '--pool', '10.255.0.0/24');
    assert.deepEqual([made.code, made.err], [0, '']);
    assert.match(made.out, /At most 253 pods/);
    segment.ip('a', '-6', 'route', 'add', 'fd00:64:64::/96', 'via', '2001:db8:1::64');
    const lookUp = `const r = new (require('dns').promises.Resolver)({ timeout: 1000, tries: 9 }); r.setServers(['2001:db8:1::64']); r.resolve6('old.example').then((a) => console.log(a[0]), (e) => console.log(e.code))`;
    const { out } = segment.run('a', [process.execPath, '-e', lookUp]);
    assert.equal(out.trim(), 'fd00:64:64::c633:6402');
    // the server sees the gateway: that is the price
    assert.equal(ask('a', out.trim()), '::ffff:198.51.100.1');
    // once more changes nothing, and all of it goes
    assert.equal(
      segment.megaplane('gw', 'nat64', ...flags, ...dns, '--pool', '10.255.0.0/24').code,
      0,
    );
    assert.deepEqual(segment.megaplane('gw', 'nat64', '--down', '--state-dir', state).err, '');
    assert.doesNotMatch(segment.ip('gw', 'link', 'show'), /nat64/);
    assert(!existsSync(join(state, 'nat64.json')));
  },
);

test(
  'rules of constant size let pods reach each other, and others what is named',
  { skip },
  async () => {
    const pods = '2001:db8:1::a:0:0/96';
    assert.equal(segment.network('a', '--uplink', 'eth0', '--pod-cidr', pods).code, 0);
    const [own = ''] = segment.addPod('a', 'p1');
    await start('p1', SERVER(8080));
    await start('p1', SERVER(443));
    assert.equal(ask('sw', own), '2001:db8:1::ffff');
    const rules = ['policy', '--base', BASE, '--pod-cidr', pods, '--uplink', 'eth0'];
    const more = [
      '--public-port',
      '443',
      '--control-plane',
      '2001:db8:1::64/128',
      '--node-port',
      '53',
    ];
    const named = ['--node', '2001:db8:1::b:0:0/96', '--admin', '2001:db8:1::64/128'];
    assert.deepEqual(segment.megaplane('a', ...rules, ...more, ...named, '--check').err, '');
    assert.deepEqual(segment.megaplane('a', ...rules, ...more, '--apply').err, '');
    assert.deepEqual(segment.megaplane('a', ...rules, ...more, '--apply').err, '', 'twice is once');
    // the switch stands outside of the base
    assert.equal(ask('sw', own, 443), '2001:db8:1::ffff');
    assert.equal(ask('sw', own, 8080, 1500), 'silence');
    assert.equal(ask('a', own), '2001:db8:1::a:0:1');
    // nobody claims to be another pod
    segment.ip('p1', 'addr', 'add', '2001:db8:1::a:0:99/128', 'dev', 'eth0', 'nodad');
    const size = segment.run('a', ['nft', 'list', 'table', 'inet', 'megaplane_policy']).out.length;
    assert(size < 4000, `${size} bytes`);
    const bad = segment.megaplane(
      'a',
      'policy',
      '--base',
      BASE,
      '--pod-cidr',
      'fd00::/96',
      '--uplink',
      'eth0',
    );
    assert.match(bad.err, /fd00::\/96 does not lie in 2001:db8:1::a/);
  },
);
