/** The bytes of a response message into JSON, as grpc-gateway writes it: zero fields left out. */
import { ProtobufReader } from '@megaplane/wire/protobuf';
import { ENUMS, type Field, messageOf } from './schema.ts';

/** Go escapes these in JSON too, so that it can stand in HTML. */
const ESCAPED = /[<>&\u2028\u2029]/g;

export function goString(text: string): string {
  return JSON.stringify(text).replaceAll(
    ESCAPED,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** JSON of the message `name` in `bytes[start..end)`, which is well-formed: we wrote it. */
export function showJson(bytes: Buffer, start: number, end: number, name: string): string {
  const message = messageOf(name);
  const reader = new ProtobufReader().reset(bytes, start, end);
  const found = new Map<Field, string[]>();
  while (reader.next()) {
    const field = message.byNumber.get(reader.field);
    if (field === undefined) {
      reader.skip();
      continue;
    }
    const value = showValue(reader, bytes, field);
    const values = found.get(field);
    if (values === undefined) found.set(field, [value]);
    else values.push(value);
  }
  const members: string[] = [];
  for (const field of message.fields) {
    const values = found.get(field);
    if (values === undefined) continue;
    if (field.isRepeated) members.push(`"${field.name}":[${values.join(',')}]`);
    else members.push(`"${field.name}":${values.at(-1)}`);
  }
  return `{${members.join(',')}}`;
}

function showValue(reader: ProtobufReader, bytes: Buffer, field: Field): string {
  const { kind } = field;
  if (typeof kind === 'object' && 'message' in kind) {
    reader.chunk();
    return showJson(bytes, reader.chunkStart, reader.chunkEnd, kind.message);
  }
  if (kind === 'bytes') {
    reader.chunk();
    return `"${bytes.toString('base64', reader.chunkStart, reader.chunkEnd)}"`;
  }
  if (kind === 'string') {
    reader.chunk();
    return goString(bytes.toString('utf8', reader.chunkStart, reader.chunkEnd));
  }
  reader.varint();
  const low = reader.low >>> 0;
  if (kind === 'bool') return low === 0 ? 'false' : 'true';
  if (kind === 'uint32') return String(low);
  if (typeof kind === 'object') {
    const text = ENUMS[kind.enum]?.[low];
    return text === undefined ? String(low) : `"${text}"`;
  }
  const value = (BigInt(reader.high >>> 0) << 32n) | BigInt(low);
  return `"${kind === 'int64' ? BigInt.asIntN(64, value) : value}"`;
}
