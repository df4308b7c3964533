/** Machines between the messages of the wire and what the engine keeps. */
import { INSTANCE_TYPE_KEY, ZONE_KEY } from '../contract/api.ts';
import { create } from '@bufbuild/protobuf';
import { dollarsOfBucket } from '../contract/penalty.ts';
import type { MachineState, Machine as MachineMessage } from '../contract/tables/provider.ts';
import { NodeStateUpdateSchema } from '../contract/tables/shard.ts';
import type { NodeStateUpdate } from '../contract/tables/shard.ts';
import { textsOf } from '../engine/amounts.ts';
import type { MachineRecord } from '../engine/inventory.ts';
import { CAPACITY_TYPES, STATES } from '../engine/machine.ts';
import type { Machine, Stamp, State } from '../engine/machine.ts';
import type { Profile } from '../engine/profile.ts';

/** The word of a state's number; '' for `UNSPECIFIED` and numbers that mean nothing. */
export function stateWord(state: number): State | '' {
  return STATES[state - 1] ?? '';
}

export function stateNumber(state: State): MachineState {
  return (STATES.indexOf(state) + 1) as MachineState;
}

export function recordOf(message: MachineMessage): MachineRecord {
  const { id, cluster, instanceType, zone, labels, lastError, shardMetadata, host } = message;
  return {
    ...{ id, cluster, instanceType, zone, labels, lastError, shardMetadata },
    state: stateWord(message.state),
    capacityType: CAPACITY_TYPES[message.capacityType] ?? 'Unspecified',
    allocatable: message.allocatable?.resources ?? {},
    resources: message.resources?.resources ?? {},
    price: message.pricePerHour,
    interruptionProbability: message.interruptionProbability,
    hasHost: host !== undefined && (host.ref !== '' || host.provider !== ''),
  };
}

/** What a machine that is bound for a row of this profile is marked with. */
export function stampFor(profile: Profile, group: string): Stamp {
  return {
    ...{ fingerprint: profile.fingerprint, group, priority: profile.priority },
    interruptionPenalty: dollarsOfBucket(profile.interruptionBucket),
    reclamationPenalty: dollarsOfBucket(profile.reclamationBucket),
  };
}

const METADATA = 'bigfleet.lucy.sh/assigned-';

/** The stamp as a provider is to keep it: all five keys, always. */
export function metadataOf(stamp: Stamp): { [key: string]: string } {
  return {
    [`${METADATA}priority`]: String(stamp.priority),
    [`${METADATA}interruption-penalty-dollars`]: dollarText(stamp.interruptionPenalty),
    [`${METADATA}reclamation-penalty-dollars`]: dollarText(stamp.reclamationPenalty),
    [`${METADATA}need-fingerprint`]: stamp.fingerprint,
    [`${METADATA}group`]: stamp.group,
  };
}

function dollarText(dollars: number): string {
  return dollars === Infinity ? '+Inf' : String(dollars);
}

/** What a cluster is told of a machine that is, or was, its own. */
export function nodeState(
  machine: Machine,
  cluster: string,
  { providerId, lastError }: { readonly providerId: string; readonly lastError: string },
): NodeStateUpdate {
  const labels = Object.fromEntries(machine.labels);
  if (machine.instanceType !== '') labels[INSTANCE_TYPE_KEY] = machine.instanceType;
  if (machine.zone !== '') labels[ZONE_KEY] = machine.zone;
  return create(NodeStateUpdateSchema, {
    ...{ supersedesKey: `node:${machine.id}`, machineId: machine.id, clusterId: cluster },
    state: stateNumber(machine.state),
    ...{ providerId, labels },
    // a reason of an earlier failure is none of a machine that works
    lastError: machine.state === 'Failed' ? lastError : '',
    resources: { resources: textsOf(machine.allocatable) },
  });
}
