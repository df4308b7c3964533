import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  commonNetworks,
  networkOf,
  PodAddresses,
  type PodNetwork,
  plannedCidr,
  plannedNetworks,
} from './pod-addresses.ts';
import { IpPairs, PodIps } from './pod-ips.ts';

function networks(...cidrs: string[]): PodNetwork[] {
  return cidrs.flatMap((cidr) => networkOf(cidr) ?? []);
}

test('a pod has an address of its node, and of the pool where the node has no network', () => {
  const addresses = new PodAddresses('10.0.0.0/24');
  const network = networks('10.7.0.0/30');
  const given = [1, 2, 3].map(() => addresses.allocate(network));
  assert.deepEqual(given, [['10.7.0.1'], ['10.7.0.2'], []]);
  assert.deepEqual(addresses.allocate(), ['10.0.0.1']);
  addresses.free('10.7.0.1');
  assert.deepEqual(addresses.allocate(network), ['10.7.0.1']);
});

test('addresses that pods have from before are not given out again', () => {
  const addresses = new PodAddresses('10.0.0.0/24,fd00::/64');
  for (const one of ['10.0.0.1', '10.7.0.1', 'none', 'fd00:7::1', 'fd00::1']) addresses.take(one);
  assert.deepEqual(addresses.allocate(), ['10.0.0.2', 'fd00::2']);
  const own = networks('fd00:7::/64', '10.7.0.0/24');
  assert.deepEqual(addresses.allocate(own), ['fd00:7::2', '10.7.0.2']);
});

test('a pod has an address of each network of its node, in order, and gives them back', () => {
  const ips = new PodIps(new PodAddresses('10.0.0.0/24'));
  const own = networks('fd00:7::/126', '10.7.0.0/24');
  assert.deepEqual(ips.of(0, own), ['fd00:7::1', '10.7.0.1']);
  assert.deepEqual(ips.of(0, own), ['fd00:7::1', '10.7.0.1']);
  assert.deepEqual(ips.of(1, own), ['fd00:7::2', '10.7.0.2']);
  assert.deepEqual(ips.of(2, own), ['10.7.0.3']);
  ips.free(0);
  ips.reset(3);
  assert.deepEqual(ips.of(3, own), ['fd00:7::1', '10.7.0.1']);
  ips.keep(3, ['10.7.0.9']);
  assert.deepEqual(ips.of(3, own), ['fd00:7::1', '10.7.0.1']);
});

test('the first address of each family is kept, whichever comes first', () => {
  const pairs = new IpPairs();
  const read = (...texts: string[]): readonly string[] => {
    pairs.set(5, texts);
    return pairs.get(5);
  };
  assert.deepEqual(read('fd00::9', 'fd00::1', '10.0.0.1'), ['fd00::9', '10.0.0.1']);
  assert.deepEqual(read('10.0.0.1', '10.0.0.2', 'fd00::1'), ['10.0.0.1', 'fd00::1']);
  assert.deepEqual(read('host.example', 'FD00:0::1'), ['fd00::1']);
  assert.deepEqual(read('10.0.0.1'), ['10.0.0.1']);
  assert.deepEqual(read(), []);
  assert.ok(!pairs.has(5));
});

test('a network that is none counts as none', () => {
  for (const one of ['', 'fd00::/0', 'fd00::/127', 'fd00::1', '10.0.0.0/99', '10.0.0.0/31']) {
    assert.equal(networkOf(one), undefined, one);
    assert.equal(commonNetworks(one), undefined, one);
  }
  assert.equal(commonNetworks('10.0.0.0/9,10.128.0.0/9'), undefined);
  assert.equal(commonNetworks('fd00::/64, 10.0.0.0/9')?.length, 2);
});

test('a large network gives every address once, and parts of a common one give others', () => {
  const addresses = new PodAddresses('10.0.0.0/24');
  for (const own of [networks('10.8.0.0/22'), networks('fd00::/118')]) {
    const given = new Set(Array.from({ length: 1022 }, () => addresses.allocate(own)[0]));
    assert.equal(given.size, 1022);
    assert.ok(!given.has(undefined));
  }
  const parts = [0, 1, 2].map((index) => new PodAddresses('fd00::/120', index, 3));
  const all = parts.flatMap((part) => Array.from({ length: 80 }, () => part.allocate()[0]));
  assert.equal(new Set(all).size, 240);
});

test('by a plan the network of a node follows from its number', () => {
  const plan = plannedNetworks('plan:fd00:10::/76/96');
  assert(plan !== undefined);
  assert.equal(plan.nodesMax, 2 ** 20);
  assert.equal(plannedCidr(plan, 0), 'fd00:10::/96');
  assert.equal(plannedCidr(plan, 999_999), 'fd00:10::f:423f:0:0/96');
  for (const text of [
    'fd00::/76',
    'plan:10.0.0.0/8/24',
    'plan:fd00::/96/76',
    'plan:x/1/2',
    'plan:',
  ]) {
    assert.equal(plannedNetworks(text), undefined, text);
  }
});
