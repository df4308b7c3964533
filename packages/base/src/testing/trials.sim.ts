/** For tests: how often, or how long, a property is tried. */

/** Seconds for each property, from MEGAPLANE_FUZZ_SECONDS; 0 where trials are counted instead. */
export const FUZZ_SECONDS: number = Number(process.env['MEGAPLANE_FUZZ_SECONDS'] ?? 0);

/** Parameters of a property: so many trials, or as many as its seconds hold. */
export function trials(numRuns: number): {
  readonly numRuns: number;
  readonly interruptAfterTimeLimit?: number;
  readonly markInterruptAsFailure?: boolean;
} {
  if (FUZZ_SECONDS === 0) return { numRuns };
  const interruptAfterTimeLimit = FUZZ_SECONDS * 1000;
  return { numRuns: 2 ** 31, interruptAfterTimeLimit, markInterruptAsFailure: false };
}
