import assert from 'node:assert/strict';
import { isIP } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { ipText, networkText, parseIp, parseNetwork } from './ip-address.ts';
import {
  canonicalIpFaults,
  ipFaults,
  networkFaults,
} from '../validation/field/validation-addresses.ts';

test('every address that is one is read, and its text is read as the same', () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (text) => {
      assert.notEqual(isIP(text), 0);
      const address = parseIp(text);
      assert(address !== undefined, text);
      assert.deepEqual(parseIp(ipText(address))?.bytes, address.bytes);
    }),
  );
});

test('old forms of addresses are told from new ones', () => {
  const faults = (text: string): string => ipFaults(text).join();
  assert.equal(faults('10.0.0.1'), '');
  assert.equal(faults('FD00:0::1'), '');
  assert.equal(faults('010.0.0.1'), 'must not have leading 0s');
  assert.equal(faults('::ffff:1.2.3.4'), 'must not be an IPv4-mapped IPv6 address');
  for (const text of ['', '1.2.3', '256.1.1.1', '1::2::3', 'fe80::1%eth0', '1:2:3:4:5:6:7:8::']) {
    const wanted = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
    assert.equal(faults(text), wanted, text);
  }
  assert.deepEqual(canonicalIpFaults('FD00::1'), ['must be in canonical form ("fd00::1")']);
});

test('networks end where their bits end', () => {
  assert.deepEqual(networkFaults('10.0.0.0/8'), []);
  assert.deepEqual(networkFaults('10.0.0.1/8'), [
    'must not have bits set beyond the prefix length',
  ]);
  assert.deepEqual(networkFaults('10.0.0.0/08'), [
    'must not have leading 0s in IP or prefix length',
  ]);
  assert.deepEqual(networkFaults('10.0.0.0/33'), [
    'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
  ]);
  const text = (network: string): string => {
    const parsed = parseNetwork(network);
    assert(parsed !== undefined);
    return networkText(parsed);
  };
  assert.equal(text('10.1.2.3/15'), '10.0.0.0/15');
  assert.equal(text('fd00:1:2:3::5/48'), 'fd00:1:2::/48');
});
