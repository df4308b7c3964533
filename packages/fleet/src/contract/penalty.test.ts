import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bucketOfDollars, bucketOfText, dollarsOfBucket, isPenaltyBucket } from './penalty.ts';
import { PenaltyBucket } from './tables/capacity.ts';

const WRITTEN: readonly (readonly [string, PenaltyBucket])[] = [
  ['0', PenaltyBucket.ZERO],
  ['-3', PenaltyBucket.ZERO],
  ['1n', PenaltyBucket.HALF_DOLLAR],
  ['500m', PenaltyBucket.HALF_DOLLAR],
  ['500000001n', PenaltyBucket._1],
  ['501m', PenaltyBucket._1],
  ['1', PenaltyBucket._1],
  ['1.01', PenaltyBucket._2],
  ['8000', PenaltyBucket._8192],
  ['1Ki', PenaltyBucket._1024],
  ['1025', PenaltyBucket._2048],
  ['8388608', PenaltyBucket._8388608],
  ['8388608001m', PenaltyBucket.PINNED],
  ['20M', PenaltyBucket.PINNED],
  ['1e30', PenaltyBucket.PINNED],
];

test('a penalty is put into the smallest bucket that holds it', () => {
  for (const [text, bucket] of WRITTEN) assert.equal(bucketOfText(text), bucket, text);
  assert.equal(bucketOfText('lots'), undefined);
  assert.equal(bucketOfDollars(NaN), PenaltyBucket.ZERO);
});

test('each bucket is that of its own bound, and the next begins right above', () => {
  for (let bucket: number = PenaltyBucket.ZERO; bucket < PenaltyBucket.PINNED; bucket++) {
    const dollars = dollarsOfBucket(bucket);
    assert.equal(bucketOfDollars(dollars), bucket);
    assert.equal(bucketOfDollars(dollars * (1 + Number.EPSILON) + Number.MIN_VALUE), bucket + 1);
  }
  assert.equal(dollarsOfBucket(PenaltyBucket.PINNED), Infinity);
  assert.equal(dollarsOfBucket(PenaltyBucket.UNSPECIFIED), 0);
});

test('numbers that no bucket has are told apart', () => {
  assert.deepEqual([0, 27, 28, -1, 1.5, NaN].map(isPenaltyBucket), [
    true,
    true,
    false,
    false,
    false,
    false,
  ]);
});
