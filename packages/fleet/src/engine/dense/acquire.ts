// data plane: what is missing is taken from Idle and Speculative machines, section 4.8
import { assert } from '@megaplane/base/assert';
import { comparePrecedence } from '../profile.ts';
import type { Differences } from '../differences.ts';
import { Pool } from './acquirable.ts';
import { cheapestCover } from './cover.ts';
import { Shelves } from './shelves.ts';
import type { Buyer } from './credit.ts';
import { IDLE, SPECULATIVE } from './machines.ts';
import type { Tables } from './tables.ts';

const RETRIES_MAX = 10;
/** Of all searches for cheap covers in one cycle: later rows get what a glance finds. */
const COVER_STEPS_MAX = 400_000;

/** Machines of one domain, the cheapest first. */
interface Members {
  readonly slots: readonly number[];
  readonly kinds: Set<number>;
  /** Those before this place are held. */
  firstFree: number;
}

interface Queued {
  readonly buyer: Buyer;
  readonly retries: number;
}

export class Acquirer {
  /** Who has an acquired machine, and how often he may still be driven out. */
  readonly holders: Map<number, Queued> = new Map();
  readonly #tables: Tables;
  /** No holder gives way more easily than one of this profile. */
  #easiest: Buyer | undefined;
  readonly #pools = new Map<number, Pool>();
  readonly #domains = new Map<number, ReadonlyMap<number, Members>>();
  /** By kind: who of its holders gives way most easily, and all that were ever acquired. */
  readonly #easiestOf = new Map<number, Buyer>();
  readonly #acquired = new Map<number, number[]>();

  readonly #differences: Differences;
  #shelves: Shelves;
  /** Steps that searches for cheap covers may still take in this cycle. */
  #steps: number = COVER_STEPS_MAX;

  constructor(tables: Tables, differences: Differences) {
    this.#tables = tables;
    this.#differences = differences;
    this.#shelves = new Shelves(tables, this.holders);
  }

  /** Serves rows in their order; one that is driven out of machines comes again at the end. */
  acquire(buyers: readonly Buyer[]): void {
    const queue: Queued[] = buyers.map((buyer) => ({ buyer, retries: RETRIES_MAX }));
    for (let head = 0; head < queue.length; head++) {
      const { buyer, retries } = queue[head]!;
      if (buyer.isParked) continue;
      for (const loser of this.#serveWhole(buyer, retries)) {
        if (loser.retries > 0) queue.push(loser);
      }
      for (const state of [IDLE, SPECULATIVE]) {
        if (isCovered(buyer.deficit)) break;
        for (const loser of this.#serve(buyer, retries, state)) {
          if (loser.retries > 0) queue.push(loser);
        }
      }
    }
  }

