/** Calls that change machines: how they are written, and what an answer to them may say. */
import { create } from '@bufbuild/protobuf';
import {
  ConfigureRequestSchema,
  CreateRequestSchema,
  DeleteRequestSchema,
  DrainRequestSchema,
} from '../contract/tables/provider.ts';
import type { TransitionAck } from '../contract/tables/provider.ts';
import { rejectionOf } from '../engine/inventory.ts';
import type { MachineRecord } from '../engine/inventory.ts';
import type { Stamp, State } from '../engine/machine.ts';
import type { Change, Method } from './effects.ts';
import { metadataOf, recordOf } from './machine-words.ts';

/** Who asks, in which life, the how many-eth time. */
export interface Token {
  readonly shardId: string;
  readonly shardEpoch: bigint;
  readonly sequenceNumber: bigint;
}

/** What an answer may show: on its way, or there. */
const SHOWN: Readonly<Record<Method, readonly State[]>> = {
  create: ['Creating', 'Idle'],
  configure: ['Configuring', 'Configured'],
  drain: ['Draining', 'Idle'],
  delete: ['Deleting', 'Speculative'],
};

export function createCall(machineId: string, token: Token): Change {
  return { method: 'create', request: create(CreateRequestSchema, { machineId, ...token }) };
}

export function configureCall(
  machineId: string,
  to: { readonly clusterId: string; readonly bootstrapBlob: Uint8Array; readonly stamp: Stamp },
  token: Token,
): Change {
  const { clusterId, bootstrapBlob, stamp } = to;
  const shardMetadata = metadataOf(stamp);
  const facts = { machineId, clusterId, bootstrapBlob, shardMetadata, ...token };
  return { method: 'configure', request: create(ConfigureRequestSchema, facts) };
}

export function drainCall(machineId: string, graceSeconds: number, token: Token): Change {
  const facts = { machineId, gracePeriodSeconds: BigInt(graceSeconds), ...token };
  return { method: 'drain', request: create(DrainRequestSchema, facts) };
}

export function deleteCall(machineId: string, token: Token): Change {
  return { method: 'delete', request: create(DeleteRequestSchema, { machineId, ...token }) };
}

/** The machine that an answer shows, or what is wrong with the answer. */
export function acknowledgedBy(
  { method, request }: Change,
  { machine }: TransitionAck,
): MachineRecord | string {
  if (machine === undefined) return 'the answer shows no machine';
  if (machine.id !== request.machineId) return `the answer shows machine ${machine.id}`;
  const record = recordOf(machine);
  const isFit = SHOWN[method].some((state) => state === record.state);
  if (!isFit) return `the answer shows a machine that is ${record.state || 'nothing'}`;
  const rejection = rejectionOf(record);
  if (rejection !== undefined) return `the answer's machine is wrong: ${rejection}`;
  if (method === 'configure' && record.cluster !== request.clusterId) {
    return `the answer shows a machine of cluster ${record.cluster || '(none)'}`;
  }
  return record;
}
