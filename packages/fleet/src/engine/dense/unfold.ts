// data plane: gangs that fit one machine and got none span several, where they would be whole
import { assert } from '@megaplane/base/assert';
import type { ClusterDemand, Rows } from './clusters.ts';
import type { DenseDecision } from './engine.ts';
import { classKey } from './fold.ts';
import { IDLE, SPECULATIVE } from './machines.ts';
import type { UnresolvedBuyer } from './preempt.ts';
import type { Tables } from './tables.ts';

/** Gangs that are looked at in one cycle; the others wait for the next one. */
export const TRIES_MAX = 1000;

/** Marks gangs of folded rows that lack something; they are told apart from the next cycle on. */
export function unfold(tables: Tables, { unresolved, isTaken }: DenseDecision): void {
  const supply = new Supply(tables, isTaken);
  let tries = 0;
  for (const short of unresolved) {
    const { demand, position } = short.buyer;
    if (position < demand.normal.keptCount) continue;
    let lacking = lackingGangs(tables, short);
    for (const row of gangsOf(tables, short).toReversed()) {
      if (lacking === 0) break;
      if (++tries > TRIES_MAX) return;
      if (!supply.takeWhole(demand.rows, row)) continue;
      lacking--;
      span(demand, row);
    }
  }
}

/** How many gangs of a folded row have nothing. */
function lackingGangs({ vectors }: Tables, { buyer, deficit }: UnresolvedBuyer): number {
  const from = buyer.demand.normal.minUnit[buyer.position]! * vectors.stride;
  let most = 0;
  for (let at = 0; at < vectors.dimensions; at++) {
    const each = vectors.values[from + at]!;
    if (deficit[at]! > 0 && each > 0) most = Math.max(most, Math.ceil(deficit[at]! / each));
  }
  return most;
}

/** The rows that were folded into one, in their order. */
function gangsOf({ profiles }: Tables, { buyer }: UnresolvedBuyer): number[] {
  const { demand, position, profileId } = buyer;
  const { rows, normal, spans } = demand;
  const found: number[] = [];
  for (let row = 0; row < rows.count; row++) {
    const facts = profiles.facts[rows.profile[row]!]!;
    const isOf = facts.sameKey !== undefined && facts.foldedId === profileId;
    if (!isOf || rows.aggregate[row] !== normal.minUnit[position]) continue;
    const groups = spans.get(classKey(rows.profile[row]!, rows.aggregate[row]!));
    if (groups?.has(rows.group[row]!) !== true) found.push(row);
  }
  return found;
}

function span(demand: ClusterDemand, row: number): void {
  assert(demand.former === undefined, 'rows are those that were decided about');
  const key = classKey(demand.rows.profile[row]!, demand.rows.aggregate[row]!);
  const groups = new Set(demand.spans.get(key));
  groups.add(demand.rows.group[row]!);
  demand.spans = new Map([...demand.spans, [key, groups]]);
  demand.isRaw = true;
}

/** Machines that nobody has after a cycle. */
class Supply {
  readonly #tables: Tables;
  readonly #isTaken: (slot: number) => boolean;
  readonly #used = new Set<number>();
  /** By profile: free machines by the value of its topology key. */
  readonly #members = new Map<number, ReadonlyMap<number, readonly number[]>>();

  constructor(tables: Tables, isTaken: (slot: number) => boolean) {
    this.#tables = tables;
    this.#isTaken = isTaken;
  }

  /** Sets machines of one domain apart that hold a gang; false if no domain has enough. */
  takeWhole(rows: Rows, row: number): boolean {
    const { vectors, machines, kinds } = this.#tables;
    const from = rows.aggregate[row]! * vectors.stride;
    for (const members of this.#of(rows.profile[row]!).values()) {
      const left = vectors.values.slice(from, from + vectors.stride);
      const taken: number[] = [];
      for (const slot of members) {
        if (left.every((amount) => amount <= 0)) break;
        const vector = kinds.vector[machines.kind[slot]!]!;
        if (this.#used.has(slot) || !vectors.covers(vector, rows.minUnit[row]!)) continue;
        taken.push(slot);
        const offer = vector * vectors.stride;
        for (let at = 0; at < vectors.dimensions; at++) left[at]! -= vectors.values[offer + at]!;
      }
      if (left.some((amount) => amount > 0)) continue;
      for (const slot of taken) this.#used.add(slot);
      return true;
    }
    return false;
  }

  #of(profileId: number): ReadonlyMap<number, readonly number[]> {
    const known = this.#members.get(profileId);
    if (known !== undefined) return known;
    const { machines, kinds, profiles } = this.#tables;
    const { profile, sameKey = '', types } = profiles.facts[profileId]!;
    const members = new Map<number, number[]>();
    for (const state of [IDLE, SPECULATIVE]) {
      for (const [list, { instanceType }] of kinds.lists.entries()) {
        if (types !== undefined && !types.includes(instanceType)) continue;
        const slots = machines.listOf(state, list);
        const count = slots.refresh();
        for (let at = 0; at < count; at++) {
          const slot = slots.items[at]!;
          const kind = machines.kind[slot]!;
          if (this.#isTaken(slot) || !kinds.matches(profileId, profile, kind)) continue;
          const value = kinds.valueOf(sameKey, kind);
          if (value < 0) continue;
          const among = members.get(value);
          if (among === undefined) members.set(value, [slot]);
          else among.push(slot);
        }
      }
    }
    this.#members.set(profileId, members);
    return members;
  }
}
