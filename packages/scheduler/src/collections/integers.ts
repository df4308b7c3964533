/** Integer arithmetic as Go's int64 has it, on Numbers where that is exact. */

/**
 * Below this a rounded quotient of up to 100 cannot reach the next integer: the distance to it is
 * at least 1/divisor, more than half a unit in the last place.
 */
const DIVISOR_MAX: number = 2 ** 45;

/**
 * `trunc(part * 100 / whole)`, exactly; `whole` is positive. Products wrap as int64 does, and what
 * is then no score at all (upstream fails the pod) is none.
 */
export function percent(part: number, whole: number): number {
  if (Math.abs(part) < DIVISOR_MAX && whole < DIVISOR_MAX) return Math.trunc((part * 100) / whole);
  return Math.max(0, Number(BigInt.asIntN(64, BigInt(part) * 100n) / BigInt(whole)));
}
