// data plane: Idle and Speculative machines as rows choose among them within one cycle
import type { ProfileFacts } from './profiles.ts';
import { IDLE, SPECULATIVE } from './machines.ts';
import type { Tables } from './tables.ts';

interface Total {
  count: number;
  readonly total: Float64Array<ArrayBuffer>;
}

/** Which machines are looked at. */
interface Asked {
  readonly profileId: number;
  readonly sameKey: string;
  readonly minUnit: number;
}

interface Totals {
  readonly byValue: Map<number, Total>;
  /** So many of the consumed machines are taken out. */
  seen: number;
}

/** What gangs could acquire, by domain; machines that earlier gangs will take are left out. */
export class AcquirableIndex {
  readonly #tables: Tables;
  /** By profile: machines that match, in the order in which gangs are thought to take them. */
  readonly #members = new Map<number, ReadonlyMap<number, readonly number[]>>();
  readonly #consumed = new Set<number>();
  /** The same, in the order in which they were taken. */
  readonly #log: number[] = [];
  readonly #totals = new Map<string, Totals>();

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** Adds what each domain has to what `totalOf` answers for it, if anything. */
  addTotals(asked: Asked, totalOf: (value: number) => Total | undefined): void {
    for (const [value, { count }] of this.#totalsOf(asked)) {
      const domain = count === 0 ? undefined : totalOf(value);
      if (domain !== undefined) this.addTotal(asked, value, domain);
    }
  }

  /** Adds what one domain has. */
  addTotal(asked: Asked, value: number, to: Total): void {
    const { vectors } = this.#tables;
    const known = this.#totalsOf(asked).get(value);
    if (known === undefined || known.count === 0) return;
    to.count += known.count;
    for (let at = 0; at < vectors.dimensions; at++) to.total[at]! += known.total[at]!;
  }

  /** Brought up to what has been consumed since it was asked for last. */
  #totalsOf({ profileId, sameKey, minUnit }: Asked): ReadonlyMap<number, Total> {
    const { machines, kinds, vectors, profiles } = this.#tables;
    const key = `${profileId}/${minUnit}`;
    let totals = this.#totals.get(key);
    if (totals === undefined) {
      totals = { byValue: new Map(), seen: this.#log.length };
      this.#totals.set(key, totals);
      for (const [value, members] of this.#membersOf(profileId, sameKey)) {
        const total = { count: 0, total: new Float64Array(vectors.stride) };
        for (const slot of members) {
          if (!this.#consumed.has(slot)) this.#addTo(total, slot, minUnit, 1);
        }
        totals.byValue.set(value, total);
      }
    }
    const { profile, types } = profiles.facts[profileId]!;
    for (; totals.seen < this.#log.length; totals.seen++) {
      const slot = this.#log[totals.seen]!;
      const kind = machines.kind[slot]!;
      if (types !== undefined && !types.includes(kinds.fields[kind]!.instanceType)) continue;
      if (!kinds.matches(profileId, profile, kind)) continue;
      const total = totals.byValue.get(kinds.valueOf(sameKey, kind));
      if (total !== undefined) this.#addTo(total, slot, minUnit, -1);
    }
    return totals.byValue;
  }

  #addTo(total: Total, slot: number, minUnit: number, sign: 1 | -1): void {
    const { machines, kinds, vectors } = this.#tables;
    const vector = kinds.vector[machines.kind[slot]!]!;
    if (!vectors.covers(vector, minUnit)) return;
    total.count += sign;
    const from = vector * vectors.stride;
    for (let at = 0; at < vectors.dimensions; at++) {
      total.total[at]! += sign * vectors.values[from + at]!;
    }
  }

  consume(
    profileId: number,
    sameKey: string,
    value: number,
    minUnit: number,
    remaining: Float64Array,
  ): void {
    const { machines, kinds, vectors } = this.#tables;
    const wanted = remaining.slice();
    for (const slot of this.#membersOf(profileId, sameKey).get(value) ?? []) {
      if (wanted.every((amount) => amount <= 0)) return;
      const vector = kinds.vector[machines.kind[slot]!]!;
      if (this.#consumed.has(slot) || !vectors.covers(vector, minUnit)) continue;
      this.#consumed.add(slot);
      this.#log.push(slot);
      const from = vector * vectors.stride;
      for (let at = 0; at < vectors.dimensions; at++) wanted[at]! -= vectors.values[from + at]!;
    }
  }

  #membersOf(profileId: number, sameKey: string): ReadonlyMap<number, readonly number[]> {
    const known = this.#members.get(profileId);
    if (known !== undefined) return known;
    const { machines, kinds, profiles } = this.#tables;
    const facts = profiles.facts[profileId]!;
    const members = new Map<number, number[]>();
    for (const state of [IDLE, SPECULATIVE]) {
      for (const slot of this.#inOrder(facts, state)) {
        const kind = machines.kind[slot]!;
        if (!kinds.matches(profileId, facts.profile, kind)) continue;
        const value = kinds.valueOf(sameKey, kind);
        if (value < 0) continue;
        const list = members.get(value);
        if (list === undefined) members.set(value, [slot]);
        else list.push(slot);
      }
    }
    this.#members.set(profileId, members);
    return members;
  }

