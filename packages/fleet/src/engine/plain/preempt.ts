/** What cannot be acquired is taken from those who matter less, section 4.9. */
import { type Amounts, NO_AMOUNTS, add, covers, isZero, subtract } from '../amounts.ts';
import { drainGraceSeconds, victimScore } from '../cost.ts';
import { type Machine, attributeOf } from '../machine.ts';
import { type Profile, pinnedTypesOf, sameKeyOf } from '../profile.ts';
import type { Action, Verdict } from '../row.ts';
import { byUtf8 } from '../../contract/text-order.ts';
import type { Snapshot } from './snapshot.ts';

/** A row that victims do not cover. */
export interface Unresolved {
  readonly verdict: Verdict;
  readonly deficit: Amounts;
  readonly victims: number;
  readonly freed: Amounts;
}

export interface Preemption {
  readonly actions: readonly Action[];
  readonly unresolved: readonly Unresolved[];
}

/** `unsatisfied` in the order of the rows. */
export function preempt(unsatisfied: readonly Verdict[], snapshot: Snapshot): Preemption {
  const taken = new Set<Machine>();
  const actions: Action[] = [];
  const unresolved: Unresolved[] = [];
  const byPriority = unsatisfied.toSorted((left, right) => {
    return right.row.profile.priority - left.row.profile.priority;
  });
  for (const verdict of byPriority) {
    const { deficit } = verdict;
    const picks = pick(verdict, snapshot, taken);
    for (const machine of picks) {
      taken.add(machine);
      actions.push(preemption(machine, verdict.row.profile.priority));
    }
    const freed = picks.reduce((sum, { allocatable }) => add(sum, allocatable), NO_AMOUNTS);
    const rest = picks.reduce((sum, { allocatable }) => subtract(sum, allocatable), deficit);
    if (!isZero(rest)) unresolved.push({ verdict, deficit: rest, victims: picks.length, freed });
  }
  return { actions, unresolved };
}

function preemption(machine: Machine, priority: number): Action {
  // the reference counts the gap in 32 bits
  const graceSeconds = drainGraceSeconds((priority - machine.stamp.priority) | 0);
  const { cluster } = machine;
  return { kind: 'Preempt', machine, cluster, graceSeconds, preemptorPriority: priority };
}

function pick(verdict: Verdict, snapshot: Snapshot, taken: ReadonlySet<Machine>): Machine[] {
  const { row, parked, domain } = verdict;
  const sameKey = sameKeyOf(row.profile);
  if (parked || (sameKey !== undefined && domain === '')) return [];
  const picks: Machine[] = [];
  let remaining = verdict.deficit;
  for (const machine of victims(row.profile, snapshot)) {
    if (isZero(remaining)) break;
    if (taken.has(machine) || !covers(machine.allocatable, row.minUnit)) continue;
    if (sameKey !== undefined && attributeOf(machine, sameKey) !== domain) continue;
    picks.push(machine);
    remaining = subtract(remaining, machine.allocatable);
  }
  return picks;
}

/** Whoever could be driven out for a profile, the best victim first. */
function victims(profile: Profile, snapshot: Snapshot): readonly Machine[] {
  const isHidden = pinnedTypesOf(profile) === undefined && !hasTyped(snapshot);
  if (isHidden) return [];
  return snapshot
    .matching('Configured', profile)
    .filter(({ stamp }) => stamp.priority < profile.priority)
    .map((machine) => ({ machine, score: score(machine, profile.priority) }))
    .toSorted((left, right) => {
      return right.score - left.score || byUtf8(left.machine.id, right.machine.id);
    })
    .map(({ machine }) => machine);
}

function score({ stamp }: Machine, priority: number): number {
  const gap = priority - stamp.priority;
  return victimScore(gap, stamp.interruptionPenalty, stamp.reclamationPenalty);
}

// the reference asks for the least priority of all types, and no type has none
function hasTyped(snapshot: Snapshot): boolean {
  return snapshot.inState('Configured').some(({ instanceType }) => instanceType !== '');
}
