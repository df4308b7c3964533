// data plane: what is missing is taken from Idle and Speculative machines, section 4.8
import { assert } from '@megaplane/base/assert';
import { comparePrecedence } from '../profile.ts';
import { Pool } from './acquirable.ts';
import type { Buyer } from './credit.ts';
import { IDLE, SPECULATIVE } from './machines.ts';
import type { Tables } from './tables.ts';

const RETRIES_MAX = 10;

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
  readonly #domains = new Map<number, ReadonlyMap<number, readonly number[]>>();

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** Serves rows in their order; one that is driven out of machines comes again at the end. */
  acquire(buyers: readonly Buyer[]): void {
    const queue: Queued[] = buyers.map((buyer) => ({ buyer, retries: RETRIES_MAX }));
    for (let head = 0; head < queue.length; head++) {
      const { buyer, retries } = queue[head]!;
      if (buyer.isParked) continue;
      for (const state of [IDLE, SPECULATIVE]) {
        if (isCovered(buyer.deficit)) break;
        for (const loser of this.#serve(buyer, retries, state)) {
          if (loser.retries > 0) queue.push(loser);
        }
      }
    }
  }

  #serve(buyer: Buyer, retries: number, state: number): readonly Queued[] {
    const facts = this.#tables.profiles.facts[buyer.profileId]!;
    const found =
      facts.sameKey !== undefined
        ? this.#forGang(buyer, state)
        : facts.spread !== undefined
          ? this.#spreadOut(buyer, state)
          : this.#plain(buyer, state);
    const driven = new Map<Buyer, number>();
    for (const slot of found) {
      const before = this.holders.get(slot);
      if (before !== undefined) {
        before.buyer.held.delete(slot);
        const left = Math.min(before.retries - 1, driven.get(before.buyer) ?? Infinity);
        driven.set(before.buyer, left);
      }
      if (this.#easiest === undefined || this.#yields(buyer, this.#easiest)) this.#easiest = buyer;
      this.holders.set(slot, { buyer, retries });
      buyer.held.add(slot);
    }
    if (found.length > 0) this.#account(buyer);
    for (const loser of driven.keys()) this.#account(loser);
    return [...driven].map(([loser, left]) => ({ buyer: loser, retries: left }));
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
    for (let place = pool.firstFree; ; place++) {
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
    for (const [slot, { buyer: holder }] of this.holders) {
      if (machines.state[slot] !== state || !this.#yields(holder, buyer)) continue;
      const kind = machines.kind[slot]!;
      if (types !== undefined && !types.includes(kinds.fields[kind]!.instanceType)) continue;
      if (!kinds.matches(buyer.profileId, profile, kind)) continue;
      if (vectors.covers(kinds.vector[kind]!, minUnit)) slots.push(slot);
    }
    return slots.sort((left, right) => {
      const [a, b] = [pool.costOf(left, state), pool.costOf(right, state)];
      return a === b ? machines.compareId(left, right) : a - b;
    });
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
  #byValue(buyer: Buyer, state: number, topic: string): ReadonlyMap<number, readonly number[]> {
    const key = buyer.profileId * 2 + Number(state === IDLE);
    const known = this.#domains.get(key);
    if (known !== undefined) return known;
    const { machines, kinds } = this.#tables;
    const pool = this.#poolOf(buyer.profileId, state);
    const groups = new Map<number, number[]>();
    for (let place = 0; ; place++) {
      const slot = pool.at(place);
      if (slot < 0) break;
      const value = kinds.valueOf(topic, machines.kind[slot]!);
      if (value < 0) continue;
      const group = groups.get(value);
      if (group === undefined) groups.set(value, [slot]);
      else group.push(slot);
    }
    this.#domains.set(key, groups);
    return groups;
  }

  #forGang(buyer: Buyer, state: number): readonly number[] {
    const { kinds, profiles } = this.#tables;
    const { sameKey = '' } = profiles.facts[buyer.profileId]!;
    const groups = this.#byValue(buyer, state, sameKey);
    const value = buyer.demand.domain[buyer.position]!;
    const minUnit = buyer.demand.normal.minUnit[buyer.position]!;
    const isChosen = value >= 0 && kinds.valueText(value) !== '';
    const members = isChosen
      ? (groups.get(value) ?? []).filter((slot) => this.#isOpen(slot, buyer, minUnit))
      : this.#cheapestDomain(groups, buyer, minUnit);
    return this.#untilCovered(members, buyer.deficit);
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

  /** Where a gang goes for which no domain was chosen. */
  #cheapestDomain(
    groups: ReadonlyMap<number, readonly number[]>,
    buyer: Buyer,
    minUnit: number,
  ): readonly number[] {
    const { kinds, machines } = this.#tables;
    const ranked = [...groups].flatMap(([value, group]) => {
      const members = group.filter((slot) => this.#isOpen(slot, buyer, minUnit));
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

  /** The cheapest next machine, as long as its domain is not too far ahead of the others. */
  #spreadOut(buyer: Buyer, state: number): readonly number[] {
    const { kinds, machines, profiles } = this.#tables;
    const { spread } = profiles.facts[buyer.profileId]!;
    assert(spread !== undefined, 'a row without spread is served otherwise');
    const minUnit = buyer.demand.normal.minUnit[buyer.position]!;
    const isOpen = (slot: number): boolean => this.#isOpen(slot, buyer, minUnit);
    const groups = [...this.#byValue(buyer, state, spread.topologyKey)].flatMap(([value, all]) => {
      const next = all.findIndex(isOpen);
      return next < 0 ? [] : [{ value, all, next, taken: 0 }];
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
