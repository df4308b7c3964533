/**
 * The bytes of a response message into JSON, as grpc-gateway writes it: zero fields left out. It
 * is written as bytes, since an answer of half a gigabyte does not fit into a string.
 */
import { ownMember } from '@megaplane/base/members';
import { ProtobufReader } from '@megaplane/wire/protobuf';
import { ENUMS, type Field, messageOf } from '../codec/schema.ts';

/** Go escapes these in JSON too, so that it can stand in HTML. */
const ESCAPED = /[<>&\u2028\u2029]/g;
/** Of the message's bytes that become base64 at once. */
const BASE64_BYTES: number = 3 * 64 * 1024;

export function goString(text: string): string {
  return JSON.stringify(text).replaceAll(
    ESCAPED,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** JSON of the message `name` in `bytes[start..end)`, which is well-formed: we wrote it. */
export function showJson(bytes: Buffer, start: number, end: number, name: string): Buffer {
  const out = new JsonOutput(end - start);
  writeMessage(out, bytes, start, end, name);
  return out.whole();
}

class JsonOutput {
  #bytes: Buffer;
  #at = 0;

  /** The message's size says roughly what is to come: base64 takes a third more. */
  constructor(size: number) {
    this.#bytes = Buffer.allocUnsafeSlow(256 + size + (size >> 1));
  }

  #room(size: number): void {
    if (this.#at + size <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(this.#at + size + (this.#at >> 1));
    this.#bytes.copy(larger, 0, 0, this.#at);
    this.#bytes = larger;
  }

  text(text: string): void {
    this.#room(text.length * 3);
    this.#at += this.#bytes.write(text, this.#at);
  }

  base64(bytes: Buffer, start: number, end: number): void {
    for (let at = start; at < end; at += BASE64_BYTES) {
      this.text(bytes.toString('base64', at, Math.min(end, at + BASE64_BYTES)));
    }
  }

  whole(): Buffer {
    return this.#bytes.subarray(0, this.#at);
  }
}

function writeMessage(
  out: JsonOutput,
  bytes: Buffer,
  start: number,
  end: number,
  name: string,
): void {
  const message = messageOf(name);
  const reader = new ProtobufReader().reset(bytes, start, end);
  // Where the values of each field stand, tags included.
  const found = new Map<Field, number[]>();
  for (let at = start; reader.next(); at = reader.offset) {
    const field = message.byNumber.get(reader.field);
    reader.skip();
    if (field === undefined) continue;
    const places = found.get(field);
    if (places === undefined) found.set(field, [at]);
    else places.push(at);
  }
  let separator = '{';
  for (const field of message.fields) {
    const places = found.get(field);
    if (places === undefined) continue;
    out.text(`${separator}"${field.name}":${field.isRepeated ? '[' : ''}`);
    separator = ',';
    for (const [index, at] of (field.isRepeated ? places : places.slice(-1)).entries()) {
      if (index > 0) out.text(',');
      reader.reset(bytes, at, end).next();
      writeValue(out, reader, bytes, field);
    }
    if (field.isRepeated) out.text(']');
  }
  out.text(separator === '{' ? '{}' : '}');
}

function writeValue(out: JsonOutput, reader: ProtobufReader, bytes: Buffer, field: Field): void {
  const { kind } = field;
  if (typeof kind === 'object' && 'message' in kind) {
    reader.chunk();
    writeMessage(out, bytes, reader.chunkStart, reader.chunkEnd, kind.message);
    return;
  }
  if (kind === 'bytes') {
    reader.chunk();
    out.text('"');
    out.base64(bytes, reader.chunkStart, reader.chunkEnd);
    out.text('"');
    return;
  }
  if (kind === 'string') {
    reader.chunk();
    out.text(goString(bytes.toString('utf8', reader.chunkStart, reader.chunkEnd)));
    return;
  }
  reader.varint();
  out.text(numberText(reader, kind));
}

function numberText(reader: ProtobufReader, kind: Field['kind']): string {
  const low = reader.low >>> 0;
  if (kind === 'bool') return low === 0 ? 'false' : 'true';
  if (kind === 'uint32') return String(low);
  if (typeof kind === 'object' && 'enum' in kind) {
    const text = ownMember(ENUMS, kind.enum)?.[low];
    return text === undefined ? String(low) : `"${text}"`;
  }
  const value = (BigInt(reader.high >>> 0) << 32n) | BigInt(low);
  return `"${kind === 'int64' ? BigInt.asIntN(64, value) : value}"`;
}
