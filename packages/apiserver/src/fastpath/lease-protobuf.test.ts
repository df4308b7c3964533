import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { restoreTemplate } from '@megaplane/machinery/apply/field-templates';
import { headOf } from '@megaplane/machinery/canonical';
import { LeaseProtobuf } from './lease-protobuf.ts';
import { ProtobufEncoder } from '../serializer/protobuf-encoder.ts';
import { findServed } from '../storage/served.ts';
import { Sink } from '../sink/sink.ts';
import { emptyRow } from '../storage/storage.ts';

const API_VERSION = 'coordination.k8s.io/v1';
const HEAD = headOf(API_VERSION, 'Lease');
const UID = '0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d0a1b';
const PLAIN_ID = 'lease-plain1';
const HOLED_ID = 'lease-holed1';
const OF_STATUS_ID = 'lease-status';
const manager = { name: 'kubelet', operation: 'Update', apiVersion: API_VERSION, subresource: '' };
restoreTemplate(PLAIN_ID, { ...manager, pieces: ['{"f:spec":{"f:renewTime":{}}}'] });
restoreTemplate(HOLED_ID, {
  ...manager,
  pieces: [
    '{"f:metadata":{"f:ownerReferences":{".":{},"k:{\\"uid\\":\\"',
    '\\"}":{}}},"f:spec":{"f:holderIdentity":{}}}',
  ],
});
restoreTemplate(OF_STATUS_ID, {
  ...manager,
  name: 'é',
  operation: 'Apply',
  subresource: 'status',
  pieces: ['{}'],
});

const served = findServed('coordination.k8s.io', 'v1', 'leases')!;
const encoder = new ProtobufEncoder(served);
const direct = new LeaseProtobuf();

/** A lease as it is stored. */
function stored(references: string | null, metadata: object, spec: object): Buffer {
  const rest = JSON.stringify(metadata).slice(1);
  const packed = references === null ? '' : `"managedFields":"${references}",`;
  return Buffer.from(`${HEAD.toString()}${packed}${rest},"spec":${JSON.stringify(spec)}}`);
}

/** What the encoder gives, and what the short way does, null where it leaves the lease to it. */
function both(value: Buffer, revision: number): [Buffer, Buffer | null] {
  const row = emptyRow();
  row.bytes = value;
  row.end = value.length;
  row.modRevision = revision;
  const [slow, fast] = [new Sink(), new Sink()];
  encoder.object(slow, row, revision);
  fast.ascii('before');
  const isWritten = direct.append(fast, value, HEAD.length, value.length, revision);
  assert.equal(fast.take().toString('latin1', 0, 6), 'before');
  if (!isWritten) assert.equal(fast.length, 6);
  return [slow.take(), isWritten ? fast.take().subarray(6) : null];
}

test("leases of nodes and of leaders become the encoder's bytes", () => {
  const metadata = { name: 'n', namespace: 'default', uid: UID };
  const created = { ...metadata, creationTimestamp: '2026-11-23T10:20:30Z' };
  const owner = { apiVersion: 'v1', kind: 'Node', name: 'n', uid: UID };
  const owned = { ...created, ownerReferences: [owner] };
  const controlled = {
    ...created,
    ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: false }],
  };
  const renewTime = '2028-02-29T23:59:59.000001Z';
  const spec = { holderIdentity: 'n', leaseDurationSeconds: 40, renewTime };
  const whole = { ...spec, acquireTime: '1970-01-01T00:00:00.999999Z', leaseTransitions: 300 };
  for (const [references, object, content] of [
    [`${HOLED_ID};t9x2ab;${UID}`, owned, spec],
    [`${PLAIN_ID};t9x2ab`, controlled, whole],
    [`${OF_STATUS_ID};`, created, { holderIdentity: 'é' }],
    [null, metadata, {}],
  ] as const) {
    const [slow, fast] = both(stored(references, object, content), 2 ** 40 + 1);
    assert.ok(fast !== null, JSON.stringify(object));
    assert.deepEqual(fast, slow);
  }
});

test('what leases seldom have is left to the encoder, or comes out as there', () => {
  const names = fc.constantFrom('n', 'node-1', 'a"b', 'é', '<&>', '');
  const times = fc.constantFrom(
    '2026-11-23T10:20:30.000000Z',
    '1969-12-31T23:59:59.999999Z',
    '0001-01-01T00:00:00.000000Z',
    '9999-12-31T00:00:00.123456Z',
  );
  const owners = fc.record(
    {
      apiVersion: names,
      kind: names,
      name: names,
      uid: names,
      controller: fc.boolean(),
      blockOwnerDeletion: fc.boolean(),
    },
    { requiredKeys: ['apiVersion', 'kind', 'name', 'uid'] },
  );
  const metadata = fc.record(
    {
      name: names,
      generateName: names,
      namespace: names,
      uid: names,
      generation: fc.nat(3),
      creationTimestamp: fc.constantFrom('2026-11-23T10:20:30Z', '1969-01-01T00:00:00Z'),
      deletionTimestamp: fc.constant('2026-11-23T10:20:30Z'),
      labels: fc.dictionary(names, names),
      annotations: fc.dictionary(names, names),
      ownerReferences: fc.array(owners, { maxLength: 2 }),
      finalizers: fc.array(names, { maxLength: 2 }),
    },
    { requiredKeys: ['name'] },
  );
  const spec = fc.record(
    {
      holderIdentity: names,
      leaseDurationSeconds: fc.constantFrom(0, 40, -1, 2 ** 31 - 1),
      acquireTime: times,
      renewTime: times,
      leaseTransitions: fc.constantFrom(0, 1, 300),
      strategy: names,
      preferredHolder: names,
    },
    { requiredKeys: [] },
  );
  const references = fc.constantFrom(
    null,
    `${PLAIN_ID};t9x2ab`,
    `${PLAIN_ID};`,
    `${HOLED_ID};t9x2ab;a%22b`,
    `${HOLED_ID};t9x2ab;${UID}`,
    `${PLAIN_ID};t9x2ab,${OF_STATUS_ID};t9x2ac`,
    'unknown-id12;t9x2ab',
  );
  fc.assert(
    fc.property(references, metadata, spec, fc.nat(), (packed, object, content, revision) => {
      const [slow, fast] = both(stored(packed, object, content), revision + 1);
      if (fast !== null) assert.deepEqual(fast, slow);
    }),
    { numRuns: 2000 },
  );
});
