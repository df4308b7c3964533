/** Demand as the phases take it, and what they answer. */
import type { Amounts } from './amounts.ts';
import type { Machine } from './machine.ts';
import type { Profile } from './profile.ts';

/** One row of a cluster's demand. */
export interface Row {
  readonly cluster: string;
  readonly profile: Profile;
  readonly group: string;
  /** All that the row wants. */
  readonly aggregate: Amounts;
  /** What each machine must have alone to be of use. */
  readonly minUnit: Amounts;
  /** The time stamp of the roll-up, in nanoseconds or whatever the sender counts in. */
  readonly arrival: number;
}

export interface DomainCoverage {
  readonly domain: string;
  readonly coveragePerMille: number;
  readonly satisfiable: boolean;
}

export interface MatchingSupply {
  readonly idle: number;
  readonly speculative: number;
  readonly configured: number;
  /** Some state has more than is counted. */
  readonly capped: boolean;
}

/** What a cycle found for one row. */
export interface Verdict {
  readonly row: Row;
  readonly parked: boolean;
  readonly claimed: readonly Machine[];
  readonly deficit: Amounts;
  /** The one domain of a Same row; empty if there is none. */
  readonly domain: string;
  readonly satisfiable: boolean;
  readonly candidates: readonly DomainCoverage[];
}

export const ACTION_KINDS = ['Bootstrap', 'Provision', 'Preempt', 'Reclaim', 'Delete'] as const;

export interface Action {
  readonly kind: (typeof ACTION_KINDS)[number];
  readonly machine: Machine;
  /** Where it goes, or whose it was; empty for Delete. */
  readonly cluster: string;
  /** The stamp to set, of Bootstrap and Provision. */
  readonly profile?: Profile;
  readonly group?: string;
  readonly graceSeconds?: number;
  readonly preemptorPriority?: number;
}
