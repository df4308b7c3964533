// data plane
/**
 * Reading protobuf from a Uint8Array in place, through one reusable `ProtobufReader`; writing is in
 * `protobuf-write.ts`.
 *
 * 64-bit integers come in three shapes: `low`/`high` (two unsigned 32-bit halves, exact for all
 * values), a Number (exact within +-2^53), and zigzag of the same.
 *
 * Wire format: https://protobuf.dev/programming-guides/encoding/
 */

export const WIRE_VARINT = 0;
export const WIRE_FIXED64 = 1;
export const WIRE_BYTES = 2;
export const WIRE_GROUP_START = 3;
export const WIRE_GROUP_END = 4;
export const WIRE_FIXED32 = 5;

/** Groups nested deeper than this are refused; the rule keeps a hostile message off the stack. */
export const GROUP_DEPTH_MAX = 64;

/** Why a reader stopped. `PROTOBUF_FAILURES[reader.failure]` is the text for people. */
export const PROTOBUF_FAILURES = [
  'none',
  'the message ends inside a field',
  'a varint is longer than 64 bits',
  'a field has number 0 or a number above 2^29-1',
  'a field has an unknown wire type',
  'a group is not closed, closed twice or nested too deep',
] as const;

export const FAILURE_NONE = 0;
export const FAILURE_TRUNCATED = 1;
export const FAILURE_VARINT = 2;
export const FAILURE_FIELD = 3;
export const FAILURE_WIRE_TYPE = 4;
export const FAILURE_GROUP = 5;

const TWO_32 = 4294967296;
// Typed arrays are little-endian on every platform that Node.js supports, as protobuf is.
const scratch64 = new Float64Array(1);
const scratch32 = new Float32Array(scratch64.buffer, 0, 1);
const scratchWords = new Uint32Array(scratch64.buffer);
const textDecoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Bytes up to which a string is decoded in script; beyond, the native decoder is faster. */
const SHORT_TEXT_BYTES_MAX = 24;

/**
 * A cursor over one message. Reuse it: `reset` points it at other bytes.
 *
 *     reader.reset(bytes, start, end);
 *     while (reader.next()) {
 *       if (reader.field === 1 && reader.wireType === WIRE_BYTES) { reader.chunk(); ... }
 *       else reader.skip();
 *     }
 *     if (reader.failure !== FAILURE_NONE) ...
 *
 * Malformed input sets `failure` and moves to the end, so loops end by themselves; values read
 * after a failure are 0 or empty. After `next()` exactly one value read or `skip()` must follow.
 */
export class ProtobufReader {
  bytes: Uint8Array = new Uint8Array(0);
  /** Where the next read starts. */
  offset = 0;
  /** Where the message ends (exclusive). */
  end = 0;
  failure: number = FAILURE_NONE;
  /** Field number and wire type found by the last `next()`. */
  field = 0;
  wireType = 0;
  /** Halves of the last 64-bit value, unsigned. */
  low = 0;
  high = 0;
  /** Range of the last length-delimited value within `bytes`. */
  chunkStart = 0;
  chunkEnd = 0;

  reset(bytes: Uint8Array, start: number, end: number): this {
    this.bytes = bytes;
    this.offset = start;
    this.end = end;
    this.failure = FAILURE_NONE;
    this.field = 0;
    this.wireType = 0;
    return this;
  }

  /** Stops the reader with a failure; the first one is kept. */
  fail(failure: number): void {
    if (this.failure === FAILURE_NONE) this.failure = failure;
    this.offset = this.end;
    this.low = 0;
    this.high = 0;
    this.chunkStart = this.end;
    this.chunkEnd = this.end;
  }

  /** Reads the next tag. False at the end of the message and after a failure. */
  next(): boolean {
    if (this.offset >= this.end) return false;
    const first = this.bytes[this.offset]!;
    let tag = first;
    if (first < 0x80) {
      this.offset++;
    } else {
      this.varint();
      if (this.high !== 0) this.fail(FAILURE_FIELD);
      if (this.failure !== FAILURE_NONE) return false;
      tag = this.low;
    }
    this.field = tag >>> 3;
    this.wireType = tag & 7;
    if (this.field === 0) this.fail(FAILURE_FIELD);
    else if (this.wireType > WIRE_FIXED32) this.fail(FAILURE_WIRE_TYPE);
    return this.failure === FAILURE_NONE;
  }

  /** Reads a varint of up to 64 bits into `low` and `high`. */
  varint(): void {
    const bytes = this.bytes;
    const end = this.end;
    let at = this.offset;
    let low = 0;
    let high = 0;
    for (let shift = 0; at < end; shift += 7) {
      const byte = bytes[at++]!;
      const bits = byte & 0x7f;
      if (shift < 28) {
        low |= bits << shift;
      } else if (shift === 28) {
        low |= bits << 28;
        high = bits >>> 4;
      } else if (shift < 63) {
        high |= bits << (shift - 32);
      } else {
        if (byte > 1) return this.fail(FAILURE_VARINT);
        high |= bits << 31;
      }
      if (byte < 0x80) {
        this.offset = at;
        this.low = low >>> 0;
        this.high = high >>> 0;
        return;
      }
    }
    this.fail(FAILURE_TRUNCATED);
  }

