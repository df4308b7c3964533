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
/** Halvings of an interval: more than a double has bits. */
const HALVINGS = 200;

/**
 * Seats that sum to `total`, or null where the bounds do not allow that. Every level gets
 * `fairFraction` times its target, or the bound that keeps it from that.
 */
export function allocateSeats(total: number, claims: readonly SeatClaim[]): Allocation | null {
  const targets = claims.map(({ target }) => Math.max(target, TARGET_MIN));
  const lowest = claims.reduce((sum, { lower }) => sum + lower, 0);
  const highest = claims.reduce((sum, { upper }) => sum + upper, 0);
  if (total < 0 || lowest - total > EPSILON || total - highest > EPSILON) return null;
  const at = (fraction: number): number[] =>
    claims.map(({ lower, upper }, index) =>
      Math.max(lower, Math.min(upper, fraction * (targets[index] ?? 0))),
    );
  const sumAt = (fraction: number): number => at(fraction).reduce((sum, one) => sum + one, 0);
  let low = 0;
  let high = claims.reduce((most, { upper }, index) => {
    return Math.max(most, upper / (targets[index] ?? 1));
  }, 0);
  // the sum grows with the fraction: halve the interval until it cannot be told from a point
  for (let step = 0; step < HALVINGS && high - low > Number.EPSILON * high; step++) {
    const middle = (low + high) / 2;
    if (sumAt(middle) < total) low = middle;
    else high = middle;
  }
  return { seats: at(high), fairFraction: high };
}
