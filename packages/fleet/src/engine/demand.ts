/** What clusters ask for: roll-ups in, rows in order out. Sections 3.5 and 4.10, rail 2. */
import { PENALTY_BUCKET_MAX } from './cost.ts';
import { areQuantities, amountsOf } from './amounts.ts';
import type { Profile, ProfileFields } from './profile.ts';
import { profileOf } from './profile.ts';
import type { Row } from './row.ts';
import { byUtf8 } from '../contract/text-order.ts';

/** A smaller demand is never taken for an accident. */
const GUARDED_ROWS_MIN = 10;
const GUARDED_SHARE = 0.1;
/** So many reports in a row are believed. */
const GUARD_REPORTS = 3;

export interface NeedMessage {
  readonly profile: ProfileFields;
  /** Texts of quantities by resource. */
  readonly aggregate: Readonly<Record<string, string>>;
  readonly minUnit: Readonly<Record<string, string>>;
  readonly group: string;
}

export interface RollupMessage {
  readonly cluster: string;
  /** The sender's own time stamp. */
  readonly time: number;
  readonly needs: readonly NeedMessage[];
}

/** What became of a roll-up. */
export type RollupOutcome =
  | { readonly kind: 'accepted'; readonly isConfirmed: boolean }
  | { readonly kind: 'held'; readonly reports: number }
  | { readonly kind: 'rejected'; readonly reason: string };

interface ClusterDemand {
  rows: readonly Row[];
  heldReports: number;
}

export class Demand {
  readonly #clusters = new Map<string, ClusterDemand>();
  readonly #isGuarded: boolean;

  constructor(isGuarded: boolean) {
    this.#isGuarded = isGuarded;
  }

  /** Takes a cluster's whole demand in place of what it had. */
  take(message: RollupMessage): RollupOutcome {
    const reason = refusalOf(message);
    if (reason !== undefined) return { kind: 'rejected', reason };
    const known = this.#clusters.get(message.cluster);
    const demand = known ?? { rows: [], heldReports: 0 };
    this.#clusters.set(message.cluster, demand);
    const isConfirmed = this.#isGuarded && isDrop(demand.rows.length, message.needs.length);
    if (isConfirmed && demand.heldReports + 1 < GUARD_REPORTS) {
      demand.heldReports++;
      return { kind: 'held', reports: demand.heldReports };
    }
    demand.heldReports = 0;
    demand.rows = message.needs.map((need) => rowOf(message, need));
    return { kind: 'accepted', isConfirmed };
  }

  /** True once a cluster has sent a roll-up that could be read. */
  hasReported(cluster: string): boolean {
    return this.#clusters.has(cluster);
  }

  /** By priority, the oldest first, by cluster; rows of one message in its order. */
  get rows(): readonly Row[] {
    const all = [...this.#clusters.values()].flatMap(({ rows }) => rows);
    return all.toSorted((left, right) => {
      return (
        right.profile.priority - left.profile.priority ||
        left.arrival - right.arrival ||
        byUtf8(left.cluster, right.cluster)
      );
    });
  }
}

function isDrop(before: number, now: number): boolean {
  return before >= GUARDED_ROWS_MIN && now < GUARDED_SHARE * before;
}

function rowOf({ cluster, time }: RollupMessage, need: NeedMessage): Row {
  const profile: Profile = profileOf(need.profile);
  const aggregate = amountsOf(need.aggregate);
  const minUnit = amountsOf(need.minUnit);
  return { cluster, profile, group: need.group, aggregate, minUnit, arrival: time };
}

/** Why a roll-up cannot be taken at all; nothing of it is then used. */
function refusalOf({ needs }: RollupMessage): string | undefined {
  for (const { profile, aggregate, minUnit } of needs) {
    for (const bucket of [profile.interruptionBucket, profile.reclamationBucket]) {
      const isKnown = Number.isInteger(bucket) && bucket >= 0 && bucket <= PENALTY_BUCKET_MAX;
      if (!isKnown) return `there is no penalty bucket ${bucket}`;
    }
    if (!areQuantities(aggregate) || !areQuantities(minUnit)) return 'an amount is no quantity';
  }
  return undefined;
}
