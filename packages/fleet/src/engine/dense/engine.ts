// data plane: one cycle over the tables, in proportion to what changed since the last one
//
// A cluster's credits depend on its own rows and its own machines, and stay while these do. Three
// things tie clusters together: rows that want more than their cluster has, gangs whose choice of
// a domain hangs on what could be acquired, and machines that are being made. Clusters with one of
// these are worked out in each cycle, all others only when something of theirs changed. So a
// cycle finds what it would find from nothing; `isFull` has it begin from nothing.
import { byUtf8 } from '../../contract/text-order.ts';
import type { Differences } from '../differences.ts';
import { amountsOf } from '../amounts.ts';
import { profileOf } from '../profile.ts';
import type { Profile } from '../profile.ts';
import type { Row } from '../row.ts';
import { AcquirableIndex } from './acquirable.ts';
import { Acquirer, isCovered } from './acquire.ts';
import type { ClusterDemand, Rows } from './clusters.ts';
import { NO_ROWS, rowsOf } from './clusters.ts';
import { type Buyer, Creditor } from './credit.ts';
import { DomainChooser, type ReportedDomain } from './domains.ts';
import { Folding } from './fold.ts';
import { CONFIGURED, CREATING } from './machines.ts';
import { type Preempted, type Reservation, type UnresolvedBuyer, preempt } from './preempt.ts';
import { Tables } from './tables.ts';
import type { NeedMessage } from '../need-message.ts';

/** A row that pins no type comes after all that do. */
const UNPINNED = 2 ** 31;

export interface CycleOptions {
  readonly differences: Differences;
  /** Everything is worked out anew. */
  readonly isFull: boolean;
  readonly isParked: (demand: ClusterDemand, position: number) => boolean;
  /** Machines that drain -> for whom they were driven out. */
  readonly reserved: ReadonlyMap<number, Reservation>;
  /** Told of all domains of each gang that is looked at. */
  readonly report?: (demand: ClusterDemand, position: number, all: ReportedDomain[]) => void;
}

export interface DenseDecision {
  /** Rows that their cluster's machines did not cover, in the order of rows. */
  readonly buyers: readonly Buyer[];
  readonly unsatisfied: readonly Buyer[];
  readonly preempted: readonly Preempted[];
  readonly unresolved: readonly UnresolvedBuyer[];
  /** True for a machine that some row acquires. */
  readonly isTaken: (slot: number) => boolean;
  /** How many clusters were worked out. */
  readonly clustersVisited: number;
}

export class DenseEngine {
  readonly tables: Tables = new Tables();
  readonly folding: Folding;
  /** Clusters with amounts or profiles that the tables do not hold exactly. */
  readonly odd: Set<number> = new Set();
  readonly #profiles = new WeakMap<object, number>();

  readonly #differences: Differences;

  constructor(differences: Differences) {
    this.#differences = differences;
    this.folding = new Folding(this.tables, differences);
    const { machines } = this.tables;
    machines.onLeave = (slot) => this.#changed(slot, -1);
    machines.onEnter = (slot) => this.#changed(slot, 1);
  }

  /** True if some amount or profile in use is not exactly what it is in the tables. */
  get isOdd(): boolean {
    if (this.#differences.boundedAmounts) return false;
    return this.odd.size > 0 || this.tables.kinds.odd > 0;
  }

  #changed(slot: number, change: 1 | -1): void {
    const { machines, profiles, demands } = this.tables;
    const state = machines.state[slot]!;
    this.folding.changed(machines.kind[slot]!, state, change);
    const cluster = machines.cluster[slot]!;
    if (cluster >= 0) this.tables.demandOf(machines.clusterNames[cluster]!).isDirty = true;
    if (state !== CREATING) return;
    const profileId = profiles.find(machines.stamps.keyOf(machines.stamp[slot]!));
    if (profileId < 0 || profiles.facts[profileId]!.sameKey === undefined) return;
    for (const demand of demands) if (demand.hasGangs) demand.isDirty = true;
  }

