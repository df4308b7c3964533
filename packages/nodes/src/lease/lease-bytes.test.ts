import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { LeaseWriter } from './lease-bytes.ts';
import { leaseBody, microTime } from './lease-object.ts';
import { UidColumn } from '../columns/uid-column.ts';

const lease = fc.record({
  name: fc.stringMatching(/^[a-z0-9]([-a-z0-9.]{0,40}[a-z0-9])?$/),
  uid: fc.uuid(),
  version: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
  timeMs: fc.integer({ min: 0, max: 4e12 }),
});

test('a renewal in a template is the Lease that it would be as text', () => {
  for (const holder of ['', 'megaplane-nodes-1']) {
    const writer = new LeaseWriter(40, holder);
    const uids = new UidColumn();
    fc.assert(
      fc.property(fc.array(lease, { maxLength: 20 }), (leases) => {
        for (const [id, { name, uid, version, timeMs }] of leases.entries()) {
          uids.set(id, Buffer.from(uid), 0, uid.length);
          const time = microTime(timeMs);
          const own = holder === '' ? name : holder;
          const text = leaseBody(name, uid, version, 40, time, own);
          const bytes = writer.write(name, uids, id, version, time);
          assert.equal(bytes?.toString('utf8'), text);
        }
      }),
      { numRuns: 50 },
    );
  }
});

test('what a template cannot hold is left to the text', () => {
  const writer = new LeaseWriter(40, '');
  const uids = new UidColumn();
  const time = microTime(0);
  uids.set(1, Buffer.from('not-a-uuid'), 0, 10);
  assert.equal(writer.write('n', uids, 1, 1, time), null);
  const uid = '5f0c3a8e-7d0b-4a60-9d39-0d5f5b0f8d11';
  uids.set(2, Buffer.from(uid), 0, uid.length);
  assert.equal(writer.write('ü', uids, 2, 1, time), null);
  assert.equal(writer.write('"', uids, 2, 1, time), null);
  assert.equal(writer.write('', uids, 2, 1, time), null);
  assert.ok(writer.write('n', uids, 2, 1, time));
});
