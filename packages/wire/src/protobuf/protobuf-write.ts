// data plane
/**
 * Writing protobuf into a Uint8Array: each function takes the offset to write at and returns the
 * offset after what it wrote; nothing is allocated.
 *
 * A typed array drops writes past its end, so a writer never damages memory: a returned offset
 * greater than `out.length` says that the message did not fit. `size*` functions tell beforehand.
 *
 * Numbers given as 64-bit values must be integers within +-2^53; the `low, high` forms (unsigned
 * 32-bit halves) are exact for all 64 bits.
 */
import { WIRE_BYTES, WIRE_FIXED32, WIRE_FIXED64, WIRE_VARINT } from './protobuf.ts';

const TWO_32 = 4294967296;
const TWO_28 = 268435456;
const scratch64 = new Float64Array(1);
const scratch32 = new Float32Array(scratch64.buffer, 0, 1);
const scratchWords = new Uint32Array(scratch64.buffer);
const textEncoder = new TextEncoder();

/** Bytes of an unsigned varint below 2^53. */
export function sizeVarint(value: number): number {
  if (value < 0x80) return 1;
  if (value < 0x4000) return 2;
  if (value < 0x200000) return 3;
  if (value < TWO_28) return 4;
  let size = 5;
  for (let rest = Math.floor(value / 0x800000000); rest > 0; rest = Math.floor(rest / 128)) size++;
  return size;
}

/** Bytes of a 64-bit varint given as unsigned halves. */
export function sizeVarint64(low: number, high: number): number {
  if (high === 0) return sizeVarint(low);
  if (high < 0x8) return 5;
  if (high < 0x400) return 6;
  if (high < 0x20000) return 7;
  if (high < 0x1000000) return 8;
  return high < 0x80000000 ? 9 : 10;
}

/** Bytes of an int64 or int32: negative values take ten. */
export function sizeInt64(value: number): number {
  return value < 0 ? 10 : sizeVarint(value);
}

export function sizeTag(field: number): number {
  return sizeVarint(field * 8);
}

/** Bytes of a whole length-delimited field with `length` bytes of content. */
export function sizeBytesField(field: number, length: number): number {
  return sizeVarint(field * 8) + sizeVarint(length) + length;
}

/** UTF-8 bytes of a text without encoding it. */
export function sizeText(text: string): number {
  return Buffer.byteLength(text);
}

/** Writes an unsigned varint below 2^53. */
export function writeVarint(out: Uint8Array, at: number, value: number): number {
  if (value >= TWO_32)
    return writeVarint64(out, at, (value % TWO_32) >>> 0, (value / TWO_32) >>> 0);
  let rest = value >>> 0;
  while (rest >= 0x80) {
    out[at++] = (rest & 0x7f) | 0x80;
    rest >>>= 7;
  }
  out[at++] = rest;
  return at;
}

/** Writes a 64-bit varint given as unsigned halves. */
export function writeVarint64(out: Uint8Array, at: number, low: number, high: number): number {
  let lowRest = low >>> 0;
  let highRest = high >>> 0;
  while (highRest !== 0) {
    out[at++] = (lowRest & 0x7f) | 0x80;
    lowRest = ((highRest << 25) | (lowRest >>> 7)) >>> 0;
    highRest >>>= 7;
  }
  return writeVarint(out, at, lowRest);
}

/** Writes an int64 or int32 (negative values as ten bytes, as protobuf wants them). */
export function writeInt64(out: Uint8Array, at: number, value: number): number {
  if (value >= 0) return writeVarint(out, at, value);
  const high = Math.floor(value / TWO_32);
  return writeVarint64(out, at, value - high * TWO_32, high);
}

/** Writes a zigzag varint; exact within +-2^52. */
export function writeSint64(out: Uint8Array, at: number, value: number): number {
  return writeVarint(out, at, value >= 0 ? value * 2 : -value * 2 - 1);
}

export function writeTag(out: Uint8Array, at: number, field: number, wireType: number): number {
  return writeVarint(out, at, field * 8 + wireType);
}

export function writeFixed32(out: Uint8Array, at: number, value: number): number {
  out[at] = value;
  out[at + 1] = value >>> 8;
  out[at + 2] = value >>> 16;
  out[at + 3] = value >>> 24;
  return at + 4;
}

export function writeFixed64(out: Uint8Array, at: number, low: number, high: number): number {
  return writeFixed32(out, writeFixed32(out, at, low), high);
}

