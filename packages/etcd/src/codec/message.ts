/** Messages of calls that are not hot: fields by number, numbers as 64-bit. */
import { FAILURE_NONE, ProtobufReader, WIRE_BYTES } from '@megaplane/wire/protobuf';
import { writeBytesField, writeVarint64Field } from '@megaplane/wire/protobuf-write';

/** One field; a number of 0 and empty bytes are written, too. */
export type MessageField = readonly [number: number, value: bigint | Buffer];

/** Tag and length, or tag and a 64-bit varint, at most. */
const FIELD_ROOM = 20;
const WORD = 0xffff_ffffn;

export function encodeMessage(fields: readonly MessageField[]): Buffer {
  let room = 0;
  for (const [, value] of fields) {
    room += FIELD_ROOM + (typeof value === 'bigint' ? 0 : value.length);
  }
  const out = Buffer.allocUnsafe(room);
  let at = 0;
  for (const [field, value] of fields) {
    if (typeof value === 'bigint') {
      const bits = BigInt.asUintN(64, value);
      at = writeVarint64Field(out, at, field, Number(bits & WORD), Number(bits >> 32n));
    } else at = writeBytesField(out, at, field, value, 0, value.length);
  }
  return out.subarray(0, at);
}

/**
 * A message as it was sent; of a field that comes twice the last one counts, or, where it is a
 * message, all that came.
 */
export class Message {
  /** False when the bytes are no message. */
  readonly isWhole: boolean;
  readonly #numbers: Map<number, bigint> = new Map();
  readonly #bytes: Map<number, Buffer[]> = new Map();

  /** Keeps views of `bytes`. */
  constructor(bytes: Buffer, start = 0, end: number = bytes.length) {
    const reader = new ProtobufReader().reset(bytes, start, end);
    while (reader.next()) {
      if (reader.wireType === 0) {
        reader.varint();
        const bits = (BigInt(reader.high >>> 0) << 32n) | BigInt(reader.low >>> 0);
        this.#numbers.set(reader.field, BigInt.asIntN(64, bits));
      } else if (reader.wireType === WIRE_BYTES) {
        reader.chunk();
        const content = bytes.subarray(reader.chunkStart, reader.chunkEnd);
        const found = this.#bytes.get(reader.field);
        if (found === undefined) this.#bytes.set(reader.field, [content]);
        else found.push(content);
      } else reader.skip();
    }
    this.isWhole = reader.failure === FAILURE_NONE;
  }

  number(field: number): bigint {
    return this.#numbers.get(field) ?? 0n;
  }

  bytes(field: number): Buffer {
    return this.#bytes.get(field)?.at(-1) ?? Buffer.alloc(0);
  }

  has(field: number): boolean {
    return this.#bytes.has(field);
  }

  /** A message inside; an empty one when it is not there. */
  message(field: number): Message {
    return new Message(Buffer.concat(this.#bytes.get(field) ?? []));
  }

  /** All messages of a repeated field. */
  messages(field: number): Message[] {
    return (this.#bytes.get(field) ?? []).map((content) => new Message(content));
  }
}
