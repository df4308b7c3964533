/**
 * A message inside another one may come in parts, as protobuf allows: all parts of a field that is
 * not repeated are one message, which is what their bytes one behind the other say. Of the members
 * of a union the last one counts, with all its parts since another one came. Nobody sends this but
 * to try it out; where it is seen, the request is written anew as it was meant, so that whoever
 * decides about it and whoever does it read the same.
 */
import { ProtobufReader, WIRE_BYTES } from '@megaplane/wire/protobuf';
import { sizeVarint, writeBytesHead } from '@megaplane/wire/protobuf-write';
import { type Field, messageOf } from './schema.ts';

/** All of whose messages are members of one union. */
const UNIONS = new Set(['RequestOp', 'WatchRequest']);
/** Deeper transactions are refused for their depth. */
const DEPTH_MAX = 2 * 1000 + 2;

/** A request of that name with its messages whole; the bytes are a message all through. */
export function mergedMessage(bytes: Buffer, name: string, depth: number = 0): Buffer {
  const { byNumber } = messageOf(name);
  const rest: Buffer[] = [];
  const whole = new Map<Field, Buffer[]>();
  const reader = new ProtobufReader().reset(bytes, 0, bytes.length);
  for (let from = 0; reader.next(); from = reader.offset) {
    reader.skip();
    const field = byNumber.get(reader.field);
    const inner = field === undefined ? null : innerName(field);
    if (field === undefined || inner === null || reader.wireType !== WIRE_BYTES) {
      rest.push(bytes.subarray(from, reader.offset));
      continue;
    }
    const content = bytes.subarray(reader.chunkStart, reader.chunkEnd);
    if (field.isRepeated) {
      rest.push(framed(field.number, mergedInside(content, inner, depth)));
      continue;
    }
    const parts = whole.get(field) ?? [];
    if (UNIONS.has(name)) whole.clear();
    whole.set(field, [...parts, content]);
  }
  for (const [field, parts] of whole) {
    const inner = innerName(field) ?? '';
    rest.push(framed(field.number, mergedInside(Buffer.concat(parts), inner, depth)));
  }
  return Buffer.concat(rest);
}

function mergedInside(content: Buffer, name: string, depth: number): Buffer {
  return depth === DEPTH_MAX ? content : mergedMessage(content, name, depth + 1);
}

function innerName({ kind }: Field): string | null {
  return typeof kind === 'object' && 'message' in kind ? kind.message : null;
}

function framed(number: number, content: Buffer): Buffer {
  const head = Buffer.alloc(5 + sizeVarint(content.length));
  return Buffer.concat([
    head.subarray(0, writeBytesHead(head, 0, number, content.length)),
    content,
  ]);
}
