import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { internalAddress, isReady } from './node-scan.ts';

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
    address: fc.ipV4(),
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
      const internal = value.addresses?.find(({ type }) => type === 'InternalIP');
      assert.equal(internalAddress(bytes, 2, bytes.length - 2), internal?.address ?? '');
    }),
  );
  assert.equal(isReady(Buffer.from('{}'), -1, -1), false);
});
