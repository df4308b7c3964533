/** Why a row is as it is: what operators are shown of a cycle. Sections 2.10 and 4.12. */
import { type Amounts, covers, isZero } from './amounts.ts';
import type { Parking, Shortfalls } from './carried.ts';
import type { Unresolved } from './plain/preempt.ts';
import type { Snapshot } from './plain/snapshot.ts';
import { sameKeyOf } from './profile.ts';
import type { MatchingSupply, Row, Verdict } from './row.ts';

export const UNMET_REASONS = [
  'TOPOLOGY_UNSATISFIABLE',
  'NO_MATCHING_SUPPLY',
  'PREEMPTION_EXHAUSTED',
  'PRIORITY_STARVED',
] as const;
export type UnmetReason = (typeof UNMET_REASONS)[number];

/** What is known of a row that has not got all it wants. */
export interface Unmet {
  readonly reason: UnmetReason;
  /** Of the profile's shortfall, in cycles; 0 if it is none now. */
  readonly age: number;
  readonly supply: MatchingSupply;
  /** Set if victims were found and do not suffice. */
  readonly preemption?: { readonly victims: number; readonly freed: Amounts };
}

export interface NeedView {
  readonly verdict: Verdict;
  /** Cycles; 0 unless parked. */
  readonly parkedAge: number;
  /** Undefined if the row has all it wants. */
  readonly unmet: Unmet | undefined;
}

export const SUPPLY_COUNTED_MAX = 256;

/** Rows as they are shown, after ages have been counted. */
export function viewsOf(
  verdicts: readonly Verdict[],
  unresolved: readonly Unresolved[],
  snapshot: Snapshot,
  carried: { readonly parking: Parking; readonly shortfalls: Shortfalls },
): readonly NeedView[] {
  // rows of one key in one cycle share what is told of the last of them
  const byKey = new Map(unresolved.map((entry) => [keyOf(entry.verdict.row), entry]));
  return verdicts.map((verdict) => {
    const { row, parked } = verdict;
    if (isZero(verdict.deficit)) return { verdict, parkedAge: 0, unmet: undefined };
    const parkedAge = parked ? carried.parking.ageOf(row) : 0;
    const age = carried.shortfalls.ageOf(row.profile.fingerprint);
    const supply = supplyOf(row, snapshot);
    const entry = byKey.get(keyOf(row));
    const reason = reasonOf(verdict, supply, (entry?.victims ?? 0) > 0);
    const unmet: Unmet = { reason, age, supply };
    if (entry === undefined || entry.victims === 0) return { verdict, parkedAge, unmet };
    const { victims, freed } = entry;
    return { verdict, parkedAge, unmet: { ...unmet, preemption: { victims, freed } } };
  });
}

function keyOf({ cluster, profile, group }: Row): string {
  return `${cluster}\0${group}\0${profile.fingerprint}`;
}

function reasonOf(verdict: Verdict, supply: MatchingSupply, hasVictims: boolean): UnmetReason {
  const { row, claimed, satisfiable, parked, domain } = verdict;
  const isGang = sameKeyOf(row.profile) !== undefined;
  if (isGang && (!satisfiable || parked || domain === '')) return 'TOPOLOGY_UNSATISFIABLE';
  const { idle, speculative, configured } = supply;
  if (claimed.length === 0 && idle + speculative + configured === 0) return 'NO_MATCHING_SUPPLY';
  return hasVictims ? 'PREEMPTION_EXHAUSTED' : 'PRIORITY_STARVED';
}

function supplyOf({ profile, minUnit }: Row, snapshot: Snapshot): MatchingSupply {
  let capped = false;
  const count = (state: 'Idle' | 'Speculative' | 'Configured'): number => {
    const found = snapshot
      .matching(state, profile)
      .filter(({ allocatable }) => covers(allocatable, minUnit));
    if (found.length > SUPPLY_COUNTED_MAX) capped = true;
    return Math.min(found.length, SUPPLY_COUNTED_MAX);
  };
  const counts = {
    idle: count('Idle'),
    speculative: count('Speculative'),
    configured: count('Configured'),
  };
  return { ...counts, capped };
}
