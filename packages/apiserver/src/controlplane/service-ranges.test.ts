import assert from 'node:assert/strict';
import { test } from 'node:test';
import { firstAddressOf, serviceRangesOf } from './service-ranges.ts';

test('one range, or one of each family', () => {
  assert.deepEqual(serviceRangesOf(), ['10.96.0.0/16']);
  assert.deepEqual(serviceRangesOf('10.96.7.1/16,fd00:96::7/108'), [
    '10.96.0.0/16',
    'fd00:96::/108',
  ]);
  assert.deepEqual(serviceRangesOf('fd00:96::/112', '::1'), ['fd00:96::/112']);
  assert.equal(firstAddressOf('10.96.0.0/16'), '10.96.0.1');
  assert.equal(firstAddressOf('fd00:96::/112'), 'fd00:96::1');
});

test('other ranges are refused, in upstream’s words where it has some', () => {
  const refusals: readonly (readonly [string, string, RegExp])[] = [
    ['10.96.0.0', '127.0.0.1', /service-cluster-ip-range\[0\] is not a valid cidr/],
    ['10.96.0.0/16,', '127.0.0.1', /service-cluster-ip-range\[1\] is not an ip net/],
    ['10.0.0.0/16,fd00::/112,10.1.0.0/16', '127.0.0.1', /must not contain more than two entries/],
    ['10.0.0.0/16,10.1.0.0/16', '127.0.0.1', /must be of different IP family/],
    ['10.0.0.0/30', '127.0.0.1', /must be at least 8 IP addresses/],
    ['fd00::/48', '::1', /shortest allowed prefix length for service CIDR is 64, got 48/],
    ['fd00::/112', '127.0.0.1', /"fd00::\/112" must match public address family "127.0.0.1"/],
  ];
  for (const [flag, address, text] of refusals) {
    assert.throws(() => serviceRangesOf(flag, address), text);
  }
});
