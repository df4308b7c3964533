/** For tests: random requests of all kinds, the same for each seed. */
import fc from 'fast-check';
import type { Fields } from './peer.sim.ts';

const KEYS = ['a', 'a/', 'a/b', 'a/c', 'b', 'k\xff', '\0', 'zz'];
const key = fc.constantFrom(...KEYS);
const end = fc.constantFrom('', '', '\0', 'a0', 'b', 'c', 'zzz');
const flag = fc.constantFrom(0, 0, 1);
/** No order and no target of a sort: 3.6 refuses it, 3.4 ignores one and dies of the other. */
const UNKNOWN = 7;
const back = fc.constantFrom(-1, 0, 0, 0, 1, 2, 3, 9);

/** Revisions are drawn relative to the current one, which is known only when a request is made. */
export type Make = (revision: number) => { readonly path: string; readonly fields: Fields };

const rangeFields = fc
  .record({
    key,
    end,
    limit: fc.constantFrom(0, 0, 1, 2, 5, -1),
    back,
    order: fc.constantFrom(0, 0, 1, 2, 1, 2, UNKNOWN),
    target: fc.constantFrom(0, 0, 0, 1, 2, 3, 4, UNKNOWN),
    only: fc.nat(4),
    min: fc.nat(8),
  })
  .map((one) => (revision: number): Fields => {
    const fields: [number, number | string | Fields][] = [[1, one.key]];
    if (one.end !== '') fields.push([2, one.end]);
    if (one.limit !== 0) fields.push([3, one.limit]);
    if (one.back !== 0) fields.push([4, revision - one.back]);
    if (one.order > 0) fields.push([5, one.order]);
    if (one.target > 0) fields.push([6, one.target]);
    if (one.only === 1) fields.push([8, 1]);
    if (one.only === 2) fields.push([9, 1]);
    if (one.min === 1) fields.push([10, Math.max(1, revision - 2)]);
    if (one.min === 2) fields.push([11, Math.max(1, revision - 2)]);
    if (one.min === 3) fields.push([12, Math.max(1, revision - 4)]);
    if (one.min === 4) fields.push([13, Math.max(1, revision - 6)]);
    if (one.min === 5) fields.push([10, -3]);
    return fields;
  });
const value = fc.oneof(fc.constant(''), fc.string({ maxLength: 8 }), fc.constant('v'.repeat(300)));
const putFields = fc
  .record({
    key: fc.oneof(key, fc.constant('')),
    value,
    prev: flag,
    ignore: fc.nat(12),
    lease: fc.nat(15),
  })
  .map((one): Fields => {
    const fields: [number, number | string][] = [[1, one.key]];
    if (one.ignore !== 1 || one.lease === 1) fields.push([2, one.value]);
    if (one.lease === 2) fields.push([3, 77]);
    if (one.prev === 1) fields.push([4, 1]);
    if (one.ignore === 1) fields.push([5, 1]);
    if (one.ignore === 2) fields.push([6, 1]);
    return fields;
  });
const deleteFields = fc
  .record({ key, end, prev: flag })
  .map((one): Fields => [
    [1, one.key],
    ...(one.end === '' ? [] : [[2, one.end] as const]),
    [3, one.prev],
  ]);
const compareFields = fc
  .record({
    result: fc.nat(3),
    target: fc.nat(4),
    key,
    number: fc.nat(4),
    back: fc.nat(4),
    end: fc.constantFrom('', '', '', 'c', '\0'),
  })
  .map((one) => (revision: number): Fields => {
    const fields: [number, number | string][] = [
      [1, one.result],
      [2, one.target],
      [3, one.key],
    ];
    if (one.target === 0) fields.push([4, one.number]);
    if (one.target === 1) fields.push([5, Math.max(0, revision - one.back)]);
    if (one.target === 2) fields.push([6, Math.max(0, revision - one.back)]);
    if (one.target === 3) fields.push([7, 'v']);
    if (one.target === 4) fields.push([8, one.number]);
    if (one.end !== '') fields.push([64, one.end]);
    return fields;
  });
