// shell: asks a shard, for people
import { create, fromBinary, toBinary, toJson } from '@bufbuild/protobuf';
import type { JsonValue } from '@bufbuild/protobuf';
import { connect } from '@megaplane/wire/connect';
import type { ConnectTls } from '@megaplane/wire/connect';
import { GRPC_CODES } from '@megaplane/wire/grpc';
import { grpcClient } from '@megaplane/wire/grpc-client';
import { CallError, MESSAGE_BYTES_MAX, pathOfMethod } from '../contract/calls.ts';
import {
  InspectNeedsRequestSchema,
  InspectNeedsResponseSchema,
  ShardRead,
} from '../contract/tables/shardread.ts';
import type { InspectNeedsResponse } from '../contract/tables/shardread.ts';

export { needsTable } from './needs-table.ts';

const CALL_MS_MAX = 30_000;

export interface ShardQuestion {
  readonly host: string;
  readonly port: number;
  readonly tls?: ConnectTls;
  /** Empty: all clusters. */
  readonly clusterId: string;
  /** 0: all rows. */
  readonly limit: number;
}

/** The rows of a shard's last cycle, its header first. Rejects with a `CallError`. */
export async function inspectNeeds(question: ShardQuestion): Promise<InspectNeedsResponse[]> {
  const { host, port, tls, clusterId, limit } = question;
  const connection = connect({ host, port, ...(tls === undefined ? {} : { tls }) });
  const client = grpcClient(connection, { messageBytesMax: MESSAGE_BYTES_MAX });
  const frames: InspectNeedsResponse[] = [];
  try {
    await new Promise<void>((resolve, reject) => {
      const call = client.open(
        pathOfMethod(ShardRead.method.inspectNeeds),
        {
          onMessage: (_call, bytes, start, end) => {
            frames.push(fromBinary(InspectNeedsResponseSchema, bytes.subarray(start, end)));
          },
          onStatus: (_call, { code, message }) => {
            if (code === GRPC_CODES.ok) resolve();
            else reject(new CallError(code, message));
          },
        },
        { timeoutMs: CALL_MS_MAX },
      );
      const request = create(InspectNeedsRequestSchema, { clusterId, limit });
      call.send(toBinary(InspectNeedsRequestSchema, request));
      call.halfClose();
    });
  } finally {
    connection.destroy();
  }
  return frames;
}

/** Frames as protobuf JSON. */
export function needsJson(frames: readonly InspectNeedsResponse[]): JsonValue {
  return frames.map((frame) => toJson(InspectNeedsResponseSchema, frame));
}
