/** What nobody needs is given up, section 4.10. */
import { RECLAIM_GRACE_SECONDS } from '../cost.ts';
import type { Machine } from '../machine.ts';
import type { Action } from '../row.ts';
import type { Claims } from './claims.ts';
import type { Snapshot } from './snapshot.ts';

/** Configured machines without a claim, of clusters that have told their demand. */
export function reclaim(
  snapshot: Snapshot,
  claims: Claims,
  hasReported: (cluster: string) => boolean,
): Action[] {
  return snapshot.clusters.filter(hasReported).flatMap((cluster) => {
    return snapshot
      .boundTo(cluster)
      .filter((machine) => machine.state === 'Configured' && !claims.isClaimed(machine))
      .map((machine): Action => {
        return { kind: 'Reclaim', machine, cluster, graceSeconds: RECLAIM_GRACE_SECONDS };
      });
  });
}

/** How long a machine may be Idle before it goes, in seconds. */
export interface Holds {
  readonly onDemandHoldSeconds: number;
  readonly spotHoldSeconds: number;
}

/** Idle machines without a claim whose time is over, by id. */
export function release(
  snapshot: Snapshot,
  claims: Claims,
  holds: Holds,
  nowSeconds: number,
): Action[] {
  return snapshot
    .inState('Idle')
    .filter((machine) => !claims.isClaimed(machine) && isOver(machine, holds, nowSeconds))
    .map((machine) => ({ kind: 'Delete', machine, cluster: '' }));
}

/** True if a machine has been Idle for as long as its kind may be. */
export function isOver(
  machine: Pick<Machine, 'capacityType' | 'idleSince'>,
  holds: Holds,
  nowSeconds: number,
): boolean {
  const idleSeconds = nowSeconds - machine.idleSince;
  switch (machine.capacityType) {
    case 'OnDemand':
      return idleSeconds >= holds.onDemandHoldSeconds;
    case 'Spot':
      return idleSeconds >= holds.spotHoldSeconds;
    case 'BareMetal':
    case 'Reserved':
    case 'Unspecified':
      return false;
  }
}