  /** By type, price and id; or all by id, where no type is asked for. */
  #inOrder({ types }: ProfileFacts, state: number): number[] {
    const { machines, kinds } = this.#tables;
    const of = (type: string | undefined): number[] =>
      kinds.lists.flatMap(({ instanceType }, list) => {
        if (type !== undefined && instanceType !== type) return [];
        const slots = machines.listOf(state, list);
        const count = slots.refresh();
        return [...slots.items.subarray(0, count)];
      });
    if (types === undefined) return of(undefined).sort((a, b) => machines.compareId(a, b));
    return types.flatMap((type) => of(type).sort((a, b) => machines.comparePrice(a, b)));
  }
}

interface Cursor {
  readonly items: ArrayLike<number>;
  readonly count: number;
  readonly surcharge: number;
  at: number;
}

/** The machines of one state that match one profile, the cheapest first, as far as asked for. */
export class Pool {
  readonly #tables: Tables;
  readonly #facts: ProfileFacts;
  readonly #cursors: Cursor[] = [];
  readonly #slots: number[] = [];
  /** Machines before this place are of no use to who wants free ones. */
  firstFree = 0;

  constructor(tables: Tables, facts: ProfileFacts, state: number) {
    this.#tables = tables;
    this.#facts = facts;
    const { machines, kinds } = tables;
    for (const [list, { instanceType, probability }] of kinds.lists.entries()) {
      if (facts.types !== undefined && !facts.types.includes(instanceType)) continue;
      const slots = machines.listOf(state, list);
      const count = slots.refresh();
      if (count === 0) continue;
      const isSafe = state === IDLE || probability === 0;
      const surcharge = isSafe ? 0 : probability * facts.penalty;
      const items = this.#ordered(slots.items, count, surcharge);
      this.#cursors.push({ items, count, surcharge, at: 0 });
    }
  }

  /** The machine at a place; -1 behind the last. */
  at(place: number): number {
    while (this.#slots.length <= place) {
      const next = this.#next();
      if (next < 0) return -1;
      this.#slots.push(next);
    }
    return this.#slots[place]!;
  }

  /** Dollars an hour, with what an interruption would cost. */
  costOf(slot: number, state: number): number {
    const { machines, kinds } = this.#tables;
    const kind = machines.kind[slot]!;
    const probability = kinds.probability[kind]!;
    if (state === IDLE || probability === 0) return kinds.price[kind]!;
    return kinds.price[kind]! + probability * this.#facts.penalty;
  }

  #next(): number {
    const { kinds, machines } = this.#tables;
    for (;;) {
      let best: Cursor | undefined;
      let bestCost = 0;
      for (const cursor of this.#cursors) {
        if (cursor.at === cursor.count) continue;
        const cost = this.#cost(cursor, cursor.at);
        const isBetter =
          best === undefined ||
          cost < bestCost ||
          (cost === bestCost &&
            machines.compareId(cursor.items[cursor.at]!, best.items[best.at]!) < 0);
        if (isBetter) [best, bestCost] = [cursor, cost];
      }
      if (best === undefined) return -1;
      const slot = best.items[best.at++]!;
      if (kinds.matches(this.#facts.id, this.#facts.profile, machines.kind[slot]!)) return slot;
    }
  }

  #cost({ items, surcharge }: Pick<Cursor, 'items' | 'surcharge'>, at: number): number {
    const { kinds, machines } = this.#tables;
    return kinds.price[machines.kind[items[at]!]!]! + surcharge;
  }

  // a surcharge may make prices equal that are not: then ids decide
  #ordered(items: Int32Array<ArrayBuffer>, count: number, surcharge: number): ArrayLike<number> {
    if (surcharge === 0) return items;
    const { machines } = this.#tables;
    const cursor = { items, surcharge };
    for (let at = 1; at < count; at++) {
      const isSame = this.#cost(cursor, at - 1) === this.#cost(cursor, at);
      if (!isSame || machines.compareId(items[at - 1]!, items[at]!) < 0) continue;
      const places = Array.from({ length: count }, (_, place) => place);
      const costs = places.map((place) => this.#cost(cursor, place));
      places.sort((left, right) => {
        const [a, b] = [costs[left]!, costs[right]!];
        return a === b ? machines.compareId(items[left]!, items[right]!) : a - b;
      });
      return places.map((place) => items[place]!);
    }
    return items;
  }
}
