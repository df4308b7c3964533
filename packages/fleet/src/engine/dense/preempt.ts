// data plane: what cannot be acquired is taken from those who matter less, section 4.9
import { drainGraceSeconds, victimScore } from '../cost.ts';
import type { Differences } from '../differences.ts';
import { comparePrecedence } from '../profile.ts';
import { isCovered } from './acquire.ts';
import type { Buyer } from './credit.ts';
import { CONFIGURED } from './machines.ts';
import type { Tables } from './tables.ts';

/** Whom a machine that drains was driven out for. */
export interface Reservation {
  readonly cluster: number;
  readonly profileId: number;
  readonly group: number;
}

export interface Preempted {
  readonly slot: number;
  readonly reservation: Reservation;
  readonly graceSeconds: number;
  readonly preemptorPriority: number;
}

export interface UnresolvedBuyer {
  readonly buyer: Buyer;
  readonly deficit: Float64Array<ArrayBuffer>;
  readonly victims: number;
  readonly freed: Float64Array<ArrayBuffer>;
}

export interface PreemptOptions {
  readonly differences: Differences;
  readonly reserved: ReadonlyMap<number, Reservation>;
}

/** `unsatisfied` in the order of the rows. */
export function preempt(
  unsatisfied: readonly Buyer[],
  tables: Tables,
  { differences, reserved }: PreemptOptions,
): { readonly preempted: Preempted[]; readonly unresolved: UnresolvedBuyer[] } {
  const { machines, kinds, vectors, profiles } = tables;
  const victims = new Victims(tables, differences);
  const taken = new Set<number>();
  const preempted: Preempted[] = [];
  const unresolved: UnresolvedBuyer[] = [];
  const priorityOf = ({ profileId }: Buyer): number => profiles.facts[profileId]!.profile.priority;
  const inOrder = unsatisfied.toSorted((a, b) => priorityOf(b) - priorityOf(a));
  const halves = new Halves(tables, differences.halvesYield ? inOrder : []);
  for (const buyer of inOrder) {
    const { demand, position } = buyer;
    const facts = profiles.facts[buyer.profileId]!;
    const deficit = buyer.deficit.slice();
    const freed = new Float64Array(vectors.stride);
    const domain = demand.domain[position]!;
    const isLost = facts.sameKey !== undefined && (domain < 0 || kinds.valueText(domain) === '');
    const isIdle = buyer.isParked || isLost;
    const lower = isIdle ? [] : victims.of(buyer.profileId);
    const candidates = isIdle || facts.sameKey === undefined ? lower : halves.after(buyer, lower);
    const group = demand.normal.group[position]!;
    const reservation = { cluster: demand.id, profileId: buyer.profileId, group };
    if (differences.creditsDraining) {
      for (const [slot, of] of reserved) {
        if (isCovered(deficit)) break;
        const isOurs = of.cluster === demand.id && of.profileId === buyer.profileId;
        if (!isOurs || of.group !== group || taken.has(slot)) continue;
        taken.add(slot);
        reduce(tables, deficit, machines.kind[slot]!);
      }
    }
    let count = 0;
    const before = preempted.length;
    for (const slot of candidates) {
      if (isCovered(deficit)) break;
      const kind = machines.kind[slot]!;
      if (taken.has(slot)) continue;
      if (!vectors.covers(kinds.vector[kind]!, demand.normal.minUnit[position]!)) continue;
      if (facts.sameKey !== undefined && kinds.valueOf(facts.sameKey, kind) !== domain) continue;
      if (differences.sparesCredited && !vectors.helps(kinds.vector[kind]!, deficit)) continue;
      taken.add(slot);
      count++;
      const from = kinds.vector[kind]! * vectors.stride;
      for (let at = 0; at < vectors.dimensions; at++) freed[at]! += vectors.values[from + at]!;
      reduce(tables, deficit, kind);
      const { priority } = facts.profile;
      const gap = priority - machines.priority[slot]!;
      const graceSeconds = drainGraceSeconds(differences.wholeGaps ? gap : gap | 0);
      preempted.push({ slot, reservation, graceSeconds, preemptorPriority: priority });
    }
    if (differences.wholeGangs && facts.sameKey !== undefined && !isCovered(deficit)) {
      // a part of what a gang lacks is of no use to it
      for (const { slot } of preempted.splice(before)) taken.delete(slot);
      unresolved.push({ buyer, deficit: buyer.deficit.slice(), victims: 0, freed: freed.fill(0) });
      continue;
    }
    if (isCovered(deficit)) halves.becameWhole(buyer);
    else unresolved.push({ buyer, deficit, victims: count, freed });
  }
  return { preempted, unresolved };
}

/** Machines of gangs that lack something: a part is of no use, so they give way among equals. */
class Halves {
  readonly #tables: Tables;
  readonly #order: readonly Buyer[];
  /** Gangs that became whole by others' machines, or will be by what drains. */
  readonly #whole = new Set<Buyer>();