  /** uint32, bool and enum fields: the low 32 bits, unsigned. */
  uint32(): number {
    if (this.offset < this.end) {
      const first = this.bytes[this.offset]!;
      if (first < 0x80) {
        this.offset++;
        return first;
      }
    }
    this.varint();
    return this.low;
  }

  /** int32 and enum fields: the low 32 bits, signed (negative ones come as ten bytes). */
  int32(): number {
    return this.uint32() | 0;
  }

  bool(): boolean {
    this.varint();
    return (this.low | this.high) !== 0;
  }

  /** uint64 as a Number; exact up to 2^53, use `varint()` with `low`/`high` beyond. */
  uint64(): number {
    this.varint();
    return this.high * TWO_32 + this.low;
  }

  /** int64 as a Number; exact within +-2^53, use `varint()` with `low`/`high` beyond. */
  int64(): number {
    this.varint();
    return (this.high | 0) * TWO_32 + this.low;
  }

  sint32(): number {
    const value = this.uint32();
    return (value >>> 1) ^ -(value & 1);
  }

  /** sint64 as a Number, exact within +-2^53. */
  sint64(): number {
    this.varint();
    const half = (this.high >>> 1) * TWO_32 + (((this.high << 31) | (this.low >>> 1)) >>> 0);
    return (this.low & 1) === 0 ? half : -half - 1;
  }

  fixed32(): number {
    const at = this.offset;
    if (at + 4 > this.end) {
      this.fail(FAILURE_TRUNCATED);
      return 0;
    }
    this.offset = at + 4;
    return readUint32(this.bytes, at);
  }

  /** Reads eight bytes into `low` and `high`. */
  fixed64(): void {
    const at = this.offset;
    if (at + 8 > this.end) return this.fail(FAILURE_TRUNCATED);
    this.offset = at + 8;
    this.low = readUint32(this.bytes, at);
    this.high = readUint32(this.bytes, at + 4);
  }

  float(): number {
    scratchWords[0] = this.fixed32();
    return scratch32[0]!;
  }

  double(): number {
    this.fixed64();
    scratchWords[0] = this.low;
    scratchWords[1] = this.high;
    return scratch64[0]!;
  }

  /** Reads a length-delimited value: its range is `chunkStart`..`chunkEnd`. */
  chunk(): void {
    const length = this.uint64();
    if (this.failure !== FAILURE_NONE) return;
    if (length > this.end - this.offset) return this.fail(FAILURE_TRUNCATED);
    this.chunkStart = this.offset;
    this.offset += length;
    this.chunkEnd = this.offset;
  }

  /** Reads a length-delimited value as text; bytes that are not UTF-8 become U+FFFD. */
  text(): string {
    this.chunk();
    return readText(this.bytes, this.chunkStart, this.chunkEnd);
  }

  /** Steps over the value of the current field, a whole group included. */
  skip(): void {
    this.#skipValue(this.wireType, this.field, 0);
  }

  #skipValue(wireType: number, field: number, depth: number): void {
    if (wireType === WIRE_VARINT) this.varint();
    else if (wireType === WIRE_BYTES) this.chunk();
    else if (wireType === WIRE_FIXED64) this.fixed64();
    else if (wireType === WIRE_FIXED32) this.fixed32();
    else if (wireType === WIRE_GROUP_START) this.#skipGroup(field, depth);
    else this.fail(FAILURE_GROUP);
  }

  #skipGroup(field: number, depth: number): void {
    if (depth >= GROUP_DEPTH_MAX) return this.fail(FAILURE_GROUP);
    while (this.next()) {
      if (this.wireType === WIRE_GROUP_END) {
        if (this.field !== field) this.fail(FAILURE_GROUP);
        return;
      }
      this.#skipValue(this.wireType, this.field, depth + 1);
    }
    this.fail(FAILURE_GROUP);
  }
}

function readUint32(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0
  );
}

/** UTF-8 text of a range; short ASCII is decoded without leaving script. */
export function readText(bytes: Uint8Array, start: number, end: number): string {
  if (end - start <= SHORT_TEXT_BYTES_MAX) {
    let text = '';
    let at = start;
    for (; at < end; at++) {
      const byte = bytes[at]!;
      if (byte >= 0x80) break;
      text += String.fromCharCode(byte);
    }
    if (at === end) return text;
  }
  return textDecoder.decode(bytes.subarray(start, end));
}
