/** Roll-ups from the wire to the engine. */
import type { CapacityNeed, ClusterCapacityNeeds } from '../contract/tables/capacity.ts';
import type { RollupMessage } from '../engine/demand.ts';
import type { NeedMessage } from '../engine/need-message.ts';

/** Rows of one roll-up. */
export const ROWS_MAX = 1_000_000;

/** A roll-up as the engine takes it, or why nobody can. */
export function rollupOf(message: ClusterCapacityNeeds): RollupMessage | string {
  if (message.needs.length > ROWS_MAX) return `${message.needs.length} rows, over ${ROWS_MAX}`;
  return {
    cluster: message.clusterId,
    time: Number(message.timestampUnixNanos),
    needs: message.needs.map(needOf),
  };
}

function needOf(need: CapacityNeed): NeedMessage {
  const { requirements, spread, priority, group } = need;
  return {
    profile: {
      ...{ requirements, spread, priority },
      interruptionBucket: need.interruptionPenaltyBucket,
      reclamationBucket: need.reclamationPenaltyBucket,
    },
    aggregate: need.aggregateResources,
    minUnit: need.minUnit,
    group,
  };
}
