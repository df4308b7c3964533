import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromBinary } from '@bufbuild/protobuf';
import { stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { canonicalQuantity } from '@megaplane/machinery/quantity';
import * as fc from 'fast-check';
import { ClusterCapacityNeedsSchema } from '../contract/tables/capacity.ts';
import { needOf, rowKey } from './cell.ts';
import type { Row } from './cell.ts';
import { rollUp } from './full.ts';
import { RollingRollUp } from './rolling.ts';

let namespace = '';

function rolling(groupsByNamespace = true, clusterId = 'c1'): RollingRollUp {
  return new RollingRollUp({ clusterId, groupsByNamespace, namespaceOf: () => namespace });
}

function put(roll: RollingRollUp, row: number, request: JsonObject): void {
  namespace = stringAt(request, 'metadata', 'namespace');
  const bytes = Buffer.from(` ${JSON.stringify(request)} `);
  roll.upsert(row, bytes, 1, bytes.length - 1);
}

/** By value: how a sum is written may depend on the order in which requests came. */
function plain(row: Row): unknown {
  const values = (map: Row['aggregate']): unknown =>
    Object.fromEntries([...map].map(([name, amount]) => [name, String(amount.scaled(-9))]));
  const { profile, fingerprint, group, aggregate, minUnit } = row;
  return [fingerprint, group, profile, values(aggregate), values(minUnit)];
}

const quantity = fc.constantFrom(
  '1',
  '500m',
  '1Gi',
  '1073741824',
  '3e9',
  '0',
  '-1',
  '0.1',
  '1025Ki',
);
const spec = fc.record(
  {
    priority: fc.constantFrom(0, 1),
    resources: fc.dictionary(fc.constantFrom('cpu', 'memory', 'gpu'), quantity, { maxKeys: 2 }),
    requirements: fc.array(
      fc.record({
        key: fc.constantFrom('a', 'b'),
        operator: fc.constantFrom('In', 'In', 'Exists', 'Gt'),
        values: fc.subarray(['x', 'y']),
      }),
      { maxLength: 2 },
    ),
    interruptionPenalty: fc.constantFrom('1', '0.7', 'bad'),
    coLocation: fc.record({ topologyKey: fc.constantFrom('rack', '') }),
  },
  { requiredKeys: ['priority', 'resources'] },
);
const change = fc.record({
  row: fc.nat(7),
  request: fc.option(
    fc.record({
      metadata: fc.record({ name: fc.constant('r'), namespace: fc.constantFrom('x', 'y') }),
      spec,
      status: fc.constantFrom({}, { phase: 'Pending' }, { phase: 'Acknowledged' }),
    }),
    { freq: 4 },
  ),
  isBuilt: fc.boolean(),
  isTurned: fc.boolean(),
});

test('rows kept from events equal rows of all requests, whatever came between', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 60 }), fc.boolean(), (changes, byNamespace) => {
      const roll = rolling(byNamespace);
      const present = new Map<number, JsonObject>();
      for (const { row, request, isBuilt, isTurned } of changes) {
        if (request === null) {
          present.delete(row);
          roll.remove(row);
        } else {
          const named = { ...request, metadata: { ...request.metadata, name: `r${row}` } };
          present.set(row, named);
          put(roll, row, isTurned ? turned(named) : named);
        }
        if (isBuilt) compare(roll, present, byNamespace);
      }
      compare(roll, present, byNamespace);
    }),
    { seed: 27, numRuns: 300 },
  );
});

/** The same object with its status first and its spec last. */
function turned({ status = null, metadata = null, spec: asked = null }: JsonObject): JsonObject {
  return { status, metadata, spec: asked };
}

function compare(
  roll: RollingRollUp,
  present: ReadonlyMap<number, JsonObject>,
  groupsByNamespace: boolean,
): void {
  const full = rollUp([...present.values()], { groupsByNamespace });
  const expected = full.rows.toSorted((a, b) => (rowKey(a) < rowKey(b) ? -1 : 1));
  assert.deepEqual(roll.rows().map(plain), expected.map(plain));
  assert.equal(roll.size, present.size);
  assert.equal(roll.refused.size, full.skipped.size);
  assert.equal(roll.pending.size, full.pending.length);
  const { needs } = fromBinary(ClusterCapacityNeedsSchema, roll.build(7n));
  assert.deepEqual(needs, roll.rows().map(needOf));
}

test('the message is what its numbers say, also with a name and a time of many bytes', () => {
  const roll = rolling(true, 'ä'.repeat(100));
  put(roll, 3, { spec: { priority: -1, resources: { cpu: '2' } } });
  const message = fromBinary(ClusterCapacityNeedsSchema, roll.build(1_780_000_000_000_000_000n));
  assert.equal(message.clusterId, 'ä'.repeat(100));
  assert.equal(message.timestampUnixNanos, 1_780_000_000_000_000_000n);
  assert.equal(message.needs[0]?.priority, -1);
  const empty = fromBinary(ClusterCapacityNeedsSchema, rolling().build(0n));
  assert.deepEqual([empty.clusterId, empty.needs], ['c1', []]);
});

test('what is no request is refused, row by row, and comes back when it is mended', () => {
  const roll = rolling();
  const bytes = Buffer.from('{"metadata":{},"spec":{"priority":');
  roll.upsert(0, bytes, 0, bytes.length);
  roll.upsert(1, Buffer.from('null'), 0, 4);
  put(roll, 2, { spec: null });
  put(roll, 3, { spec: { priority: 0, resources: { cpu: 'x' } } });
  assert.deepEqual(
    [...roll.refused.values()].map(({ reason }) => reason),
    ['MalformedSpec', 'MalformedSpec', 'MalformedSpec', 'MalformedQuantity'],
  );
  assert.deepEqual(roll.rows(), []);
  for (let row = 0; row < 4; row++) {
    put(roll, row, { spec: { priority: 0, resources: { cpu: '1' } } });
  }
  const [row] = roll.rows();
  assert.equal(roll.refused.size, 0);
  assert.equal(String(row?.aggregate.get('cpu')), canonicalQuantity('4'));
});

test('a row that is unchanged keeps its bytes', () => {
  const roll = rolling();
  put(roll, 0, { spec: { priority: 0, resources: { cpu: '1' } } });
  put(roll, 1, { spec: { priority: 1, resources: { cpu: '1' } } });
  const first = roll.build(1n);
  put(roll, 1, { spec: { priority: 1, resources: { cpu: '2' } } });
  put(roll, 1, { spec: { priority: 1, resources: { cpu: '1' } }, status: { phase: 'Pending' } });
  assert.deepEqual(roll.build(1n), first);
});

test('a status counts where it stands', () => {
  const roll = rolling();
  const spec = { priority: 0, resources: { cpu: '1' } };
  const status = { phase: 'Acknowledged' };
  put(roll, 0, { metadata: {}, spec, status });
  put(roll, 1, turned({ metadata: {}, spec, status }));
  put(roll, 2, { metadata: {}, spec });
  assert.deepEqual([...roll.pending], [2]);
  assert.equal(roll.rows().length, 1);
});
