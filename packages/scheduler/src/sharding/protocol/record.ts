/** Protobuf messages of the shards, written to a buffer that grows and read field by field. */
import { FAILURE_NONE, PROTOBUF_FAILURES, ProtobufReader } from '@megaplane/wire/protobuf';
import {
  writeBytesField,
  writeBytesHead,
  writeDouble,
  writeInt64,
  writeTag,
  writeTextField,
  writeVarint,
} from '@megaplane/wire/protobuf-write';

const WIRE_VARINT = 0;
const WIRE_FIXED64 = 1;
const START_BYTES = 256;
const TAG_BYTES_MAX = 16;

/** Fields are written in the order of the calls; defaults are left out by the caller. */
export class RecordWriter {
  #bytes = Buffer.allocUnsafe(START_BYTES);
  #at = 0;

  number(field: number, value: number): this {
    this.#room(TAG_BYTES_MAX);
    this.#at = writeTag(this.#bytes, this.#at, field, WIRE_VARINT);
    this.#at = writeInt64(this.#bytes, this.#at, value);
    return this;
  }

  double(field: number, value: number): this {
    this.#room(TAG_BYTES_MAX);
    this.#at = writeTag(this.#bytes, this.#at, field, WIRE_FIXED64);
    this.#at = writeDouble(this.#bytes, this.#at, value);
    return this;
  }

  text(field: number, value: string): this {
    this.#room(TAG_BYTES_MAX + value.length * 3);
    this.#at = writeTextField(this.#bytes, this.#at, field, value);
    return this;
  }

  bytes(field: number, value: Uint8Array): this {
    this.#room(TAG_BYTES_MAX + value.length);
    this.#at = writeBytesField(this.#bytes, this.#at, field, value, 0, value.length);
    return this;
  }

  /** Numbers from 0 on, packed. */
  packed(field: number, values: readonly number[]): this {
    const content = Buffer.allocUnsafe(values.length * 10);
    let length = 0;
    for (const value of values) length = writeVarint(content, length, value);
    this.#room(TAG_BYTES_MAX + length);
    this.#at = writeBytesHead(this.#bytes, this.#at, field, length);
    content.copy(this.#bytes, this.#at, 0, length);
    this.#at += length;
    return this;
  }

  message(field: number, write: (record: RecordWriter) => void): this {
    const inner = new RecordWriter();
    write(inner);
    return this.bytes(field, inner.done());
  }

  done(): Buffer {
    return this.#bytes.subarray(0, this.#at);
  }

  #room(bytes: number): void {
    const wanted = this.#at + bytes;
    if (wanted <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(wanted, this.#bytes.length * 2));
    this.#bytes.copy(grown, 0, 0, this.#at);
    this.#bytes = grown;
  }
}

/** A length-delimited field on its own: a view of the message's bytes. */
export function chunkOf(reader: ProtobufReader): Buffer {
  reader.chunk();
  const { bytes, chunkStart, chunkEnd } = reader;
  return Buffer.from(bytes.buffer, bytes.byteOffset + chunkStart, chunkEnd - chunkStart);
}

/** Numbers that `packed` wrote. */
export function packedOf(reader: ProtobufReader): number[] {
  const bytes = chunkOf(reader);
  const numbers: number[] = [];
  const inner = new ProtobufReader().reset(bytes, 0, bytes.length);
  while (inner.offset < inner.end && inner.failure === FAILURE_NONE) numbers.push(inner.uint64());
  return numbers;
}

/**
 * Calls back with each field of a message; fields that `take` does not know it skips itself. Throws
 * where the message is malformed.
 */
export function readRecord(bytes: Uint8Array, take: (reader: ProtobufReader) => boolean): void {
  const reader = new ProtobufReader().reset(bytes, 0, bytes.length);
  while (reader.next()) if (!take(reader)) reader.skip();
  if (reader.failure === FAILURE_NONE) return;
  throw new Error(`malformed message: ${PROTOBUF_FAILURES[reader.failure] ?? 'unknown'}`);
}
