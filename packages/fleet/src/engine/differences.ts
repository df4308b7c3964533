/**
 * Where the engine may do better than the reference, each by itself. The dense phases know them;
 * the plain ones, by which strict answers are measured, are always strict.
 */
export interface Differences {
  /**
   * No victim is a machine that this cycle credits to a row that matters as much or more, nor one
   * that has nothing of what is lacking.
   */
  readonly sparesCredited: boolean;
  /** A gap of priorities beyond 32 bits is a large one, not a negative one. */
  readonly wholeGaps: boolean;
  /** Machines without a type are victims like others, also where no machine has one. */
  readonly untypedVictims: boolean;
  /** A row is credited the machines that were bound for it before others. */
  readonly ownFirst: boolean;
  /**
   * Rows stand in one order, whatever order they come in: those that fewer types serve come first,
   * and a cluster keeps the place of its first roll-up among others of its priority.
   */
  readonly steadyOrder: boolean;
  /**
   * A gang takes all that it lacks, by acquiring or by driving out, or nothing. One that no domain
   * can hold stays where it has most.
   */
  readonly wholeGangs: boolean;
  /**
   * What a gang has that cannot be whole gives way to a gang that becomes whole by it and comes
   * first among equals: two halves never keep each other from being whole.
   */
  readonly halvesYield: boolean;
  /**
   * A gang that has machines keeps its form, spread over them or in one, whatever machines come;
   * those that are being made or drain count as there. So no gang is bought twice.
   */
  readonly steadyFolds: boolean;
  /** Gangs that would fit one machine and get none span several, where those could be had. */
  readonly spansShort: boolean;
  /** A victim that still drains counts for the row that drove it out: nobody else is driven out. */
  readonly creditsDraining: boolean;
  /**
   * Machines are chosen by what the whole set costs, not one by one by what each costs; none is
   * taken that has nothing of what is lacking.
   */
  readonly cheapestCover: boolean;
  /** Spread counts the machines that a row has already. */
  readonly countsSpread: boolean;
  /** Amounts beyond what the tables hold are rounded against who would gain; none is slow. */
  readonly boundedAmounts: boolean;
}

/** The reference's behaviour, to the recorded answer. */
export const STRICT: Differences = {
  sparesCredited: false,
  wholeGaps: false,
  untypedVictims: false,
  ownFirst: false,
  steadyOrder: false,
  wholeGangs: false,
  halvesYield: false,
  steadyFolds: false,
  spansShort: false,
  creditsDraining: false,
  cheapestCover: false,
  countsSpread: false,
  boundedAmounts: false,
};

export const BETTER: Differences = {
  sparesCredited: true,
  wholeGaps: true,
  untypedVictims: true,
  ownFirst: true,
  steadyOrder: true,
  wholeGangs: true,
  halvesYield: true,
  steadyFolds: true,
  spansShort: true,
  creditsDraining: true,
  cheapestCover: true,
  countsSpread: true,
  boundedAmounts: true,
};

/** Names of all of them. */
export const DIFFERENCE_NAMES = Object.keys(STRICT) as readonly (keyof Differences)[];
