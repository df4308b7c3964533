/**
 * The decision core of a shard: demand and machines in, actions and reasons out. One writer, no
 * clock, no sockets, no randomness: the same inputs in the same order give the same answers.
 */
import { assert } from '@megaplane/base/assert';
import { textsOf } from './amounts.ts';
import { Parking, type Shortfall, Shortfalls } from './carried.ts';
import { type Reports, decisionOf } from './dense/decision.ts';
import type { NormalRows } from './dense/clusters.ts';
import { digestOf } from './dense/digest.ts';
import { type CycleOptions, DenseEngine } from './dense/engine.ts';
import { IDLE, SPECULATIVE } from './dense/machines.ts';
import { unfold } from './dense/unfold.ts';
import { Demand, type RollupMessage, type RollupOutcome } from './demand.ts';
import type { NeedMessage } from './need-message.ts';
import { type Differences, STRICT } from './differences.ts';
import type { Preempted, Reservation } from './dense/preempt.ts';
import { type Hint, type HintValue, Hints, Offers } from './hints.ts';
import { Inventory } from './inventory.ts';
import type { Row } from './row.ts';
import { type Decision, decidePlainly } from './plain/decide.ts';
import type { Holds } from './plain/reclaim.ts';
import { Snapshot } from './plain/snapshot.ts';
import type { Profile } from './profile.ts';
import { type Railed, type Rails, railed } from './rails.ts';
import { type NeedView, viewsOf } from './views.ts';

export interface ShardOptions extends Rails, Holds {
  /** Holds back roll-ups that shrink to nothing, until they insist. */
  readonly emptyRollupGuard: boolean;
  readonly hintIntervalSeconds: number;
  /** Each so many cycles are compared with one that begins from nothing; 0: none. */
  readonly checkEachCycles: number;
  /** Which phases decide: the dense ones, or the plain ones they are measured by. */
  readonly phases: 'dense' | 'plain';
  readonly differences: Differences;
}

export const SHARD_DEFAULTS: ShardOptions = {
  reclaimCapFraction: 0.05,
  emptyRollupGuard: true,
  paused: false,
  dryRun: false,
  maxActionsPerCycle: 0,
  onDemandHoldSeconds: 600,
  spotHoldSeconds: 60,
  hintIntervalSeconds: 5,
  checkEachCycles: 0,
  phases: 'dense',
  differences: STRICT,
};

/** What one cycle answers. */
export interface Cycle extends Railed {
  /** Of all rows if they were asked for, else of those that lack something. */
  readonly views: readonly NeedView[];
  readonly shortfalls: readonly Shortfall[];
  readonly hints: readonly Hint[];
  /** Clusters whose credits were worked out in this cycle. */
  readonly clustersVisited: number;
}

export interface CycleRequest {
  /** Tells of all rows, with what each gang could choose among: begins from nothing. */
  readonly withViews?: boolean;
  /** Begins from nothing. */
  readonly isFull?: boolean;
}

interface Reserved {
  readonly cluster: string;
  readonly fingerprint: string;
  readonly group: string;
  readonly cycle: number;
}

/** An action that has not begun after so many cycles was dropped. */
const RESERVED_CYCLES = 3;

interface Heard {
  readonly normal: NormalRows;
  readonly profiles: readonly number[];
}

interface Decided {
  readonly decision: Decision;
  readonly clustersVisited: number;
}

export class Shard {
  readonly inventory: Inventory;
  #engine: DenseEngine;
  /** Machines that were driven out -> for whom, while they drain. */
  readonly #reserved = new Map<string, Reserved>();
  readonly #options: ShardOptions;
  readonly #demand: Demand;
  readonly #parking = new Parking();
  readonly #shortfalls = new Shortfalls();
  readonly #hints: Hints;
  #cycles = 0;
  /** By number of a profile: what was found for it in the last cycle. */
  readonly #offered: HintValue[] = [];
  /** By number of a cluster: rows as they were when their hints were looked at, their profiles. */
  #heard: (Heard | undefined)[] = [];

