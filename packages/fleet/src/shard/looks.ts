/** Machines, shortfalls and what-if answers as `ShardLook` tells them. */
import { create, toBinary } from '@bufbuild/protobuf';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { GRPC_CODES } from '@megaplane/wire/grpc';
import { CallError } from '../contract/calls.ts';
import type { ClusterCapacityNeeds } from '../contract/tables/capacity.ts';
import type { ShortfallSchema } from '../contract/tables/coordinator.ts';
import {
  ActionLookSchema,
  MachineLookSchema,
  WhatIfResponseSchema,
} from '../contract/tables/shardlook.ts';
import type { ListMachinesRequest } from '../contract/tables/shardlook.ts';
import { byUtf8 } from '../contract/text-order.ts';
import { textsOf } from '../engine/amounts.ts';
import type { Shortfall } from '../engine/carried.ts';
import type { Machine } from '../engine/machine.ts';
import { CAPACITY_TYPES } from '../engine/machine.ts';
import type { ShardCore } from './core.ts';
import { inspectionFrames } from './inspection.ts';
import { stateNumber } from './machine-words.ts';
import { rollupOf } from './needs.ts';

/** Machines that a what-if is worked out for: it holds up the shard while it lasts. */
export const WHAT_IF_MACHINES_MAX = 600_000;

/** Machines by id, one frame each. */
export function* machineLooks(
  { clusterId, states, limit }: ListMachinesRequest,
  { machines, actuator }: ShardCore,
): Generator<Uint8Array> {
  const { inventory } = machines;
  const wanted = new Set<number>(states);
  const ids = [...inventory.ids].sort(byUtf8);
  let left = limit > 0 ? limit : Infinity;
  for (const id of ids) {
    // it may have gone while a slow reader took the ones before it
    const machine = inventory.get(id);
    if (machine === undefined) continue;
    if (clusterId !== '' && machine.cluster !== clusterId) continue;
    if (wanted.size > 0 && !wanted.has(stateNumber(machine.state))) continue;
    if (left-- <= 0) return;
    yield toBinary(MachineLookSchema, lookAt(machine, actuator.isBusy(id)));
  }
}

function lookAt(machine: Machine, busy: boolean) {
  const { id, cluster, instanceType, zone, capacityType, price, stamp } = machine;
  return create(MachineLookSchema, {
    ...{ id, cluster, instanceType, zone, busy, state: stateNumber(machine.state) },
    capacityType: Math.max(0, CAPACITY_TYPES.indexOf(capacityType)) as 0 | 1 | 2 | 3 | 4,
    ...{ pricePerHour: price, allocatable: textsOf(machine.allocatable) },
    ...{ assignedPriority: stamp.priority, needFingerprint: stamp.fingerprint },
    group: stamp.group,
  });
}

/** Shortfalls in their order. */
export function shortfallMessages(
  shortfalls: readonly Shortfall[],
): MessageInitShape<typeof ShortfallSchema>[] {
  return shortfalls.map(({ profile, deficit, age }) => ({
    requirements: profile.requirements.map((one) => ({ ...one, values: [...one.values] })),
    deficit: { resources: textsOf(deficit) },
    priority: profile.priority,
    ageCycles: age,
    interruptionPenaltyBucket: profile.interruptionBucket,
  }));
}

/** Rows and actions of one cycle with another roll-up. Throws a `CallError` for a wrong one. */
export function* whatIfFrames(
  message: ClusterCapacityNeeds | undefined,
  core: ShardCore,
  nowMs: number,
): Generator<Uint8Array> {
  if (message === undefined || message.clusterId === '') {
    throw new CallError(GRPC_CODES.invalidArgument, 'a roll-up with a cluster is needed');
  }
  const taken = rollupOf(message);
  if (typeof taken === 'string') throw new CallError(GRPC_CODES.invalidArgument, taken);
  const cycle = core.whatIf(taken, WHAT_IF_MACHINES_MAX, nowMs);
  if (typeof cycle === 'string') throw new CallError(GRPC_CODES.invalidArgument, cycle);
  const seen = { cycle: core.last.number, atMs: nowMs, views: cycle.views };
  for (const value of inspectionFrames({ clusterId: '', limit: 0 }, seen)) {
    const row = create(WhatIfResponseSchema, { frame: { case: 'row', value } });
    yield toBinary(WhatIfResponseSchema, row);
  }
  for (const { kind, machine, cluster, graceSeconds = 0 } of cycle.actions) {
    const grace = BigInt(Math.floor(graceSeconds));
    const value = create(ActionLookSchema, {
      ...{ kind, machineId: machine.id, cluster, graceSeconds: grace },
    });
    const action = create(WhatIfResponseSchema, { frame: { case: 'action', value } });
    yield toBinary(WhatIfResponseSchema, action);
  }
}
