// data plane: free machines by kind, for who chooses among kinds
import { assert } from '@megaplane/base/assert';
import type { CoverKind } from './cover.ts';
import type { ProfileFacts } from './profiles.ts';
import { IDLE, SPECULATIVE } from './machines.ts';
import type { Tables } from './tables.ts';

/** A machine that is there costs this much less than one that is to be made: it is there. */
const IDLE_SHARE = 0.999;
/** Machines that cost nothing are not taken for nothing. */
const COST_MIN = 1e-6;

interface Shelf {
  readonly kind: number;
  readonly state: number;
  readonly slots: number[];
  /** Places before this one are taken. */
  next: number;
  /** So many of all are taken. */
  taken: number;
}

/** Shelves of one profile whose machines offer and cost the same. */
interface Group {
  readonly shelves: Shelf[];
  readonly vector: number;
  readonly cost: number;
  /** Shelves before this one are empty. */
  first: number;
}

/** What one row may choose among, and how it gets what it chose. */
export interface Choice {
  readonly kinds: readonly CoverKind[];
  readonly take: (counts: Int32Array) => number[];
}

export class Shelves {
  readonly #tables: Tables;
  /** By list of kinds and state. */
  readonly #byList = new Map<number, readonly Shelf[]>();
  /** The same shelves, by kind and state. */
  readonly #byKind = new Map<number, Shelf>();
  readonly #byProfile = new Map<number, readonly Group[]>();
  readonly #holders: ReadonlyMap<number, unknown>;

  /** `holders` has the machines that are taken; `took` is told of each that comes to it. */
  constructor(tables: Tables, holders: ReadonlyMap<number, unknown>) {
    this.#tables = tables;
    this.#holders = holders;
  }

  /** A machine that was free is not any more. */
  took(slot: number): void {
    const { machines } = this.#tables;
    const shelf = this.#byKind.get(shelfKey(machines.kind[slot]!, machines.state[slot]!));
    if (shelf === undefined) return;
    shelf.taken++;
    assert(shelf.taken <= shelf.slots.length, 'no more is taken from a shelf than stands on it');
  }

  /** Of each group as many as the row could need, or as there are. */
  choiceFor(facts: ProfileFacts, minUnit: number, deficit: Float64Array): Choice {
    const { vectors } = this.#tables;
    const groups: Group[] = [];
    const choice: CoverKind[] = [];
    for (const group of this.#groupsOf(facts)) {
      if (!vectors.covers(group.vector, minUnit)) continue;
      const from = group.vector * vectors.stride;
      const offers = vectors.values.subarray(from, from + vectors.stride);
      const count = this.#left(group, neededOf(offers, deficit));
      if (count === 0) continue;
      groups.push(group);
      choice.push({ cost: group.cost, offers, count });
    }
    return { kinds: choice, take: (counts) => this.#take(groups, counts) };
  }

  /** How many are free, as far as `enough`. */
  #left(group: Group, enough: number): number {
    const { shelves } = group;
    const freeOn = ({ slots, taken }: Shelf): number => slots.length - taken;
    while (group.first < shelves.length && freeOn(shelves[group.first]!) === 0) group.first++;
    let count = 0;
    for (let at = group.first; at < shelves.length && count < enough; at++) {
      count += freeOn(shelves[at]!);
    }
    return count;
  }

  #groupsOf(facts: ProfileFacts): readonly Group[] {
    const known = this.#byProfile.get(facts.id);
    if (known !== undefined) return known;
    const { kinds } = this.#tables;
    const groups = new Map<string, Group>();
    for (const [list, { instanceType, probability }] of kinds.lists.entries()) {
      if (facts.types !== undefined && !facts.types.includes(instanceType)) continue;
      for (const state of [IDLE, SPECULATIVE]) {
        const isSafe = state === IDLE || probability === 0;
        const surcharge = isSafe ? 0 : probability * facts.penalty;
        if (surcharge === Infinity) continue;
        for (const shelf of this.#of(list, state)) {
          if (!kinds.matches(facts.id, facts.profile, shelf.kind)) continue;
          const whole = Math.max(COST_MIN, kinds.price[shelf.kind]! + surcharge);
          const cost = state === IDLE ? whole * IDLE_SHARE : whole;
          const vector = kinds.vector[shelf.kind]!;
          const key = `${list}/${state}/${vector}/${cost}`;
          const group = groups.get(key);
          if (group === undefined) groups.set(key, { shelves: [shelf], vector, cost, first: 0 });
          else group.shelves.push(shelf);
        }
      }
    }
    const all = [...groups.values()];
    this.#byProfile.set(facts.id, all);
    return all;
  }

  #take(groups: readonly Group[], counts: Int32Array): number[] {
    const found: number[] = [];
    for (const [at, { shelves, first }] of groups.entries()) {
      let left = counts[at]!;
      for (let place = first; left > 0 && place < shelves.length; place++) {
        left -= this.#takeFrom(shelves[place]!, left, found);
      }
    }
    return found;
  }

  #takeFrom(shelf: Shelf, countMax: number, found: number[]): number {
    const { slots } = shelf;
    let count = 0;
    while (shelf.next < slots.length && this.#holders.has(slots[shelf.next]!)) shelf.next++;
    for (let place = shelf.next; count < countMax && place < slots.length; place++) {
      const slot = slots[place]!;
      if (this.#holders.has(slot)) continue;
      found.push(slot);
      count++;
    }
    return count;
  }

  #of(list: number, state: number): readonly Shelf[] {
    const key = list * 2 + Number(state === IDLE);
    const known = this.#byList.get(key);
    if (known !== undefined) return known;
    const { machines } = this.#tables;
    const sorted = machines.listOf(state, list);
    const count = sorted.refresh();
    const byKind = new Map<number, Shelf>();
    for (let at = 0; at < count; at++) {
      const slot = sorted.items[at]!;
      const kind = machines.kind[slot]!;
      const shelf = byKind.get(kind);
      if (shelf === undefined) byKind.set(kind, { kind, state, slots: [slot], next: 0, taken: 0 });
      else shelf.slots.push(slot);
    }
    const shelves = [...byKind.values()];
    for (const shelf of shelves) {
      for (const slot of shelf.slots) if (this.#holders.has(slot)) shelf.taken++;
      this.#byKind.set(shelfKey(shelf.kind, state), shelf);
    }
    this.#byList.set(key, shelves);
    return shelves;
  }
}

/** So many machines that offer this are enough for what is lacking, each dimension by itself. */
function neededOf(offers: Float64Array, deficit: Float64Array): number {
  let most = 0;
  for (let at = 0; at < deficit.length; at++) {
    if (deficit[at]! > 0 && offers[at]! > 0) most = Math.max(most, deficit[at]! / offers[at]!);
  }
  return Math.ceil(most);
}

function shelfKey(kind: number, state: number): number {
  return kind * 2 + Number(state === IDLE);
}
