/**
 * How the server's seats are divided between priority levels for the next ten seconds: each gets
 * the same multiple of what it is likely to need, within its own bounds (KEP-1040, borrowing).
 */

/** What one level may get, and what it would like; `lower <= target` and `lower <= upper`. */
export interface SeatClaim {
  readonly lower: number;
  readonly upper: number;
  readonly target: number;
}

export interface Allocation {
  readonly seats: readonly number[];
  /** What each level got of its target, where its bounds let it. */
  readonly fairFraction: number;
}

/** Smaller targets count as this, so that shares of nothing are even. */
const TARGET_MIN = 0.001;
const EPSILON = 1e-7;

/** Where the fraction meets a bound: from there on the sum grows by so much more, or less. */
interface Bend {
  readonly fraction: number;
  readonly slope: number;
}

/**
 * Seats that sum to `total`, or null where the bounds do not allow that. Every level gets
 * `fairFraction` times its target, or the bound that keeps it from that.
 */
export function allocateSeats(total: number, claims: readonly SeatClaim[]): Allocation | null {
  const targets = claims.map(({ target }) => Math.max(target, TARGET_MIN));
  const lowest = claims.reduce((sum, { lower }) => sum + lower, 0);
  const highest = claims.reduce((sum, { upper }) => sum + upper, 0);
  if (total < 0 || lowest - total > EPSILON || total - highest > EPSILON) return null;
  if (total === 0) return { seats: claims.map(() => 0), fairFraction: 0 };
  const relative = (bound: 'lower' | 'upper'): number[] =>
    claims.map((claim, index) => claim[bound] / (targets[index] ?? 1));
  const [lower, upper] = [relative('lower'), relative('upper')];
  if (lowest - total > -EPSILON) {
    return { seats: claims.map((claim) => claim.lower), fairFraction: Math.min(...lower) };
  }
  if (total - highest > -EPSILON) {
    return { seats: claims.map((claim) => claim.upper), fairFraction: Math.max(...upper) };
  }
  // where no bound counts there is nothing to search: halves of seats stay halves
  const free = total / targets.reduce((sum, one) => sum + one, 0);
  const isFree = Math.max(...lower) <= free && free <= Math.min(...upper);
  const fairFraction = isFree ? free : findFraction(lowest, total, bendsOf(targets, lower, upper));
  const seats = claims.map((claim, index) =>
    Math.max(claim.lower, Math.min(claim.upper, fairFraction * (targets[index] ?? 0))),
  );
  return { seats, fairFraction };
}

function bendsOf(
  targets: readonly number[],
  lower: readonly number[],
  upper: readonly number[],
): Bend[] {
  const bends = targets.flatMap((target, index): Bend[] => [
    { fraction: lower[index] ?? 0, slope: target },
    { fraction: upper[index] ?? 0, slope: -target },
  ]);
  return bends.toSorted((a, b) => a.fraction - b.fraction);
}

/** Goes up from bend to bend, in straight lines, to where the sum has grown to `total`. */
function findFraction(lowest: number, total: number, bends: readonly Bend[]): number {
  let fraction = bends[0]?.fraction ?? 0;
  let slope = 0;
  let sum = lowest;
  let rising = 0;
  for (const bend of bends) {
    if (bend.fraction > fraction) {
      const isLevel = rising === 0;
      const end = isLevel ? Infinity : fraction + (total - sum) / slope;
      if (end <= bend.fraction) return end;
      if (!isLevel) sum += (bend.fraction - fraction) * slope;
      fraction = bend.fraction;
    }
    slope += bend.slope;
    rising += Math.sign(bend.slope);
  }
  return fraction;
}