  /** Idle and Speculative machines together, where a difference says so. */
  #serveWhole(buyer: Buyer, retries: number): readonly Queued[] {
    const { wholeGangs, cheapestCover } = this.#differences;
    const facts = this.#tables.profiles.facts[buyer.profileId]!;
    if (isCovered(buyer.deficit)) return [];
    if (facts.sameKey !== undefined) {
      return wholeGangs ? this.#hand(buyer, retries, this.#wholeGang(buyer)) : [];
    }
    if (facts.spread !== undefined || !cheapestCover) return [];
    return this.#hand(buyer, retries, this.#cheapest(buyer));
  }

  /** All that a gang lacks in its domain, or nothing. */
  #wholeGang(buyer: Buyer): readonly number[] {
    const slots = [IDLE, SPECULATIVE].flatMap((state) => this.#membersFor(buyer, state));
    const found = this.#untilCovered(slots, buyer.deficit);
    const remaining = buyer.deficit.slice();
    const { machines, kinds } = this.#tables;
    for (const slot of found) this.#subtract(remaining, kinds.vector[machines.kind[slot]!]!);
    return isCovered(remaining) ? found : [];
  }

  /** Free machines that cost the least together; what is driven out comes afterwards. */
  #cheapest(buyer: Buyer): readonly number[] {
    const facts = this.#tables.profiles.facts[buyer.profileId]!;
    const minUnit = buyer.demand.normal.minUnit[buyer.position]!;
    const { kinds, take } = this.#shelves.choiceFor(facts, minUnit, buyer.deficit);
    if (kinds.length === 0) return [];
    const cover = cheapestCover(kinds, buyer.deficit, this.#steps);
    this.#steps -= cover.steps;
    return take(cover.counts);
  }

  #serve(buyer: Buyer, retries: number, state: number): readonly Queued[] {
    const facts = this.#tables.profiles.facts[buyer.profileId]!;
    if (facts.sameKey !== undefined && this.#differences.wholeGangs) return [];
    const found =
      facts.sameKey !== undefined
        ? this.#forGang(buyer, state)
        : facts.spread !== undefined
          ? this.#spreadOut(buyer, state)
          : this.#plain(buyer, state);
    return this.#hand(buyer, retries, found);
  }

  /** Gives machines to a row; answers who loses some. */
  #hand(buyer: Buyer, retries: number, found: readonly number[]): readonly Queued[] {
    const driven = new Map<Buyer, number>();
    for (const slot of found) {
      const before = this.holders.get(slot);
      if (before !== undefined) {
        before.buyer.held.delete(slot);
        const left = Math.min(before.retries - 1, driven.get(before.buyer) ?? Infinity);
        driven.set(before.buyer, left);
      }
      if (this.#easiest === undefined || this.#yields(buyer, this.#easiest)) this.#easiest = buyer;
      this.#noteKind(slot, buyer, before === undefined);
      if (before === undefined) this.#shelves.took(slot);
      this.holders.set(slot, { buyer, retries });
      buyer.held.add(slot);
    }
    if (found.length > 0) this.#account(buyer);
    for (const loser of driven.keys()) {
      this.#breakUp(loser);
      this.#account(loser);
    }
    return [...driven].map(([loser, left]) => ({ buyer: loser, retries: left }));
  }

  #noteKind(slot: number, buyer: Buyer, isNew: boolean): void {
    const kind = this.#tables.machines.kind[slot]!;
    const easiest = this.#easiestOf.get(kind);
    if (easiest === undefined || this.#yields(buyer, easiest)) this.#easiestOf.set(kind, buyer);
    if (!isNew) return;
    const list = this.#acquired.get(kind);
    if (list === undefined) this.#acquired.set(kind, [slot]);
    else list.push(slot);
  }

  /** Whether some holder of a machine of this kind may have to give way. */
  #mayDisplace(buyer: Buyer, kind: number): boolean {
    const easiest = this.#easiestOf.get(kind);
    return easiest !== undefined && this.#yields(easiest, buyer);
  }

  /** A gang that lost a machine gives the others back: a part is of no use to it. */
  #breakUp(loser: Buyer): void {
    const { sameKey } = this.#tables.profiles.facts[loser.profileId]!;
    if (sameKey === undefined || !this.#differences.wholeGangs) return;
    if (loser.held.size === 0) return;
    for (const slot of loser.held) this.holders.delete(slot);
    loser.held.clear();
    // what is free again may lie before places that were passed over
    this.#pools.clear();
    this.#domains.clear();
    this.#shelves = new Shelves(this.#tables, this.holders);
  }

  /** Works out what a row still wants. */
  #account(buyer: Buyer): void {
    const { machines, kinds } = this.#tables;
    buyer.deficit.set(buyer.base);
    for (const slot of buyer.held)
      this.#subtract(buyer.deficit, kinds.vector[machines.kind[slot]!]!);
  }

  #subtract(deficit: Float64Array, vector: number): void {
    const { vectors } = this.#tables;
    const from = vector * vectors.stride;
    for (let at = 0; at < vectors.dimensions; at++) {
      deficit[at] = Math.max(0, deficit[at]! - vectors.values[from + at]!);
    }
  }

  #poolOf(profileId: number, state: number): Pool {
    const key = profileId * 2 + Number(state === IDLE);
    const known = this.#pools.get(key);
    if (known !== undefined) return known;
    const pool = new Pool(this.#tables, this.#tables.profiles.facts[profileId]!, state);
    this.#pools.set(key, pool);
    return pool;
  }

  #plain(buyer: Buyer, state: number): readonly number[] {
    const { machines, kinds, vectors } = this.#tables;
    const pool = this.#poolOf(buyer.profileId, state);
    const minUnit = buyer.demand.normal.minUnit[buyer.position]!;
    const remaining = buyer.deficit.slice();
    const found: number[] = [];
    // free ones were chosen together before
    for (let place = pool.firstFree; !this.#differences.cheapestCover; place++) {
      const slot = pool.at(place);
      if (slot < 0) break;
      if (this.holders.has(slot)) {
        if (place === pool.firstFree) pool.firstFree++;
        continue;
      }
      const vector = kinds.vector[machines.kind[slot]!]!;
      if (!vectors.covers(vector, minUnit)) continue;
      found.push(slot);
      this.#subtract(remaining, vector);
      if (isCovered(remaining)) return found;
    }
    for (const slot of this.#displaceable(buyer, state, pool)) {
      if (!this.#helps(slot, remaining)) continue;
      found.push(slot);
      this.#subtract(remaining, kinds.vector[machines.kind[slot]!]!);
      if (isCovered(remaining)) break;
    }
    return found;
  }

  /** What others took in this cycle and would lose to this row, the cheapest first. */
  #displaceable(buyer: Buyer, state: number, pool: Pool): readonly number[] {
    const { machines, kinds, vectors, profiles } = this.#tables;
    const { profile, types } = profiles.facts[buyer.profileId]!;
    if (this.#easiest === undefined || !this.#yields(this.#easiest, buyer)) return [];
    const minUnit = buyer.demand.normal.minUnit[buyer.position]!;
    const slots: number[] = [];
    const seen = new Set<number>();
    for (const [kind, acquired] of this.#acquired) {
      if (!this.#mayDisplace(buyer, kind)) continue;
      if (types !== undefined && !types.includes(kinds.fields[kind]!.instanceType)) continue;
      if (!kinds.matches(buyer.profileId, profile, kind)) continue;
      if (!vectors.covers(kinds.vector[kind]!, minUnit)) continue;
      for (const slot of acquired) {
        const holder = this.holders.get(slot);
        if (holder === undefined || machines.state[slot] !== state || seen.has(slot)) continue;
        if (!this.#yields(holder.buyer, buyer)) continue;
        seen.add(slot);
        slots.push(slot);
      }
    }
    return slots.sort((left, right) => {
      const [a, b] = [pool.costOf(left, state), pool.costOf(right, state)];
      return a === b ? machines.compareId(left, right) : a - b;
    });
  }

  /** Whether a machine has something of what is lacking; strictly, that is not asked. */
  #helps(slot: number, remaining: Float64Array): boolean {
    if (!this.#differences.cheapestCover) return true;
    const { machines, kinds, vectors } = this.#tables;
    return vectors.helps(kinds.vector[machines.kind[slot]!]!, remaining);
  }

  #yields(holder: Buyer, buyer: Buyer): boolean {
    const { facts } = this.#tables.profiles;
    return comparePrecedence(facts[holder.profileId]!.profile, facts[buyer.profileId]!.profile) < 0;
  }

  #isOpen(slot: number, buyer: Buyer, minUnit: number): boolean {
    const { machines, kinds, vectors } = this.#tables;
    if (!vectors.covers(kinds.vector[machines.kind[slot]!]!, minUnit)) return false;
    const holder = this.holders.get(slot);
    return holder === undefined || this.#yields(holder.buyer, buyer);
  }

  /** A pool by the value under one key, the cheapest first in each. */
  #byValue(buyer: Buyer, state: number, topic: string): ReadonlyMap<number, Members> {
    const key = buyer.profileId * 2 + Number(state === IDLE);
    const known = this.#domains.get(key);
    if (known !== undefined) return known;
    const { machines, kinds } = this.#tables;
    const pool = this.#poolOf(buyer.profileId, state);
    const groups = new Map<number, Members & { readonly slots: number[] }>();
    for (let place = 0; ; place++) {
      const slot = pool.at(place);
      if (slot < 0) break;
      const kind = machines.kind[slot]!;
      const value = kinds.valueOf(topic, kind);
      if (value < 0) continue;
      const group = groups.get(value);
      if (group === undefined)
        groups.set(value, { slots: [slot], kinds: new Set([kind]), firstFree: 0 });
      else {
        group.slots.push(slot);
        group.kinds.add(kind);
      }
    }
    this.#domains.set(key, groups);
    return groups;
  }

  #forGang(buyer: Buyer, state: number): readonly number[] {
    return this.#untilCovered(this.#membersFor(buyer, state), buyer.deficit);
  }

  /** Machines of a gang's domain that it may take, the cheapest first. */
  #membersFor(buyer: Buyer, state: number): readonly number[] {
    const { kinds, profiles } = this.#tables;
    const { sameKey = '' } = profiles.facts[buyer.profileId]!;
    const groups = this.#byValue(buyer, state, sameKey);
    const value = buyer.demand.domain[buyer.position]!;
    const minUnit = buyer.demand.normal.minUnit[buyer.position]!;
    const isChosen = value >= 0 && kinds.valueText(value) !== '';
    return isChosen
      ? this.#openOf(groups.get(value), buyer, minUnit)
      : this.#cheapestDomain(groups, buyer, minUnit);
  }

  #untilCovered(slots: readonly number[], deficit: Float64Array): readonly number[] {
    const { machines, kinds } = this.#tables;
    const remaining = deficit.slice();
    const found: number[] = [];
    for (const slot of slots) {
      if (isCovered(remaining)) break;
      found.push(slot);
      this.#subtract(remaining, kinds.vector[machines.kind[slot]!]!);
    }
    return found;
  }

  /** Before this place nothing is free, and nobody has to give way. */
  #firstOpen(members: Members, buyer: Buyer): number {
    const { slots } = members;
    while (members.firstFree < slots.length && this.holders.has(slots[members.firstFree]!)) {
      members.firstFree++;
    }
    for (const kind of members.kinds) if (this.#mayDisplace(buyer, kind)) return 0;
    return members.firstFree;
  }

  #openOf(members: Members | undefined, buyer: Buyer, minUnit: number): readonly number[] {
    if (members === undefined) return [];
    const open: number[] = [];
    for (let at = this.#firstOpen(members, buyer); at < members.slots.length; at++) {
      const slot = members.slots[at]!;
      if (this.#isOpen(slot, buyer, minUnit)) open.push(slot);
    }
    return open;
  }

  /** Where a gang goes for which no domain was chosen. */
  #cheapestDomain(
    groups: ReadonlyMap<number, Members>,
    buyer: Buyer,
    minUnit: number,
  ): readonly number[] {
    const { kinds, machines } = this.#tables;
    const ranked = [...groups].flatMap(([value, group]) => {
      const members = this.#openOf(group, buyer, minUnit);
      if (members.length === 0) return [];
      const remaining = buyer.deficit.slice();
      for (const slot of members) this.#subtract(remaining, kinds.vector[machines.kind[slot]!]!);
      const headPrice = kinds.price[machines.kind[members[0]!]!]!;
      return [{ value, members, isAtomic: isCovered(remaining), headPrice }];
    });
    ranked.sort((left, right) => {
      return (
        Number(right.isAtomic) - Number(left.isAtomic) ||
        (left.isAtomic ? 0 : right.members.length - left.members.length) ||
        left.headPrice - right.headPrice ||
        kinds.compareValues(left.value, right.value)
      );
    });
    return ranked[0]?.members ?? [];
  }

  /** How many machines a row has in each domain already, where that counts. */
  #hadIn({ demand, position, held }: Buyer, topic: string): ReadonlyMap<number, number> {
    const counts = new Map<number, number>();
    if (!this.#differences.countsSpread) return counts;
    const { kinds, machines } = this.#tables;
    const claims = demand.claims.subarray(demand.starts[position], demand.ends[position]);
    for (const slot of [...claims, ...held]) {
      const value = kinds.valueOf(topic, machines.kind[slot]!);
      if (value >= 0) counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    return counts;
  }

  /** The cheapest next machine, as long as its domain is not too far ahead of the others. */
  #spreadOut(buyer: Buyer, state: number): readonly number[] {
    const { kinds, machines, profiles } = this.#tables;
    const { spread } = profiles.facts[buyer.profileId]!;
    assert(spread !== undefined, 'a row without spread is served otherwise');
    const minUnit = buyer.demand.normal.minUnit[buyer.position]!;
    const isOpen = (slot: number): boolean => this.#isOpen(slot, buyer, minUnit);
    const had = this.#hadIn(buyer, spread.topologyKey);
    const byValue = this.#byValue(buyer, state, spread.topologyKey);
    const groups = [...byValue].flatMap(([value, members]) => {
      const all = members.slots;
      let next = this.#firstOpen(members, buyer);
      while (next < all.length && !isOpen(all[next]!)) next++;
      return next === all.length ? [] : [{ value, all, next, taken: had.get(value) ?? 0 }];
    });
    const skew = Math.max(1, spread.maxSkew);
    const found: number[] = [];
    const remaining = buyer.deficit.slice();
    while (!isCovered(remaining)) {
      let least = Infinity;
      for (const { taken } of groups) if (taken < least) least = taken;
      let best: (typeof groups)[number] | undefined;
      let bestPrice = 0;
      for (const group of groups) {
        const head = group.all[group.next];
        if (head === undefined || group.taken > least + skew - 1) continue;
        const price = kinds.price[machines.kind[head]!]!;
        const isBetter =
          best === undefined ||
          price < bestPrice ||
          (price === bestPrice && kinds.compareValues(group.value, best.value) < 0);
        if (isBetter) [best, bestPrice] = [group, price];
      }
      if (best === undefined) break;
      const slot = best.all[best.next++]!;
      best.taken++;
      while (best.next < best.all.length && !isOpen(best.all[best.next]!)) best.next++;
      found.push(slot);
      this.#subtract(remaining, kinds.vector[machines.kind[slot]!]!);
    }
    return found;
  }
}

export function isCovered(deficit: Float64Array): boolean {
  for (let at = 0; at < deficit.length; at++) if (deficit[at]! > 0) return false;
  return true;
}