  /** Takes a cluster's rows in place of what it had. */
  setRows(cluster: string, arrival: number, told: readonly NeedMessage[]): void {
    const demand = this.tables.demandOf(cluster);
    const { steadyOrder } = this.#differences;
    if (!steadyOrder || !demand.hasRows) demand.arrival = arrival;
    demand.hasReported = true;
    demand.hasRows = true;
    const needs = steadyOrder ? this.#inSteadyOrder(told) : told;
    let isOdd = false;
    const rows = rowsOf(needs.length);
    for (const [at, need] of needs.entries()) {
      const { vectors, machines } = this.tables;
      const profileId = this.#profileId(need);
      rows.profile[at] = profileId;
      rows.group[at] = machines.groups.hold(need.group);
      rows.aggregate[at] = vectors.hold(amountsOf(need.aggregate), 'wanted');
      if (vectors.wasOdd || this.tables.profiles.facts[profileId]!.isOdd) isOdd = true;
      rows.minUnit[at] = vectors.hold(amountsOf(need.minUnit), 'wanted');
      if (vectors.wasOdd) isOdd = true;
    }
    const before = demand.rows;
    demand.rows = rows;
    if (isOdd) this.odd.add(demand.id);
    else this.odd.delete(demand.id);
    demand.exact = isOdd ? this.#exactRows(demand, needs) : undefined;
    const isSame = isSameRows(before, rows);
    if (isSame || demand.former !== undefined) this.#release(before);
    else demand.former = before;
    if (isSame) return;
    const { facts } = this.tables.profiles;
    demand.hasGangs = rows.profile.some((id) => facts[id]!.sameKey !== undefined);
    demand.isRaw = true;
    demand.isDirty = true;
  }

  /** Rows that fewer types can serve before others, then by what they are. */
  #inSteadyOrder(needs: readonly NeedMessage[]): readonly NeedMessage[] {
    const { facts } = this.tables.profiles;
    const keyed = needs.map((need) => ({ need, of: facts[this.#profileId(need)]! }));
    keyed.sort((left, right) => {
      return (
        (left.of.types?.length ?? UNPINNED) - (right.of.types?.length ?? UNPINNED) ||
        byUtf8(left.of.profile.fingerprint, right.of.profile.fingerprint) ||
        byUtf8(left.need.group, right.need.group)
      );
    });
    return keyed.map(({ need }) => need);
  }

  #profileId({ profile }: NeedMessage): number {
    const known = this.#profiles.get(profile);
    if (known !== undefined) return known;
    const id = this.tables.profiles.idOf(profileOf(profile));
    this.#profiles.set(profile, id);
    return id;
  }

  #exactRows(demand: ClusterDemand, needs: readonly NeedMessage[]): readonly Row[] {
    return needs.map((need, at) => ({
      cluster: demand.name,
      profile: this.profileAt(demand.rows.profile[at]!),
      group: need.group,
      aggregate: amountsOf(need.aggregate),
      minUnit: amountsOf(need.minUnit),
      arrival: demand.arrival,
    }));
  }

  #release(rows: Rows): void {
    const { vectors, machines } = this.tables;
    if (rows === NO_ROWS) return;
    for (let at = 0; at < rows.count; at++) {
      machines.groups.release(rows.group[at]!);
      vectors.release(rows.aggregate[at]!);
      vectors.release(rows.minUnit[at]!);
    }
  }

  profileAt(id: number): Profile {
    return this.tables.profiles.facts[id]!.profile;
  }

  rowAt(demand: ClusterDemand, rows: Rows, at: number): Row {
    const { vectors, machines } = this.tables;
    return {
      cluster: demand.name,
      profile: this.profileAt(rows.profile[at]!),
      group: machines.groups.keyOf(rows.group[at]!),
      aggregate: vectors.amountsOf(rows.aggregate[at]!),
      minUnit: vectors.amountsOf(rows.minUnit[at]!),
      arrival: demand.arrival,
    };
  }

  /** All rows as they came, unordered. */
  *rawRows(): Generator<Row> {
    for (const demand of this.tables.demands) {
      if (demand.exact !== undefined) yield* demand.exact;
      else for (let at = 0; at < demand.rows.count; at++) yield this.rowAt(demand, demand.rows, at);
    }
  }

  decide({ isFull, isParked, report, differences, reserved }: CycleOptions): DenseDecision {
    const { demands, machines } = this.tables;
    if (this.folding.update() || isFull) {
      for (const demand of demands) {
        if (isFull) demand.isRaw = true;
        else if (demand.hasGangs) demand.isDirty = true;
      }
    }
    // clusters that only have machines
    for (const name of machines.clusterNames) this.tables.demandOf(name);
    const visited = demands.filter((demand) => {
      return demand.isDirty || demand.isShared || demand.isRaw;
    });
    for (const demand of visited) {
      if (this.folding.isStale(demand)) this.folding.normalize(demand);
      if (demand.former !== undefined) this.#release(demand.former);
      demand.former = undefined;
      const bound = machines.bound[demand.id]!;
      const boundCount = bound.refresh();
      demand.begin(bound.items, boundCount);
      demand.isDirty = false;
    }
    const index = new AcquirableIndex(this.tables);
    const chooser = new DomainChooser(this.tables, index, differences, report);
    const creditor = new Creditor(this.tables, chooser, isParked, differences);
    this.#creditAll(visited, creditor);
    const buyers = this.#inRowOrder(creditor.buyers);
    const acquirer = new Acquirer(this.tables, differences);
    acquirer.acquire(buyers);
    const unsatisfied = buyers.filter(({ deficit }) => !isCovered(deficit));
    const { preempted, unresolved } = preempt(unsatisfied, this.tables, { differences, reserved });
    const isTaken = (slot: number): boolean => acquirer.holders.has(slot);
    const clustersVisited = visited.length;
    return { buyers, unsatisfied, preempted, unresolved, isTaken, clustersVisited };
  }

