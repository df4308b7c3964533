/**
 * The published service of one call: `InfrastructureAutoscaler.UpdateClusterNeeds`, demand by full
 * replacement for operators that want no session. Such an operator is asked for no bootstrap blob
 * and told of no machine: machines are bound to its cluster only while a session speaks for it too.
 */
import { create } from '@bufbuild/protobuf';
import { GRPC_CODES } from '@megaplane/wire/grpc';
import type { GrpcMethods } from '@megaplane/wire/grpc';
import { CallError, serveUnary } from '../contract/calls.ts';
import { identityOf } from '../contract/identity.ts';
import { operatorOf } from '../contract/profile.ts';
import { AcknowledgementSchema, InfrastructureAutoscaler } from '../contract/tables/autoscaler.ts';
import type { CapacityNeed, ClusterCapacityNeeds } from '../contract/tables/autoscaler.ts';
import {
  NodeSelectorRequirement_Operator as Operator,
  TopologySpread_WhenUnsatisfiable as When,
} from '../contract/tables/capacity.ts';
import type { RollupMessage, RollupOutcome } from '../engine/demand.ts';
import type { NeedMessage } from '../engine/need-message.ts';
import type { ShardCore } from './core.ts';
import { ROWS_MAX } from './needs.ts';
import { CLUSTER_ID_BYTES_MAX } from './sessions.ts';

const WHENS: ReadonlyMap<string, When> = new Map([
  ['DoNotSchedule', When.DO_NOT_SCHEDULE],
  ['ScheduleAnyway', When.SCHEDULE_ANYWAY],
]);

export function serveSingleCall(
  methods: GrpcMethods,
  core: ShardCore,
  act: (tell: (nowMs: number) => void) => void,
): void {
  serveUnary(methods, InfrastructureAutoscaler.method.updateClusterNeeds, (request, call) => {
    const cluster = request.clusterId;
    if (cluster === '') throw invalid('cluster_id is empty');
    if (Buffer.byteLength(cluster) > CLUSTER_ID_BYTES_MAX) {
      throw invalid(`cluster_id is longer than ${CLUSTER_ID_BYTES_MAX} bytes`);
    }
    const identity = identityOf(call.connection);
    if (identity !== undefined && identity !== `bigfleet://cluster/${cluster}`) {
      const why = 'the certificate is not of this cluster';
      throw new CallError(GRPC_CODES.permissionDenied, why);
    }
    const rollup = rollupOf(request);
    let outcome: RollupOutcome | undefined;
    act((nowMs) => {
      outcome = core.rolledUpOnce(rollup, nowMs);
    });
    if (outcome === undefined) throw new CallError(GRPC_CODES.unavailable, 'the shard stops');
    if (outcome.kind === 'rejected') throw invalid(outcome.reason);
    // a roll-up that is held back does not count yet: it must come again
    return create(AcknowledgementSchema, { acknowledged: outcome.kind === 'accepted' });
  });
}

/** Throws `InvalidArgument` where it cannot be read as a whole. */
function rollupOf({ clusterId, timestamp, needs }: ClusterCapacityNeeds): RollupMessage {
  if (needs.length > ROWS_MAX) throw invalid(`${needs.length} rows, over ${ROWS_MAX}`);
  const seconds = Number(timestamp?.seconds ?? 0n);
  return {
    cluster: clusterId,
    time: seconds * 1e9 + (timestamp?.nanos ?? 0),
    needs: needs.map((need, row) => needOf(need, row)),
  };
}

function needOf(need: CapacityNeed, row: number): NeedMessage {
  const requirements = need.requirements.map(({ key, operator: word, values }) => {
    const operator = word === 'Same' ? Operator.SAME : operatorOf(word);
    if (operator === undefined) throw invalid(`row ${row}: there is no operator ${word}`);
    return { key, operator, values };
  });
  const spread = need.spread.map(({ topologyKey, maxSkew, whenUnsatisfiable: word }) => {
    const whenUnsatisfiable = WHENS.get(word);
    if (whenUnsatisfiable === undefined) {
      throw invalid(`row ${row}: when_unsatisfiable is not ${word}`);
    }
    return { topologyKey, maxSkew, whenUnsatisfiable };
  });
  return {
    profile: {
      ...{ requirements, spread, priority: need.priority },
      interruptionBucket: need.interruptionPenaltyBucket,
      reclamationBucket: need.reclamationPenaltyBucket,
    },
    aggregate: need.aggregateResources,
    minUnit: need.minUnit,
    group: '',
  };
}

function invalid(message: string): CallError {
  return new CallError(GRPC_CODES.invalidArgument, message);
}