export function writeFloat(out: Uint8Array, at: number, value: number): number {
  scratch32[0] = value;
  return writeFixed32(out, at, scratchWords[0]!);
}

export function writeDouble(out: Uint8Array, at: number, value: number): number {
  scratch64[0] = value;
  return writeFixed64(out, at, scratchWords[0]!, scratchWords[1]!);
}

/** Copies `bytes[start..end)` without tag or length. */
export function writeRaw(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  const length = end - start;
  if (at + length > out.length) return at + length;
  // A loop beats `set` for short ranges: it needs no view object.
  if (length <= 64) for (let i = 0; i < length; i++) out[at + i] = bytes[start + i]!;
  else out.set(bytes.subarray(start, end), at);
  return at + length;
}

/** Writes a whole varint field; proto3 leaves out fields with value 0, so does this. */
export function writeVarintField(
  out: Uint8Array,
  at: number,
  field: number,
  value: number,
): number {
  if (value === 0) return at;
  return writeVarint(out, writeVarint(out, at, field * 8 + WIRE_VARINT), value);
}

/** Writes a whole int64 or int32 field unless its value is 0. */
export function writeInt64Field(out: Uint8Array, at: number, field: number, value: number): number {
  if (value === 0) return at;
  return writeInt64(out, writeVarint(out, at, field * 8 + WIRE_VARINT), value);
}

/** Writes a whole 64-bit varint field, given as unsigned halves, unless it is 0. */
export function writeVarint64Field(
  out: Uint8Array,
  at: number,
  field: number,
  low: number,
  high: number,
): number {
  if (low === 0 && high === 0) return at;
  return writeVarint64(out, writeVarint(out, at, field * 8 + WIRE_VARINT), low, high);
}

/** Writes a whole bool field unless it is false. */
export function writeBoolField(out: Uint8Array, at: number, field: number, value: boolean): number {
  return writeVarintField(out, at, field, value ? 1 : 0);
}

/** Writes a whole double field unless it is 0. */
export function writeDoubleField(
  out: Uint8Array,
  at: number,
  field: number,
  value: number,
): number {
  if (value === 0) return at;
  return writeDouble(out, writeVarint(out, at, field * 8 + WIRE_FIXED64), value);
}

/** Writes a whole fixed32 field unless it is 0. */
export function writeFixed32Field(
  out: Uint8Array,
  at: number,
  field: number,
  value: number,
): number {
  if (value === 0) return at;
  return writeFixed32(out, writeVarint(out, at, field * 8 + WIRE_FIXED32), value);
}

/** Writes a whole length-delimited field from `bytes[start..end)`, an empty one too. */
export function writeBytesField(
  out: Uint8Array,
  at: number,
  field: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  return writeRaw(out, writeBytesHead(out, at, field, end - start), bytes, start, end);
}

/** Writes tag and length of a length-delimited field whose content the caller writes next. */
export function writeBytesHead(out: Uint8Array, at: number, field: number, length: number): number {
  return writeVarint(out, writeVarint(out, at, field * 8 + WIRE_BYTES), length);
}

/** Writes a whole string field, an empty one too. */
export function writeTextField(out: Uint8Array, at: number, field: number, text: string): number {
  const length = Buffer.byteLength(text);
  const start = writeBytesHead(out, at, field, length);
  if (start + length > out.length) return start + length;
  if (length === text.length && length <= 64) {
    for (let i = 0; i < length; i++) out[start + i] = text.charCodeAt(i);
  } else {
    textEncoder.encodeInto(text, out.subarray(start));
  }
  return start + length;
}

/**
 * Opens a nested message of unknown size: writes the tag and leaves one byte for the length. Write
 * the content from the returned offset on, then call `closeMessage` with that same offset.
 */
export function openMessage(out: Uint8Array, at: number, field: number): number {
  return writeVarint(out, at, field * 8 + WIRE_BYTES) + 1;
}

/**
 * Closes what `openMessage` opened: `start` is its result, `at` the end of the content. Content of
 * 128 bytes and more is moved up to make room for its length. Returns the offset after all.
 */
export function closeMessage(out: Uint8Array, start: number, at: number): number {
  const length = at - start;
  const grown = sizeVarint(length) - 1;
  if (at + grown > out.length) return at + grown;
  if (grown > 0) out.copyWithin(start + grown, start, at);
  writeVarint(out, start - 1, length);
  return at + grown;
}