  constructor(options: ShardOptions) {
    this.#options = options;
    this.#engine = new DenseEngine(options.differences);
    this.inventory = new Inventory(this.#engine.tables.machines);
    this.#demand = new Demand(this.#engine, options.emptyRollupGuard);
    this.#hints = new Hints(options.hintIntervalSeconds);
  }

  /** A roll-up of a cluster, whose session begins with it if it has none. */
  rollup(message: RollupMessage): RollupOutcome {
    this.#hints.begin(message.cluster);
    return this.#demand.take(message);
  }

  endSession(cluster: string): void {
    this.#hints.end(cluster);
  }

  /** Decides once. `nowSeconds` must not go back. */
  cycle(nowSeconds: number, request: CycleRequest = {}): Cycle {
    this.#cycles++;
    // what the tables do not hold exactly is decided by the phases that do
    const isPlain = this.#options.phases === 'plain' || this.#engine.isOdd;
    const { decision, clustersVisited } = isPlain
      ? this.#decidePlainly(nowSeconds)
      : this.#decideDensely(nowSeconds, request);
    const offers = this.#offers();
    const asked = isPlain ? decision.verdicts.map(({ row }) => row) : this.#asked(offers);
    if (isPlain) this.#heard = [];
    const hints = this.#hints.due(asked, offers, nowSeconds);
    const actions = {
      before: [...decision.acquisitions, ...decision.preemptions],
      reclaims: decision.reclaims,
      after: decision.releases,
    };
    const { machines } = this.#engine.tables;
    const rails = railed(this.#options, actions, (cluster) => {
      return machines.configured[machines.clusterId(cluster)] ?? 0;
    });
    this.#parking.record(decision.stuck);
    const shortfalls = this.#shortfalls.record(decision.missing);
    const carried = { parking: this.#parking, shortfalls: this.#shortfalls };
    const isViewed = request.withViews === true;
    const views = isViewed
      ? viewsOf(decision.verdicts, decision.unresolved, this.#snapshot(), carried)
      : [];
    return { ...rails, views, shortfalls, hints, clustersVisited };
  }

  /**
   * What a cycle from nothing would decide if `rollup` were its cluster's demand, without any rail;
   * or why that cannot be told. Nothing here changes.
   */
  whatIf(rollup: RollupMessage, machinesMax: number, nowSeconds: number): Cycle | string {
    const { machines } = this.#engine.tables;
    if (machines.slots.size > machinesMax) {
      return `there are ${machines.slots.size} machines, over ${machinesMax}`;
    }
    const rails = { reclaimCapFraction: 0, emptyRollupGuard: false, maxActionsPerCycle: 0 };
    const off = { paused: false, dryRun: false, checkEachCycles: 0 };
    const copy = new Shard({ ...this.#options, ...rails, ...off });
    for (const machine of this.inventory.machines) copy.inventory.put(machine, machine.idleSince);
    const rows = Map.groupBy(this.#demand.rows, ({ cluster }) => cluster);
    for (const { name, hasReported } of this.#engine.tables.demands) {
      if (!hasReported || name === rollup.cluster) continue;
      const own = rows.get(name) ?? [];
      copy.rollup({ cluster: name, time: own[0]?.arrival ?? 0, needs: own.map(needOf) });
    }
    const outcome = copy.rollup(rollup);
    if (outcome.kind === 'rejected') return outcome.reason;
    return copy.cycle(nowSeconds, { withViews: true });
  }

  #snapshot(): Snapshot {
    return new Snapshot(this.inventory.machines);
  }

  #decidePlainly(nowSeconds: number): Decided {
    const decision = decidePlainly({
      machines: this.inventory.machines,
      rows: this.#demand.rows,
      isParked: (row) => this.#parking.isParked(row),
      hasReported: (cluster) => this.#engine.tables.demandOf(cluster).hasReported,
      holds: this.#options,
      nowSeconds,
    });
    return { decision, clustersVisited: this.#engine.tables.demands.length };
  }

  #decideDensely(nowSeconds: number, { withViews = false, isFull = false }: CycleRequest): Decided {
    const engine = this.#engine;
    const reports: Reports = new Map();
    const isParked: CycleOptions['isParked'] = (demand, position) => {
      if (this.#parking.isEmpty) return false;
      const { profile: profiles, group: groups } = demand.normal;
      const profile = engine.profileAt(profiles[position] ?? 0);
      const group = engine.tables.machines.groups.keyOf(groups[position] ?? 0);
      return this.#parking.isParked({ cluster: demand.name, group, profile });
    };
    const report: CycleOptions['report'] = (demand, position, all) => {
      const ofCluster = reports.get(demand) ?? new Map<number, typeof all>();
      reports.set(demand, ofCluster);
      ofCluster.set(position, all);
    };
    const { differences } = this.#options;
    const reserved = this.#reservations();
    const dense = engine.decide({
      ...{ isParked, differences, reserved },
      isFull: isFull || withViews,
      ...(withViews ? { report } : {}),
    });
    const each = this.#options.checkEachCycles;
    if (each > 0 && this.#cycles % each === 0) {
      const digest = digestOf(engine, dense);
      const anew = digestOf(
        engine,
        engine.decide({ isParked, differences, reserved, isFull: true }),
      );
      assert(digest === anew, 'a cycle decides what one that begins from nothing decides');
    }
    this.#reserve(dense.preempted);
    if (differences.spansShort) unfold(engine.tables, dense);
    const wanted = {
      ...{ holds: this.#options, nowSeconds, isParked },
      reports: withViews ? reports : undefined,
    };
    return { decision: decisionOf(engine, dense, wanted), clustersVisited: dense.clustersVisited };
  }

  /** Machines that drain for somebody, as the engine numbers them. */
  #reservations(): ReadonlyMap<number, Reservation> {
    const { machines, profiles } = this.#engine.tables;
    const found = new Map<number, Reservation>();
    for (const [id, { cluster, fingerprint, group, cycle }] of this.#reserved) {
      const state = this.inventory.stateOf(id);
      // what was decided last may not have begun yet
      const isWaiting = state === 'Configured' && cycle >= this.#cycles - RESERVED_CYCLES;
      const slot = machines.slots.get(id);
      if (slot === undefined || (state !== 'Draining' && !isWaiting)) {
        this.#reserved.delete(id);
        continue;
      }
      const profileId = profiles.find(fingerprint);
      if (state !== 'Draining' || profileId < 0) continue;
      const groupId = machines.groups.find(group) ?? -1;
      found.set(slot, { cluster: machines.clusterId(cluster), profileId, group: groupId });
    }
    return found;
  }

  #reserve(preempted: readonly Preempted[]): void {
    if (!this.#options.differences.creditsDraining) return;
    const { machines, profiles } = this.#engine.tables;
    for (const { slot, reservation } of preempted) {
      const fingerprint = profiles.facts[reservation.profileId]?.profile.fingerprint ?? '';
      this.#reserved.set(machines.ids[slot] ?? '', {
        cluster: machines.clusterNames[reservation.cluster] ?? '',
        fingerprint,
        group: machines.groups.keyOf(reservation.group),
        cycle: this.#cycles,
      });
    }
  }

  /** What clusters ask for, without what is known to be as it was told. */
  *#asked(offers: Offers): Generator<{ readonly cluster: string; readonly profile: Profile }> {
    const { demands, profiles } = this.#engine.tables;
    const isNews = profiles.facts.map(({ profile }, id) => {
      const value = offers.to(profile);
      const before = this.#offered[id];
      this.#offered[id] = value;
      const isSame = before?.count === value.count && before.confidence === value.confidence;
      return !isSame || before?.costPerHour !== value.costPerHour;
    });
    for (const { id: cluster, name, normal } of demands) {
      let heard = this.#heard[cluster];
      const isWhole = heard?.normal !== normal || this.#hints.isWaiting(name);
      if (heard?.normal !== normal) {
        heard = { normal, profiles: [...new Set(normal.profile)] };
        this.#heard[cluster] = heard;
      }
      for (const id of heard.profiles) {
        if (!isWhole && isNews[id] !== true) continue;
        yield { cluster: name, profile: this.#engine.profileAt(id) };
      }
    }
  }

  #offers(): Offers {
    const { machines, kinds } = this.#engine.tables;
    const offers = new Offers();
    for (const [list, { instanceType }] of kinds.lists.entries()) {
      const slots = machines.listOf(IDLE, list);
      const idle = slots.refresh();
      const speculative = machines.listOf(SPECULATIVE, list).refresh();
      const kind = machines.kind[slots.items[0] ?? -1] ?? -1;
      const cheapest = idle === 0 ? Infinity : (kinds.price[kind] ?? Infinity);
      if (idle + speculative > 0) offers.add(instanceType, { idle, speculative, cheapest });
    }
    return offers;
  }
}

/** A row as it was told. */
function needOf({ profile, aggregate, minUnit, group }: Row): NeedMessage {
  return { profile, aggregate: textsOf(aggregate), minUnit: textsOf(minUnit), group };
}
