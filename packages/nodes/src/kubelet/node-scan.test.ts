import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import * as scan from './node-scan.ts';

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
  const statuses = fc.record(
    {
      phase: fc.string(),
      conditions: fc.array(condition),
      addresses: fc.array(address),
      allocatable: fc.constant({ cpu: '1', conditions: [] }),
      daemonEndpoints: fc.record({ kubeletEndpoint: fc.record({ Port: fc.nat(65_535) }) }),
    },
    { requiredKeys: [] },
  );
  const status = new scan.StatusScan();
  fc.assert(
    fc.property(statuses, fc.constantFrom(undefined, 2), (value, indent) => {
      const bytes = Buffer.from(`..${JSON.stringify(value, undefined, indent)}..`);
      const ready = value.conditions?.find(({ type }) => type === 'Ready');
      const end = bytes.length - 2;
      status.scan(bytes, 2, end);
      assert.equal(scan.isReady(bytes, status.conditions, end), ready?.status === 'True');
      assert.equal(status.port, value.daemonEndpoints?.kubeletEndpoint.Port ?? -1);
      assert.equal(status.hasAllocatable, value.allocatable !== undefined);
      const ofType = (wanted: string): string[] =>
        (value.addresses ?? []).flatMap((one) => (one.type === wanted ? one.address : []));
      const internal = ofType('InternalIP');
      assert.equal(scan.hasInternalAddress(bytes, status.addresses, end), internal.length > 0);
      const hosts = [...internal, ...ofType('ExternalIP')];
      assert.deepEqual(scan.hostAddresses(bytes, status.addresses, end), hosts);
    }),
  );
  status.scan(Buffer.from('{}'), -1, -1);
  assert.equal(scan.isReady(Buffer.from('{}'), status.conditions, -1), false);
});

test('networks of pods: all of them, or the one of old objects', () => {
  const of = (read: typeof scan.podCidrs, value: object): string[] => {
    const bytes = Buffer.from(JSON.stringify(value));
    return read(bytes, 0, bytes.length);
  };
  const both = ['10.1.0.0/24', 'fd00::/64'];
  assert.deepEqual(of(scan.podCidrs, { podCIDR: both[0], podCIDRs: both }), both);
  assert.deepEqual(of(scan.podCidrs, { podCIDR: both[1] }), [both[1]]);
  assert.deepEqual(of(scan.podCidrs, { podCIDRs: null, podCIDR: both[0] }), [both[0]]);
  assert.deepEqual(of(scan.podCidrs, {}), []);
});
