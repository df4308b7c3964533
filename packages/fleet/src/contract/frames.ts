/** Messages by their full names, between bytes and protobuf JSON: for people and for tools. */
import { createRegistry, fromBinary, fromJson, toBinary, toJson } from '@bufbuild/protobuf';
import type { DescMessage, JsonValue } from '@bufbuild/protobuf';
import { file as autoscalerFile } from './tables/autoscaler.ts';
import { file as capacityFile } from './tables/capacity.ts';
import { file as coordinatorFile } from './tables/coordinator.ts';
import { file as providerFile } from './tables/provider.ts';
import { file as shardFile } from './tables/shard.ts';
import { file as shardReadFile } from './tables/shardread.ts';

const REGISTRY = createRegistry(
  ...[capacityFile, providerFile, shardFile, coordinatorFile, shardReadFile, autoscalerFile],
);

/** `name` with its package (`bigfleet.v1alpha1.Hello`). Throws an `Error` if there is none. */
export function messageCalled(name: string): DescMessage {
  const found = REGISTRY.getMessage(name);
  if (found === undefined) throw new Error(`no message is called ${JSON.stringify(name)}`);
  return found;
}

/** A frame as protobuf JSON. Throws an `Error` that says why it is none. */
export function frameJson(name: string, bytes: Uint8Array): JsonValue {
  const schema = messageCalled(name);
  return toJson(schema, fromBinary(schema, bytes));
}

/** The frame of a message in protobuf JSON. Throws an `Error` that says what cannot be written. */
export function frameOf(name: string, json: JsonValue): Uint8Array {
  const schema = messageCalled(name);
  return toBinary(schema, fromJson(schema, json));
}
