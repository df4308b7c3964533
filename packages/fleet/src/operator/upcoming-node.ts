/** From what a shard says of a machine to the UpcomingNode that stands for it: the rule. */
import { createHash } from 'node:crypto';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { MachineState } from '../contract/tables/provider.ts';
import type { NodeStateUpdate } from '../contract/tables/shard.ts';

export type Phase =
  | 'Provisioning'
  | 'Launched'
  | 'Registered'
  | 'Ready'
  | 'Draining'
  | 'Drained'
  | 'Failed';

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const NAME_CHARACTERS_MAX = 253;

/** Phases of a machine that belongs to the cluster. */
const OWNED: ReadonlySet<string> = new Set(['Registered', 'Ready', 'Draining', 'Failed']);

/** The phase of a machine's state; an idle machine that was of the cluster is so no more. */
export function phaseOf(state: number, before: string): Phase {
  switch (state) {
    case MachineState.IDLE:
      return OWNED.has(before) ? 'Drained' : 'Launched';
    case MachineState.CONFIGURING:
      return 'Registered';
    case MachineState.CONFIGURED:
      return 'Ready';
    case MachineState.DRAINING:
      return 'Draining';
    case MachineState.FAILED:
      return 'Failed';
    default:
      return 'Provisioning';
  }
}

/** Name of the object of a machine: its id, or what stands for it where that is no name. */
export function objectName(machineId: string): string {
  if (machineId.length <= NAME_CHARACTERS_MAX && SUBDOMAIN.test(machineId)) return machineId;
  return `m-${createHash('sha256').update(machineId).digest('hex')}`;
}

export function upcomingSpec(update: NodeStateUpdate): JsonObject {
  const spec: JsonObject = { resources: { ...update.resources?.resources } };
  if (Object.keys(update.labels).length > 0) spec['labels'] = { ...update.labels };
  if (update.taints.length > 0) {
    spec['taints'] = update.taints.map(({ key, value, effect }) =>
      value === '' ? { key, effect } : { key, value, effect },
    );
  }
  return spec;
}

/** What was known before of the object, and the Node if there is one. */
export interface StatusFacts {
  readonly phase: Phase;
  readonly provisioningStartTime: string;
  readonly node?: { readonly name: string; readonly uid: string };
}

export function upcomingStatus(update: NodeStateUpdate, facts: StatusFacts): JsonObject {
  const { phase, provisioningStartTime, node } = facts;
  const status: JsonObject = { phase, provisioningStartTime };
  if (node !== undefined) {
    status['nodeRef'] = { apiVersion: 'v1', kind: 'Node', name: node.name, uid: node.uid };
  }
  if (update.providerId !== '') status['providerID'] = update.providerId;
  // a failure that says nothing is still one
  if (phase === 'Failed') status['lastError'] = update.lastError || 'no reason given';
  return status;
}
