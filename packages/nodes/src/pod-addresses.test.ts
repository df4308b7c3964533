import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AddressPool, addressNumber, addressText } from './addresses.ts';
import { networkOf, NO_NETWORK, PodAddresses } from './pod-addresses.ts';

test('a pod has an address of its node, and of the pool where the node has no network', () => {
  const addresses = new PodAddresses(new AddressPool('10.0.0.0/24'));
  const network = networkOf('10.7.0.0/30');
  const given = [1, 2, 3].map(() => addresses.allocate(network));
  assert.deepEqual(given.map(addressText).slice(0, 2), ['10.7.0.1', '10.7.0.2']);
  assert.equal(given[2], -1);
  assert.equal(addressText(addresses.allocate()), '10.0.0.1');
  addresses.free(addressNumber('10.7.0.1'));
  assert.equal(addressText(addresses.allocate(network)), '10.7.0.1');
});

test('addresses that pods have from before are not given out again', () => {
  const addresses = new PodAddresses(new AddressPool('10.0.0.0/24'));
  for (const one of ['10.0.0.1', '10.7.0.1', 'none']) addresses.take(one);
  assert.equal(addressText(addresses.allocate()), '10.0.0.2');
  assert.equal(addressText(addresses.allocate(networkOf('10.7.0.0/24'))), '10.7.0.2');
});

test('a network that is none counts as none', () => {
  for (const one of ['', 'fd00::/64', '10.0.0.0/99']) assert.deepEqual(networkOf(one), NO_NETWORK);
});

test('a large network gives every address once', () => {
  const addresses = new PodAddresses(new AddressPool('10.0.0.0/24'));
  const network = networkOf('10.8.0.0/22');
  const given = new Set(Array.from({ length: 1022 }, () => addresses.allocate(network)));
  assert.equal(given.size, 1022);
  assert.ok(!given.has(-1));
});
