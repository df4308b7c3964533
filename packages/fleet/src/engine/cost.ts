/** The fixed formulas of section 4.2. */
import { assert } from '@megaplane/base/assert';

export const PENALTY_BUCKET_MAX = 27;
const PINNED = PENALTY_BUCKET_MAX;
const FIRST_POWER = 3;

/** The upper bound of a bucket in dollars; a pinned one has none. */
export function bucketDollars(bucket: number): number {
  assert(bucket >= 0 && bucket <= PENALTY_BUCKET_MAX, 'a bucket has a number of the table');
  if (bucket === PINNED) return Infinity;
  if (bucket < 2) return 0;
  return bucket === 2 ? 0.5 : 2 ** (bucket - FIRST_POWER);
}

/** Dollars an hour, with what an interruption would cost. Never that a certain nothing is dear. */
export function effectiveCost(price: number, probability: number, penalty: number): number {
  // zero times infinity has no value: what is never interrupted loses nothing
  return probability === 0 ? price : price + probability * Math.max(0, penalty);
}

const WEIGHT_PENALTY = 0.1;
const DRAIN_SECONDS = 30;
const WEIGHT_DRAIN = 0.1;
const PENALTY_DOLLARS_MIN = 0.01;

/** How good a victim is for who needs its machine; the highest goes first. */
export function victimScore(
  priorityGap: number,
  interruptionPenalty: number,
  reclamationPenalty: number,
): number {
  return (
    Math.max(0, priorityGap) +
    (1 / DRAIN_SECONDS) * WEIGHT_DRAIN +
    (1 / Math.max(interruptionPenalty, PENALTY_DOLLARS_MIN)) * WEIGHT_PENALTY +
    (1 / Math.max(reclamationPenalty, PENALTY_DOLLARS_MIN)) * WEIGHT_PENALTY
  );
}

/** What pods of a machine that nobody needs are given to end, in seconds. */
export const RECLAIM_GRACE_SECONDS = 600;

/** What a victim's pods are given, in seconds: less, the more important the need is. */
export function drainGraceSeconds(priorityGap: number): number {
  if (priorityGap > 900_000) return 10;
  if (priorityGap > 500_000) return 30;
  return priorityGap > 100_000 ? 120 : 600;
}
