/**
 * Where the engine may do better than the reference, each by itself. The dense phases know them;
 * the plain ones, which decide for worlds with odd amounts, are always strict.
 */
export interface Differences {
  /** No victim is a machine that this cycle credits to a row that matters as much or more. */
  readonly sparesCredited: boolean;
  /** A gap of priorities beyond 32 bits is a large one, not a negative one. */
  readonly wholeGaps: boolean;
  /** Machines without a type are victims like others, also where no machine has one. */
  readonly untypedVictims: boolean;
}

/** The reference's behaviour, to the recorded answer. */
export const STRICT: Differences = {
  sparesCredited: false,
  wholeGaps: false,
  untypedVictims: false,
};

export const BETTER: Differences = { sparesCredited: true, wholeGaps: true, untypedVictims: true };