type Op = (revision: number) => Fields;
const op: fc.Arbitrary<Op> = fc.oneof(
  rangeFields.map((make): Op => (revision) => [[1, make(revision)]]),
  {
    weight: 2,
    arbitrary: putFields.map((fields): Op => () => [[2, fields]]),
  },
  deleteFields.map((fields): Op => () => [[3, fields]]),
  fc.constant<Op>(() => []),
);
const flat = fc
  .record({
    compares: fc.array(compareFields, { maxLength: 2 }),
    success: fc.array(op, { maxLength: 3 }),
    otherwise: fc.array(op, { maxLength: 3 }),
  })
  .map((one): Op => (revision) => [
    ...one.compares.map((make) => [1, make(revision)] as const),
    ...one.success.map((make) => [2, make(revision)] as const),
    ...one.otherwise.map((make) => [3, make(revision)] as const),
  ]);
const txnFields = fc
  .record({ outer: flat, inner: fc.option(flat, { freq: 2 }), field: fc.constantFrom(2, 3) })
  .map((one): Op => (revision) => [
    ...one.outer(revision),
    ...(one.inner === null ? [] : [[one.field, [[4, one.inner(revision)]]] as const]),
  ]);
const request: fc.Arbitrary<Make> = fc.oneof(
  {
    weight: 4,
    arbitrary: rangeFields.map((make): Make => (revision) => ({
      path: 'KV/Range',
      fields: make(revision),
    })),
  },
  {
    weight: 5,
    arbitrary: putFields.map((fields): Make => () => ({ path: 'KV/Put', fields })),
  },
  {
    weight: 2,
    arbitrary: deleteFields.map((fields): Make => () => ({ path: 'KV/DeleteRange', fields })),
  },
  {
    weight: 6,
    arbitrary: txnFields.map((make): Make => (revision) => ({
      path: 'KV/Txn',
      fields: make(revision),
    })),
  },
  {
    weight: 1,
    arbitrary: back.map((one): Make => (revision) => ({
      path: 'KV/Compact',
      fields: [
        [1, revision - one - 4],
        [2, 1],
      ],
    })),
  },
  {
    weight: 1,
    arbitrary: back.map((one): Make => (revision) => ({
      path: 'Maintenance/HashKV',
      fields: [[1, revision - one]],
    })),
  },
);

/** Times are long: no lease may end by itself at one server before the other. */
const lease = fc
  .record({ id: fc.constantFrom(5, 77, 77, 77, -3), ttl: fc.constantFrom(600, 5000, 9e9, 9e9 + 1) })
  .chain(({ id, ttl }) =>
    fc.constantFrom<readonly [string, Fields]>(
      [
        'Lease/LeaseGrant',
        [
          [1, ttl],
          [2, id],
        ],
      ],
      ['Lease/LeaseRevoke', [[1, id]]],
      [
        'Lease/LeaseTimeToLive',
        [
          [1, id],
          [2, 1],
        ],
      ],
      ['Lease/LeaseLeases', []],
    ),
  )
  .map(([path, fields]): Make => () => ({ path, fields }));

/** Without what is left of it, and with its keys in order: a map has none. */
export function sameLease(text: string): string {
  const rows = text.split(' | ').filter((row) => !row.startsWith('3:') || row === '3:-1');
  return rows.sort().join(' | ');
}

export function hasUnknown(fields: Fields): boolean {
  return fields.some(([, value]) =>
    typeof value === 'object' && !Buffer.isBuffer(value) ? hasUnknown(value) : value === UNKNOWN,
  );
}

/** A put that keeps what a range without end has just deleted ends real servers. */
export function isFatal(path: string, fields: Fields): boolean {
  const text = JSON.stringify(fields);
  return path === 'KV/Txn' && text.includes('[2,"\\u0000"]') && /\[[56],1\]/.test(text);
}

export function randomRequests(numRuns: number, seed: number): readonly Make[] {
  return fc.sample(fc.oneof({ weight: 12, arbitrary: request }, lease), { numRuns, seed });
}
