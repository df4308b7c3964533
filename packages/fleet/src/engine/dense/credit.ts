// data plane: what exists is credited, cluster by cluster in the order of rows
import type { Tables } from './tables.ts';
import type { ClusterDemand } from './clusters.ts';
import type { DomainChooser } from './domains.ts';
import type { Differences } from '../differences.ts';

/** A row that wants more than what it was credited. */
export interface Buyer {
  readonly demand: ClusterDemand;
  readonly position: number;
  readonly profileId: number;
  readonly isParked: boolean;
  /** What is left after the credits. */
  readonly base: Float64Array<ArrayBuffer>;
  /** What is left now. */
  readonly deficit: Float64Array<ArrayBuffer>;
  /** What it took beyond its credits. */
  readonly held: Set<number>;
  retries: number;
}

export class Creditor {
  readonly buyers: Buyer[] = [];
  readonly #tables: Tables;
  readonly #chooser: DomainChooser;
  readonly #isParked: (demand: ClusterDemand, position: number) => boolean;
  readonly #differences: Differences;
  readonly #remaining: Float64Array<ArrayBuffer>;
  readonly #creating = new Map<number, number[]>();
  /** Creating machines that a row of this cycle has. */
  readonly #made = new Set<number>();

  constructor(
    tables: Tables,
    chooser: DomainChooser,
    isParked: (demand: ClusterDemand, position: number) => boolean,
    differences: Differences,
  ) {
    this.#differences = differences;
    this.#tables = tables;
    this.#chooser = chooser;
    this.#isParked = isParked;
    this.#remaining = new Float64Array(tables.vectors.stride);
    const { machines } = tables;
    for (const slot of machines.creating) {
      const stamp = machines.stamp[slot]!;
      const list = this.#creating.get(stamp);
      if (stamp === 0) continue;
      if (list === undefined) this.#creating.set(stamp, [slot]);
      else list.push(slot);
    }
    for (const list of this.#creating.values()) {
      list.sort((left, right) => machines.compareId(left, right));
    }
  }

  /** Serves one row; rows must come in their order. */
  credit(demand: ClusterDemand, position: number): void {
    const { vectors, profiles } = this.#tables;
    const { normal } = demand;
    const profileId = normal.profile[position]!;
    const from = normal.aggregate[position]! * vectors.stride;
    for (let at = 0; at < vectors.dimensions; at++) {
      this.#remaining[at] = vectors.values[from + at]!;
    }
    demand.starts[position] = demand.claimsCount;
    const facts = profiles.facts[profileId]!;
    const isParked = facts.sameKey !== undefined && this.#isParked(demand, position);
    if (facts.sameKey === undefined) this.#creditPlain(demand, position, profileId);
    else this.#creditGang(demand, position, profileId, isParked);
    demand.ends[position] = demand.claimsCount;
    if (this.#isCovered()) return;
    demand.isShared = true;
    const base = this.#remaining.slice();
    this.buyers.push({
      ...{ demand, position, profileId, isParked, base },
      deficit: base.slice(),
      held: new Set(),
      retries: 0,
    });
  }

  #creditPlain(demand: ClusterDemand, position: number, profileId: number): void {
    if (this.#isCovered()) return;
    const { machines, kinds, vectors, profiles } = this.#tables;
    const { profile } = profiles.facts[profileId]!;
    const minUnit = demand.normal.minUnit[position]!;
    const stamp = machines.stamps.find(profile.fingerprint);
    if (this.#differences.ownFirst) {
      const own = stamp ?? -1;
      if (own >= 0) this.#creditLive(demand, position, profileId, own);
    }
    if (!this.#isCovered()) this.#creditLive(demand, position, profileId, -1);
    if (this.#isCovered()) return;
    for (const slot of (stamp === undefined ? undefined : this.#creating.get(stamp)) ?? []) {
      const kind = machines.kind[slot]!;
      if (this.#made.has(slot) || !kinds.matches(profileId, profile, kind)) continue;
      if (!vectors.covers(kinds.vector[kind]!, minUnit)) continue;
      this.#claimMade(demand, slot);
      if (this.#subtract(kind)) break;
    }
  }

  /** Credits bound machines in keep order; with `own` only those of this stamp, and no gang's. */
  #creditLive(demand: ClusterDemand, position: number, profileId: number, own: number): void {
    const { machines, kinds, vectors, profiles } = this.#tables;
    const { profile } = profiles.facts[profileId]!;
    const minUnit = demand.normal.minUnit[position]!;
    const group = demand.normal.group[position]!;
    let first = -1;
    for (let at = 0; at < demand.liveCount; at++) {
      const slot = demand.live[at]!;
      if (own >= 0 && (machines.stamp[slot] !== own || machines.group[slot] !== group)) continue;
      const kind = machines.kind[slot]!;
      if (!kinds.matches(profileId, profile, kind)) continue;
      if (!vectors.covers(kinds.vector[kind]!, minUnit)) continue;
      demand.claim(slot);
      demand.live[at] = -1;
      if (first < 0) first = at;
      if (this.#subtract(kind)) break;
    }
    if (first >= 0) demand.compact(first);
  }

  #creditGang(demand: ClusterDemand, position: number, profileId: number, isParked: boolean): void {
    const { machines, profiles } = this.#tables;
    const { fingerprint } = profiles.facts[profileId]!.profile;
    const stamp = machines.stamps.find(fingerprint) ?? -1;
    const group = demand.normal.group[position]!;
    const own = (this.#creating.get(stamp) ?? []).filter((slot) => machines.group[slot] === group);
    if (own.length > 0) demand.isShared = true;
    const creating = own.filter((slot) => !this.#made.has(slot));
    const chooser = this.#chooser;
    const found = chooser.choose(demand, position, { stamp, isParked, creating });
    if (chooser.isShared) demand.isShared = true;
    if (!found) return;
    demand.domain[position] = chooser.value;
    demand.isSatisfiable[position] = Number(chooser.isSatisfiable);
    let first = -1;
    for (const at of chooser.creditable) {
      if (this.#isCovered()) break;
      if (at < 0) {
        const slot = -1 - at;
        this.#claimMade(demand, slot);
        this.#subtract(machines.kind[slot]!);
        continue;
      }
      const slot = demand.live[at]!;
      demand.claim(slot);
      demand.live[at] = -1;
      if (first < 0 || at < first) first = at;
      this.#subtract(machines.kind[slot]!);
    }
    if (first >= 0) demand.compact(first);
    if (!isParked && !this.#isCovered()) chooser.consume(demand, position, this.#remaining);
  }

  #claimMade(demand: ClusterDemand, slot: number): void {
    this.#made.add(slot);
    demand.isShared = true;
    demand.claim(slot);
  }

  /** Takes what a kind offers from what is left; true if nothing is left. */
  #subtract(kind: number): boolean {
    const { vectors, kinds } = this.#tables;
    const from = kinds.vector[kind]! * vectors.stride;
    let isCovered = true;
    for (let at = 0; at < vectors.dimensions; at++) {
      const left = this.#remaining[at]! - vectors.values[from + at]!;
      this.#remaining[at] = left > 0 ? left : 0;
      if (left > 0) isCovered = false;
    }
    return isCovered;
  }

  #isCovered(): boolean {
    for (let at = 0; at < this.#remaining.length; at++) if (this.#remaining[at]! > 0) return false;
    return true;
  }
}