  /** `order` has all rows that lack something, those first that are served first. */
  constructor(tables: Tables, order: readonly Buyer[]) {
    this.#tables = tables;
    this.#order = order;
  }

  becameWhole(buyer: Buyer): void {
    this.#whole.add(buyer);
  }

  /** `lower`, and then machines of other clusters' gangs that are not whole, the last first. */
  after(buyer: Buyer, lower: readonly number[]): readonly number[] {
    const { machines, kinds, profiles } = this.#tables;
    const { profile } = profiles.facts[buyer.profileId]!;
    const found: number[] = [];
    for (let place = this.#order.length - 1; place >= 0; place--) {
      const other = this.#order[place]!;
      const facts = profiles.facts[other.profileId]!;
      if (other.demand === buyer.demand || this.#whole.has(other)) continue;
      if (facts.sameKey === undefined || comparePrecedence(facts.profile, profile) > 0) continue;
      const { claims, starts, ends } = other.demand;
      for (let claim = starts[other.position]!; claim < ends[other.position]!; claim++) {
        const slot = claims[claim]!;
        if (machines.state[slot] !== CONFIGURED) continue;
        if (kinds.matches(buyer.profileId, profile, machines.kind[slot]!)) found.push(slot);
      }
    }
    return found.length === 0 ? lower : [...new Set([...lower, ...found])];
  }
}

/** Takes what a kind offers from a deficit. */
function reduce({ kinds, vectors }: Tables, deficit: Float64Array, kind: number): void {
  const from = kinds.vector[kind]! * vectors.stride;
  for (let at = 0; at < vectors.dimensions; at++) {
    deficit[at] = Math.max(0, deficit[at]! - vectors.values[from + at]!);
  }
}

/** Configured machines of lower priority that match, the best victim first. */
class Victims {
  readonly #tables: Tables;
  readonly #byProfile = new Map<number, readonly number[]>();
  readonly #differences: Differences;
  #byType: Map<string, number[]> | undefined;
  /** The priority of the row that a machine is credited to. */
  #credited: Map<number, number> | undefined;

  constructor(tables: Tables, differences: Differences) {
    this.#tables = tables;
    this.#differences = differences;
  }

  of(profileId: number): readonly number[] {
    const known = this.#byProfile.get(profileId);
    if (known !== undefined) return known;
    const { machines, kinds, profiles } = this.#tables;
    const { profile, types } = profiles.facts[profileId]!;
    const byType = this.#configured();
    // the reference finds nobody where no machine has a type, and none is asked for
    const isTyped = this.#differences.untypedVictims || types !== undefined;
    const isHidden = !isTyped && [...byType.keys()].every((type) => type === '');
    const lists = types?.map((type) => byType.get(type) ?? []) ?? [...byType.values()];
    const found: { readonly slot: number; readonly score: number }[] = [];
    for (const slot of isHidden ? [] : lists.flat()) {
      const gap = profile.priority - machines.priority[slot]!;
      if (gap > 0 && this.#isSpared(slot, profile.priority)) continue;
      if (gap <= 0 || !kinds.matches(profileId, profile, machines.kind[slot]!)) continue;
      const penalties = [machines.interruptionPenalty[slot]!, machines.reclamationPenalty[slot]!];
      found.push({ slot, score: victimScore(gap, penalties[0]!, penalties[1]!) });
    }
    found.sort((a, b) => b.score - a.score || machines.compareId(a.slot, b.slot));
    const slots = found.map(({ slot }) => slot);
    this.#byProfile.set(profileId, slots);
    return slots;
  }

  #isSpared(slot: number, priority: number): boolean {
    if (!this.#differences.sparesCredited) return false;
    this.#credited ??= this.#credits();
    return (this.#credited.get(slot) ?? -Infinity) >= priority;
  }

  #credits(): Map<number, number> {
    const { demands, profiles } = this.#tables;
    const credited = new Map<number, number>();
    for (const { normal, starts, ends, claims } of demands) {
      for (let position = 0; position < normal.count; position++) {
        const { priority } = profiles.facts[normal.profile[position]!]!.profile;
        for (let at = starts[position]!; at < ends[position]!; at++) {
          credited.set(claims[at]!, priority);
        }
      }
    }
    return credited;
  }

  #configured(): Map<string, number[]> {
    if (this.#byType !== undefined) return this.#byType;
    const { machines, kinds } = this.#tables;
    const byType = new Map<string, number[]>();
    for (let slot = 0; slot < machines.end; slot++) {
      if (machines.state[slot] !== CONFIGURED) continue;
      const { instanceType } = kinds.fields[machines.kind[slot]!]!;
      const list = byType.get(instanceType);
      if (list === undefined) byType.set(instanceType, [slot]);
      else list.push(slot);
    }
    this.#byType = byType;
    return byType;
  }
}
