// data plane: free machines by kind, for who chooses among kinds
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
    if (shelf !== undefined) shelf.taken++;
  }

  choiceFor(facts: ProfileFacts, minUnit: number): Choice {
    const { kinds, vectors } = this.#tables;
    const shelves: Shelf[] = [];
    const choice: CoverKind[] = [];
    for (const [list, { instanceType, probability }] of kinds.lists.entries()) {
      if (facts.types !== undefined && !facts.types.includes(instanceType)) continue;
      for (const state of [IDLE, SPECULATIVE]) {
        const isSafe = state === IDLE || probability === 0;
        const surcharge = isSafe ? 0 : probability * facts.penalty;
        if (surcharge === Infinity) continue;
        for (const shelf of this.#of(list, state)) {
          const count = shelf.slots.length - shelf.taken;
          if (count === 0 || !kinds.matches(facts.id, facts.profile, shelf.kind)) continue;
          const vector = kinds.vector[shelf.kind]!;
          if (!vectors.covers(vector, minUnit)) continue;
          const cost = Math.max(COST_MIN, kinds.price[shelf.kind]! + surcharge);
          const from = vector * vectors.stride;
          shelves.push(shelf);
          choice.push({
            cost: state === IDLE ? cost * IDLE_SHARE : cost,
            offers: vectors.values.subarray(from, from + vectors.stride),
            count,
          });
        }
      }
    }
    return { kinds: choice, take: (counts) => this.#take(shelves, counts) };
  }

  #take(shelves: readonly Shelf[], counts: Int32Array): number[] {
    const found: number[] = [];
    for (const [at, shelf] of shelves.entries()) {
      let left = counts[at]!;
      if (left === 0) continue;
      const { slots } = shelf;
      while (shelf.next < slots.length && this.#holders.has(slots[shelf.next]!)) shelf.next++;
      for (let place = shelf.next; left > 0 && place < slots.length; place++) {
        const slot = slots[place]!;
        if (this.#holders.has(slot)) continue;
        found.push(slot);
        left--;
      }
    }
    return found;
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

function shelfKey(kind: number, state: number): number {
  return kind * 2 + Number(state === IDLE);
}
