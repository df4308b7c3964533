/** Requests whose fields nobody reads still have to be messages. */
import { FAILURE_NONE, ProtobufReader, WIRE_BYTES } from '@megaplane/wire/protobuf';
import { messageOf } from './schema.ts';

const reader = new ProtobufReader();

export function isMessage(bytes: Buffer, start: number, end: number): boolean {
  reader.reset(bytes, start, end);
  while (reader.next()) reader.skip();
  return reader.failure === FAILURE_NONE;
}

/** Depth of messages that are looked into: deeper ones are refused for their depth, whatever they
 *  are. A transaction inside a transaction lies two deeper. */
const DEPTH_MAX = 2 * 1000 + 2;

/** The same of all messages inside; `name` is that of the schema. For what was refused anyway. */
export function isDeepMessage(
  bytes: Buffer,
  start: number,
  end: number,
  name: string,
  depth: number = 0,
): boolean {
  if (!isMessage(bytes, start, end)) return false;
  const { byNumber } = messageOf(name);
  const fields = new ProtobufReader().reset(bytes, start, end);
  while (fields.next()) {
    if (fields.wireType !== WIRE_BYTES) {
      fields.skip();
      continue;
    }
    fields.chunk();
    const kind = byNumber.get(fields.field)?.kind;
    if (typeof kind !== 'object' || !('message' in kind) || depth === DEPTH_MAX) continue;
    const { chunkStart, chunkEnd } = fields;
    if (!isDeepMessage(bytes, chunkStart, chunkEnd, kind.message, depth + 1)) return false;
  }
  return true;
}
