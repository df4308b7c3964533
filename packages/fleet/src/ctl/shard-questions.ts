// shell: asks a shard, for people
import { create, fromBinary, fromJson, toBinary, toJson } from '@bufbuild/protobuf';
import type { DescMessage, DescMethod, JsonValue, MessageShape } from '@bufbuild/protobuf';
import { connect } from '@megaplane/wire/connect';
import type { ConnectTls } from '@megaplane/wire/connect';
import { GRPC_CODES } from '@megaplane/wire/grpc';
import { grpcClient } from '@megaplane/wire/grpc-client';
import { CallError, callUnary, MESSAGE_BYTES_MAX, pathOfMethod } from '../contract/calls.ts';
import { ClusterCapacityNeedsSchema } from '../contract/tables/capacity.ts';
import {
  ListMachinesRequestSchema,
  ListShortfallsRequestSchema,
  ListShortfallsResponseSchema,
  MachineLookSchema,
  ShardLook,
  WhatIfRequestSchema,
  WhatIfResponseSchema,
} from '../contract/tables/shardlook.ts';
import type {
  ListShortfallsResponse,
  MachineLook,
  WhatIfResponse,
} from '../contract/tables/shardlook.ts';
import {
  InspectNeedsRequestSchema,
  InspectNeedsResponseSchema,
  ShardRead,
} from '../contract/tables/shardread.ts';
import type { InspectNeedsResponse } from '../contract/tables/shardread.ts';

import { amountsText, textTable } from '../contract/text-table.ts';
import { STATES } from '../engine/machine.ts';
import { needsTable, requirementText } from './needs-table.ts';

export { needsTable } from './needs-table.ts';

const CALL_MS_MAX = 30_000;

export interface ShardQuestion extends ShardAddress {
  /** Empty: all clusters. */
  readonly clusterId: string;
  /** 0: all rows. */
  readonly limit: number;
}

/** Words of `--state`. */
export const MACHINE_STATES: readonly string[] = STATES;

export interface ShardAddress {
  readonly host: string;
  readonly port: number;
  readonly tls?: ConnectTls;
}

/** The rows of a shard's last cycle, its header first. Rejects with a `CallError`. */
export function inspectNeeds(question: ShardQuestion): Promise<InspectNeedsResponse[]> {
  const { clusterId, limit } = question;
  const request = create(InspectNeedsRequestSchema, { clusterId, limit });
  return frames(question, ShardRead.method.inspectNeeds, request);
}

/** Machines by id. Rejects with a `CallError`. */
export function listMachines(
  address: ShardAddress,
  filter: {
    readonly clusterId: string;
    readonly states: readonly string[];
    readonly limit: number;
  },
): Promise<MachineLook[]> {
  const { clusterId, limit } = filter;
  const states = filter.states.map((word) => (STATES.findIndex((one) => one === word) + 1) as 1);
  const request = create(ListMachinesRequestSchema, { clusterId, limit, states });
  return frames(address, ShardLook.method.listMachines, request);
}

/** Shortfalls of the last cycle. Rejects with a `CallError`. */
export async function listShortfalls(address: ShardAddress): Promise<ListShortfallsResponse> {
  const { host, port, tls } = address;
  const connection = connect({ host, port, ...(tls === undefined ? {} : { tls }) });
  const client = grpcClient(connection, { messageBytesMax: MESSAGE_BYTES_MAX });
  try {
    const request = create(ListShortfallsRequestSchema);
    return await callUnary(client, ShardLook.method.listShortfalls, request, CALL_MS_MAX);
  } finally {
    connection.destroy();
  }
}

/** What a roll-up would change. `rollup` is protobuf JSON. Throws where it is none. */
export function whatIf(address: ShardAddress, rollup: JsonValue): Promise<WhatIfResponse[]> {
  const request = create(WhatIfRequestSchema, {
    rollup: fromJson(ClusterCapacityNeedsSchema, rollup),
  });
  return frames(address, ShardLook.method.whatIf, request);
}

async function frames<Input extends DescMessage, Output extends DescMessage>(
  { host, port, tls }: ShardAddress,
  method: DescMethod & { readonly input: Input; readonly output: Output },
  request: MessageShape<Input>,
): Promise<MessageShape<Output>[]> {
  const connection = connect({ host, port, ...(tls === undefined ? {} : { tls }) });
  const client = grpcClient(connection, { messageBytesMax: MESSAGE_BYTES_MAX });
  const found: MessageShape<Output>[] = [];
  try {
    await new Promise<void>((resolve, reject) => {
      const call = client.open(
        pathOfMethod(method),
        {
          onMessage: (_call, bytes, start, end) => {
            found.push(fromBinary(method.output, Buffer.from(bytes.subarray(start, end))));
          },
          onStatus: (_call, { code, message }) => {
            if (code === GRPC_CODES.ok) resolve();
            else reject(new CallError(code, message));
          },
        },
        { timeoutMs: CALL_MS_MAX },
      );
      call.send(toBinary(method.input, request));
      call.halfClose();
    });
  } finally {
    connection.destroy();
  }
  return found;
}

/** Frames as protobuf JSON. */
export function needsJson(all: readonly InspectNeedsResponse[]): JsonValue {
  return all.map((frame) => toJson(InspectNeedsResponseSchema, frame));
}

export function machinesJson(machines: readonly MachineLook[]): JsonValue {
  return machines.map((machine) => toJson(MachineLookSchema, machine));
}

export function shortfallsJson(answer: ListShortfallsResponse): JsonValue {
  return toJson(ListShortfallsResponseSchema, answer);
}

export function whatIfJson(all: readonly WhatIfResponse[]): JsonValue {
  return all.map((frame) => toJson(WhatIfResponseSchema, frame));
}

export function machinesTable(machines: readonly MachineLook[]): string {
  const head = ['MACHINE', 'STATE', 'CLUSTER', 'TYPE', 'ZONE', 'PRICE', 'OFFERS', 'PRIORITY'];
  const rows = machines.map((one) => {
    const state = `${STATES[one.state - 1] ?? '?'}${one.busy ? ' *' : ''}`;
    const price = String(one.pricePerHour);
    const offers = amountsText(one.allocatable);
    const bound = one.cluster === '' ? '-' : String(one.assignedPriority);
    const { id, cluster, instanceType, zone } = one;
    return [id, state, cluster || '-', instanceType || '-', zone || '-', price, offers, bound];
  });
  return textTable(head, rows);
}

export function shortfallsTable({ cycle, shortfalls }: ListShortfallsResponse): string {
  if (cycle === 0n) return 'The shard has not decided anything yet: is its /readyz ok?';
  const head = ['PRIORITY', 'LACKS', 'CYCLES', 'REQUIRES'];
  const rows = shortfalls.map(({ priority, deficit, ageCycles, requirements }) => {
    const requires = requirements.map(requirementText).join(' ') || '-';
    return [String(priority), amountsText(deficit?.resources), String(ageCycles), requires];
  });
  return textTable(head, rows);
}

export function whatIfTable(all: readonly WhatIfResponse[]): string {
  const rows = all.flatMap(({ frame }) => (frame.case === 'row' ? [frame.value] : []));
  const actions = all.flatMap(({ frame }) => {
    if (frame.case !== 'action') return [];
    const { kind, machineId, cluster, graceSeconds } = frame.value;
    return [[kind, machineId, cluster || '-', graceSeconds === 0n ? '-' : `${graceSeconds}s`]];
  });
  const head = ['ACTION', 'MACHINE', 'CLUSTER', 'GRACE'];
  return `${needsTable(rows, false)}\n\n${textTable(head, actions)}`;
}
