/**
 * The decision core of a shard: demand and machines in, actions and reasons out. One writer, no
 * clock, no sockets, no randomness: the same inputs in the same order give the same answers.
 */
import { Parking, type Shortfall, Shortfalls } from './carried.ts';
import { Demand, type RollupMessage, type RollupOutcome } from './demand.ts';
import { type Hint, Hints } from './hints.ts';
import { Inventory } from './inventory.ts';
import { decidePlainly } from './plain/decide.ts';
import type { Holds } from './plain/reclaim.ts';
import { Snapshot } from './plain/snapshot.ts';
import { type Railed, type Rails, railed } from './rails.ts';
import { type NeedView, viewsOf } from './views.ts';

export interface ShardOptions extends Rails, Holds {
  /** Holds back roll-ups that shrink to nothing, until they insist. */
  readonly emptyRollupGuard: boolean;
  readonly hintIntervalSeconds: number;
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
};

/** What one cycle answers. */
export interface Cycle extends Railed {
  readonly views: readonly NeedView[];
  readonly shortfalls: readonly Shortfall[];
  readonly hints: readonly Hint[];
}

export class Shard {
  readonly inventory: Inventory = new Inventory();
  readonly #options: ShardOptions;
  readonly #demand: Demand;
  readonly #parking = new Parking();
  readonly #shortfalls = new Shortfalls();
  readonly #hints: Hints;

  constructor(options: ShardOptions) {
    this.#options = options;
    this.#demand = new Demand(options.emptyRollupGuard);
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
  cycle(nowSeconds: number): Cycle {
    const snapshot = new Snapshot(this.inventory.machines);
    const decision = decidePlainly({
      machines: this.inventory.machines,
      rows: this.#demand.rows,
      isParked: (row) => this.#parking.isParked(row),
      hasReported: (cluster) => this.#demand.hasReported(cluster),
      holds: this.#options,
      nowSeconds,
    });
    const { verdicts, unresolved } = decision;
    const rows = verdicts.map(({ row }) => row);
    const hints = this.#hints.due(rows, this.inventory.machines, nowSeconds);
    const actions = {
      before: [...decision.acquisitions, ...decision.preemptions],
      reclaims: decision.reclaims,
      after: decision.releases,
    };
    const rails = railed(this.#options, actions, (cluster) => {
      return snapshot.boundTo(cluster).filter(({ state }) => state === 'Configured').length;
    });
    this.#parking.record(verdicts);
    const shortfalls = this.#shortfalls.record(unresolved);
    const carried = { parking: this.#parking, shortfalls: this.#shortfalls };
    const views = viewsOf(verdicts, unresolved, snapshot, carried);
    return { ...rails, views, shortfalls, hints };
  }
}
