/** Penalties in dollars, and the powers of two into which they are put. */
import { parseQuantity } from '@megaplane/machinery/quantity';
import type { Quantity } from '@megaplane/machinery/quantity';
import { PenaltyBucket } from './tables/capacity.ts';

/** Bucket of half a dollar; the next is of one dollar, and so on in powers of two. */
const HALF = PenaltyBucket.HALF_DOLLAR;
const BOUND_MAX = 2 ** (PenaltyBucket._8388608 - HALF - 1);

/**
 * The smallest bucket whose bound is not below `dollars`; zero and less have one of their own.
 * A penalty that is absent is no case of this: its bucket is `UNSPECIFIED`.
 */
export function bucketOfDollars(dollars: number): PenaltyBucket {
  if (!(dollars > 0)) return PenaltyBucket.ZERO;
  if (dollars > BOUND_MAX) return PenaltyBucket.PINNED;
  let bucket: number = HALF;
  for (let bound = 0.5; bound < dollars; bound *= 2) bucket++;
  return bucket as PenaltyBucket;
}

/** The upper bound of a bucket: what the engine counts with. Infinity for `PINNED`. */
export function dollarsOfBucket(bucket: number): number {
  if (bucket === PenaltyBucket.PINNED) return Infinity;
  if (bucket <= PenaltyBucket.ZERO) return 0;
  return 2 ** (bucket - HALF - 1);
}

export function isPenaltyBucket(bucket: number): bucket is PenaltyBucket {
  return Number.isInteger(bucket) && bucket >= 0 && bucket <= PenaltyBucket.PINNED;
}

/** A quantity as a float, digits times a power of ten: what upstream's approximation gives. */
export function approximate({ digits, scale }: Quantity): number {
  // the literal is exact where `10 ** scale` may not be
  return Number(digits) * Number(`1e${scale}`);
}

/** The bucket of a written penalty; undefined if the text is no quantity. */
export function bucketOfText(text: string): PenaltyBucket | undefined {
  const quantity = parseQuantity(text);
  return typeof quantity === 'string' ? undefined : bucketOfDollars(approximate(quantity));
}
