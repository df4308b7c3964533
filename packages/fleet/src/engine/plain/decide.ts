/**
 * The phases in their plainest form: exact amounts, lists walked from end to end, nothing kept
 * between cycles. It is what the fast phases are compared with, and what answers for worlds with
 * amounts that no double holds.
 */
import { isZero } from '../amounts.ts';
import { type Missing, gangKey } from '../carried.ts';
import type { Machine } from '../machine.ts';
import { sameKeyOf } from '../profile.ts';
import type { Action, Row, Verdict } from '../row.ts';
import { acquire } from './acquire.ts';
import { Claims } from './claims.ts';
import { credit } from './credit.ts';
import { normalize } from './normalize.ts';
import { type Unresolved, preempt } from './preempt.ts';
import { type Holds, reclaim, release } from './reclaim.ts';
import { Snapshot } from './snapshot.ts';

export interface World {
  readonly machines: Iterable<Machine>;
  /** In the order of the table: priority, arrival, cluster, place in the message. */
  readonly rows: readonly Row[];
  readonly isParked: (row: Row) => boolean;
  /** True for clusters that have sent a roll-up since the shard began. */
  readonly hasReported: (cluster: string) => boolean;
  readonly holds: Holds;
  readonly nowSeconds: number;
}

export interface Decision {
  /** Of all rows; empty if nobody asked the dense phases for them. */
  readonly verdicts: readonly Verdict[];
  readonly unresolved: readonly Unresolved[];
  /** Keys of gangs that are short, that no domain can hold, and that took nothing. */
  readonly stuck: readonly string[];
  /** What rows lack after preemption. */
  readonly missing: readonly Missing[];
  /** Of the phases, in this order. */
  readonly acquisitions: readonly Action[];
  readonly preemptions: readonly Action[];
  readonly reclaims: readonly Action[];
  readonly releases: readonly Action[];
}

/** What one cycle wants done. The answer depends on the arguments alone. */
export function decidePlainly(world: World): Decision {
  const snapshot = new Snapshot(world.machines);
  const claims = new Claims();
  const rows = normalize(world.rows, snapshot);
  const parked = new Set(rows.filter(world.isParked));
  const { remaining, choices } = credit(rows, parked, snapshot, claims);
  const short = rows.filter((row) => !isZero(remaining.get(row) ?? row.aggregate));
  const buyers = short.filter((row) => !parked.has(row));
  acquire(buyers, { snapshot, claims, choices });
  const verdicts = rows.map((row): Verdict => {
    const { domain = '', satisfiable = false, candidates = [] } = choices.get(row) ?? {};
    const claimed = [...claims.of(row)];
    const deficit = claims.deficitOf(row);
    return { row, parked: parked.has(row), claimed, deficit, domain, satisfiable, candidates };
  });
  const unsatisfied = verdicts.filter(({ deficit }) => !isZero(deficit));
  const { actions, unresolved } = preempt(unsatisfied, snapshot);
  return {
    verdicts,
    unresolved,
    stuck: unsatisfied.filter(isStuck).map(({ row }) => {
      return gangKey(row.cluster, row.group, row.profile);
    }),
    missing: unresolved.map(({ verdict, deficit }) => ({ profile: verdict.row.profile, deficit })),
    acquisitions: verdicts.flatMap(acquisitionsOf),
    preemptions: actions,
    reclaims: reclaim(snapshot, claims, world.hasReported),
    releases: release(snapshot, claims, world.holds, world.nowSeconds),
  };
}

function isStuck({ row, satisfiable, claimed }: Verdict): boolean {
  if (sameKeyOf(row.profile) === undefined || satisfiable) return false;
  return !claimed.some(({ state }) => state === 'Idle' || state === 'Speculative');
}

function acquisitionsOf({ row, claimed }: Verdict): Action[] {
  const of = (state: 'Idle' | 'Speculative', kind: 'Bootstrap' | 'Provision'): Action[] => {
    const { cluster, profile, group } = row;
    return claimed
      .filter((machine) => machine.state === state)
      .map((machine) => ({ kind, machine, cluster, profile, group }));
  };
  return [...of('Idle', 'Bootstrap'), ...of('Speculative', 'Provision')];
}
