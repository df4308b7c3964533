import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { hasInternalAddress, hostAddresses, isReady, podCidrs, podIps } from './node-scan.ts';

test('the Ready condition and the internal address are found wherever they stand', () => {
  const condition = fc.record(
    {
      type: fc.constantFrom('Ready', 'MemoryPressure', 'NotReady'),
      status: fc.constantFrom('True', 'False', 'Unknown'),
      message: fc.string(),
    },
    { requiredKeys: ['type'] },
  );
  const address = fc.record({
    address: fc.oneof(fc.ipV4(), fc.ipV6()),
    type: fc.constantFrom('Hostname', 'InternalIP', 'ExternalIP'),
  });
  const status = fc.record(
    { phase: fc.string(), conditions: fc.array(condition), addresses: fc.array(address) },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(status, fc.constantFrom(undefined, 2), (value, indent) => {
      const bytes = Buffer.from(`..${JSON.stringify(value, undefined, indent)}..`);
      const ready = value.conditions?.find(({ type }) => type === 'Ready');
      assert.equal(isReady(bytes, 2, bytes.length - 2), ready?.status === 'True');
      const ofType = (wanted: string): string[] =>
        (value.addresses ?? []).flatMap((one) => (one.type === wanted ? one.address : []));
      const internal = ofType('InternalIP');
      assert.equal(hasInternalAddress(bytes, 2, bytes.length - 2), internal.length > 0);
      const hosts = [...internal, ...ofType('ExternalIP')];
      assert.deepEqual(hostAddresses(bytes, 2, bytes.length - 2), hosts);
    }),
  );
  assert.equal(isReady(Buffer.from('{}'), -1, -1), false);
});

test('networks of pods and addresses of a pod: all of them, or the one of old objects', () => {
  const read = (scan: typeof podCidrs, value: object): string[] => {
    const bytes = Buffer.from(JSON.stringify(value));
    return scan(bytes, 0, bytes.length);
  };
  const both = ['10.1.0.0/24', 'fd00::/64'];
  assert.deepEqual(read(podCidrs, { podCIDR: both[0], podCIDRs: both }), both);
  assert.deepEqual(read(podCidrs, { podCIDR: both[1] }), [both[1]]);
  assert.deepEqual(read(podCidrs, { podCIDRs: null, podCIDR: both[0] }), [both[0]]);
  assert.deepEqual(read(podCidrs, {}), []);
  assert.deepEqual(read(podIps, { podIP: 'a', podIPs: [{ ip: 'a' }, { ip: 'b' }] }), ['a', 'b']);
  assert.deepEqual(read(podIps, { podIP: 'a', podIPs: [] }), ['a']);
  assert.deepEqual(podIps(Buffer.from('{}'), -1, -1), []);
});
