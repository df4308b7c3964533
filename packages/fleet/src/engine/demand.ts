/** What clusters ask for: roll-ups in, rows in order out. Sections 3.5 and 4.10, rail 2. */
import { PENALTY_BUCKET_MAX } from './cost.ts';
import { areQuantities } from './amounts.ts';
import type { DenseEngine } from './dense/engine.ts';
import type { Row } from './row.ts';
import { byUtf8 } from '../contract/text-order.ts';
import type { NeedMessage } from './need-message.ts';

/** A smaller demand is never taken for an accident. */
const GUARDED_ROWS_MIN = 10;
const GUARDED_SHARE = 0.1;
/** So many reports in a row are believed. */
const GUARD_REPORTS = 3;

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

export class Demand {
  readonly #engine: DenseEngine;
  readonly #isGuarded: boolean;
  /** Reports held back in a row, by cluster. */
  readonly #held = new Map<string, number>();

  constructor(engine: DenseEngine, isGuarded: boolean) {
    this.#engine = engine;
    this.#isGuarded = isGuarded;
  }

  /** Takes a cluster's whole demand in place of what it had. */
  take({ cluster, time, needs }: RollupMessage): RollupOutcome {
    const reason = refusalOf(needs);
    if (reason !== undefined) return { kind: 'rejected', reason };
    const demand = this.#engine.tables.demandOf(cluster);
    demand.hasReported = true;
    const isConfirmed = this.#isGuarded && isDrop(demand.rows.count, needs.length);
    const reports = (this.#held.get(cluster) ?? 0) + 1;
    if (isConfirmed && reports < GUARD_REPORTS) {
      this.#held.set(cluster, reports);
      return { kind: 'held', reports };
    }
    this.#held.delete(cluster);
    this.#engine.setRows(cluster, time, needs);
    return { kind: 'accepted', isConfirmed };
  }

  /** By priority, the oldest first, by cluster; rows of one message in its order. */
  get rows(): readonly Row[] {
    return [...this.#engine.rawRows()].toSorted((left, right) => {
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

/** Why a roll-up cannot be taken at all; nothing of it is then used. */
function refusalOf(needs: readonly NeedMessage[]): string | undefined {
  for (const { profile, aggregate, minUnit } of needs) {
    for (const bucket of [profile.interruptionBucket, profile.reclamationBucket]) {
      const isKnown = Number.isInteger(bucket) && bucket >= 0 && bucket <= PENALTY_BUCKET_MAX;
      if (!isKnown) return `there is no penalty bucket ${bucket}`;
    }
    if (!areQuantities(aggregate) || !areQuantities(minUnit)) return 'an amount is no quantity';
  }
  return undefined;
}