  /** Bound machines that no row needs, of one cluster, what is kept first before others. */
  *surplusOf(demand: ClusterDemand): Generator<number> {
    const { state } = this.tables.machines;
    for (let at = 0; at < demand.liveCount; at++) {
      const slot = demand.live[at]!;
      if (state[slot] === CONFIGURED) yield slot;
    }
  }

  /** By priority; rows of one, kept ones by arrival and cluster before folded ones by cluster. */
  #creditAll(visited: readonly ClusterDemand[], creditor: Creditor): void {
    const { facts } = this.tables.profiles;
    const byArrival = visited.toSorted((a, b) => a.arrival - b.arrival || byUtf8(a.name, b.name));
    const byName = visited.toSorted((a, b) => byUtf8(a.name, b.name));
    // who has rows of a priority: kept ones and folded ones apart
    const kept = new Map<number, ClusterDemand[]>();
    const folded = new Map<number, ClusterDemand[]>();
    for (const demand of byArrival) this.#spreadOut(demand, kept, 0, demand.normal.keptCount);
    for (const demand of byName) {
      this.#spreadOut(demand, folded, demand.normal.keptCount, demand.normal.count);
    }
    const next = new Map<ClusterDemand, number>(visited.map((demand) => [demand, 0]));
    const serve = (demand: ClusterDemand, priority: number, end: number): void => {
      const { order, profile } = demand.normal;
      let at = next.get(demand)!;
      for (; at < order.length; at++) {
        const position = order[at]!;
        if (position >= end || facts[profile[position]!]!.profile.priority !== priority) break;
        creditor.credit(demand, position);
      }
      next.set(demand, at);
    };
    const priorities = new Set([...kept.keys(), ...folded.keys()]);
    for (const priority of [...priorities].sort((a, b) => b - a)) {
      for (const demand of kept.get(priority) ?? []) {
        serve(demand, priority, demand.normal.keptCount);
      }
      for (const demand of folded.get(priority) ?? []) serve(demand, priority, Infinity);
    }
  }

  /** Puts a cluster into the list of each priority that its rows from `from` to `to` have. */
  #spreadOut(
    demand: ClusterDemand,
    lists: Map<number, ClusterDemand[]>,
    from: number,
    to: number,
  ): void {
    const { facts } = this.tables.profiles;
    for (const position of demand.normal.order) {
      if (position < from || position >= to) continue;
      const { priority } = facts[demand.normal.profile[position]!]!.profile;
      const list = lists.get(priority);
      if (list === undefined) lists.set(priority, [demand]);
      else if (list.at(-1) !== demand) list.push(demand);
    }
  }

  /** Kept rows by priority, arrival and cluster; then folded ones by cluster. */
  #inRowOrder(buyers: readonly Buyer[]): Buyer[] {
    const { facts } = this.tables.profiles;
    const isFolded = ({ demand, position }: Buyer): number =>
      Number(position >= demand.normal.keptCount);
    return buyers.toSorted((left, right) => {
      const [a, b] = [left.demand, right.demand];
      const folded = isFolded(left) - isFolded(right);
      if (folded !== 0) return folded;
      if (isFolded(left) === 1) return byUtf8(a.name, b.name) || left.position - right.position;
      return (
        facts[right.profileId]!.profile.priority - facts[left.profileId]!.profile.priority ||
        a.arrival - b.arrival ||
        byUtf8(a.name, b.name) ||
        left.position - right.position
      );
    });
  }
}

function isSameRows(left: Rows, right: Rows): boolean {
  if (left.count !== right.count) return false;
  for (let at = 0; at < left.count; at++) {
    if (left.profile[at] !== right.profile[at] || left.group[at] !== right.group[at]) return false;
    const isSame =
      left.aggregate[at] === right.aggregate[at] && left.minUnit[at] === right.minUnit[at];
    if (!isSame) return false;
  }
  return true;
}
