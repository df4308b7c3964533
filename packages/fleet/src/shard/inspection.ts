/** The last cycle's rows as `ShardRead` tells them: section 2.10. */
import { create } from '@bufbuild/protobuf';
import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  InspectNeedsResponseSchema,
  NeedViewSchema,
  UnmetReason,
} from '../contract/tables/shardread.ts';
import type { InspectNeedsRequest, InspectNeedsResponse } from '../contract/tables/shardread.ts';
import { textsOf } from '../engine/amounts.ts';
import type { UnmetReason as ReasonWord, NeedView } from '../engine/views.ts';

/** What a cycle found, and when. */
export interface Inspection {
  readonly cycle: number;
  readonly atMs: number;
  readonly views: readonly NeedView[];
}

const REASONS: Readonly<Record<ReasonWord, UnmetReason>> = {
  PRIORITY_STARVED: UnmetReason.PRIORITY_STARVED,
  NO_MATCHING_SUPPLY: UnmetReason.NO_MATCHING_SUPPLY,
  TOPOLOGY_UNSATISFIABLE: UnmetReason.TOPOLOGY_UNSATISFIABLE,
  PREEMPTION_EXHAUSTED: UnmetReason.PREEMPTION_EXHAUSTED,
};

/** The frames of an answer: a header, then rows in their order. */
export function* inspectionFrames(
  { clusterId, limit }: Pick<InspectNeedsRequest, 'clusterId' | 'limit'>,
  { cycle, atMs, views }: Inspection,
): Generator<InspectNeedsResponse> {
  const wanted =
    clusterId === '' ? views : views.filter(({ verdict }) => verdict.row.cluster === clusterId);
  const header = {
    cycle: BigInt(cycle),
    computedAtUnixNanos: BigInt(Math.floor(atMs)) * 1_000_000n,
    totalNeeds: wanted.length,
  };
  yield create(InspectNeedsResponseSchema, { frame: { case: 'header', value: header } });
  const shown = limit > 0 ? wanted.slice(0, limit) : wanted;
  for (const view of shown) {
    const value = create(NeedViewSchema, needView(view));
    yield create(InspectNeedsResponseSchema, { frame: { case: 'need', value } });
  }
}

function needView({
  verdict,
  parkedAge,
  unmet,
}: NeedView): MessageInitShape<typeof NeedViewSchema> {
  const { row, claimed, deficit, domain, satisfiable, parked, candidates } = verdict;
  const countOf = (state: string): number => claimed.filter((one) => one.state === state).length;
  const { profile, cluster, group, aggregate, minUnit, arrival } = row;
  return {
    need: {
      requirements: profile.requirements.map((one) => ({ ...one, values: [...one.values] })),
      aggregateResources: textsOf(aggregate),
      priority: profile.priority,
      spread: profile.spread.map((one) => ({ ...one })),
      interruptionPenaltyBucket: profile.interruptionBucket,
      reclamationPenaltyBucket: profile.reclamationBucket,
      ...{ minUnit: textsOf(minUnit), group },
    },
    ...{ clusterId: cluster, profileFingerprint: profile.fingerprint },
    arrivalUnixNanos: Number.isFinite(arrival) ? BigInt(Math.floor(arrival)) : 0n,
    satisfied: unmet === undefined,
    residualDeficit: { resources: textsOf(deficit) },
    claimedMachineCount: claimed.length,
    ...{ bootstrapCount: countOf('Idle'), provisionCount: countOf('Speculative') },
    ...{ sameDomain: domain, sameSatisfiable: satisfiable },
    ...{ acquisitionParked: parked, parkedAgeCycles: parkedAge },
    sameCandidates: candidates.map((one) => ({ ...one })),
    ...(unmet === undefined
      ? {}
      : {
          ageCyclesUnmet: unmet.age,
          unmetReason: REASONS[unmet.reason],
          matchingSupply: { ...unmet.supply },
        }),
    ...(unmet?.preemption === undefined
      ? {}
      : {
          preemption: {
            victimsFound: unmet.preemption.victims,
            capacityFreed: { resources: textsOf(unmet.preemption.freed) },
          },
        }),
  };
}
