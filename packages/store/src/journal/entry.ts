// data plane: entries of the journal
/**
 * A group of changes is one or more entries of one epoch, side by side. Its payload is what a frame
 * of the log has: control messages, then records; a payload larger than an entry is cut anywhere.
 *
 * ```
 *   entry header, 64 bytes, little-endian
 *    0  "MPJE"                                32  8 bytes  writer: one run of one member
 *    4  u8 format version                     40  f64  last revision of the group
 *    5  u8 kind                               48  f64  clock of the writer, ms
 *    6  u8 flags: 1 = the group goes on       56  u32  control bytes at the group's start
 *    7  u8 zero                               60  u32  crc of bytes 0..60 and of the payload
 *    8  8 bytes  group of members
 *   16  f64 epoch
 *   24  f64 number of the entry in its epoch
 * ```
 */
import { crc32 } from 'node:zlib';
import { assertWhole } from '@megaplane/base/assert';

export const ENTRY_VERSION = 1;
export const ENTRY_HEADER_BYTES = 64;
const MAGIC = 0x454a504d;

/** Somebody leads from here on; the payload tells who. */
export const ENTRY_LEAD = 1;
/** Changes of the store. */
export const ENTRY_CHANGES = 2;
/** The leader is there. */
export const ENTRY_BEAT = 3;
/** The leader leads no more; the payload names who should, or nobody. */
export const ENTRY_OVER = 4;
const KIND_MAX = ENTRY_OVER;

const FLAG_GOES_ON = 1;

export interface Entry {
  readonly kind: number;
  readonly goesOn: boolean;
  readonly group: Buffer;
  readonly epoch: number;
  readonly number: number;
  readonly writer: Buffer;
  readonly lastRevision: number;
  readonly clockMs: number;
  readonly controlBytes: number;
  readonly payload: Buffer;
  /** The header may be written into the bytes before the payload, where it lies. */
  readonly hasRoomBefore?: boolean;
}

/** An entry of `payload`, which is copied unless there is room before it. */
export function encodeEntry(entry: Entry): Buffer {
  const { payload, hasRoomBefore = false } = entry;
  assertWhole(entry.group.length === 8 && entry.writer.length === 8, 'ids have eight bytes');
  const size = ENTRY_HEADER_BYTES + payload.length;
  const bytes = hasRoomBefore
    ? Buffer.from(payload.buffer, payload.byteOffset - ENTRY_HEADER_BYTES, size)
    : Buffer.allocUnsafeSlow(size);
  bytes.writeUInt32LE(MAGIC, 0);
  bytes[4] = ENTRY_VERSION;
  bytes[5] = entry.kind;
  bytes[6] = entry.goesOn ? FLAG_GOES_ON : 0;
  bytes[7] = 0;
  entry.group.copy(bytes, 8);
  bytes.writeDoubleLE(entry.epoch, 16);
  bytes.writeDoubleLE(entry.number, 24);
  entry.writer.copy(bytes, 32);
  bytes.writeDoubleLE(entry.lastRevision, 40);
  bytes.writeDoubleLE(entry.clockMs, 48);
  bytes.writeUInt32LE(entry.controlBytes, 56);
  if (!hasRoomBefore) payload.copy(bytes, ENTRY_HEADER_BYTES);
  bytes.writeUInt32LE(checksum(bytes), 60);
  return bytes;
}

function checksum(bytes: Buffer): number {
  return crc32(bytes.subarray(ENTRY_HEADER_BYTES), crc32(bytes.subarray(0, 60)));
}

/** Reads an entry, or says why it is none; its payload is a view. */
export function decodeEntry(bytes: Buffer): Entry | string {
  if (bytes.length < ENTRY_HEADER_BYTES || bytes.readUInt32LE(0) !== MAGIC) {
    return 'it is not by a megaplane store';
  }
  if (bytes[4] !== ENTRY_VERSION)
    return `it has format ${bytes[4]}, which this version cannot read`;
  if (bytes.readUInt32LE(60) !== checksum(bytes)) return 'its checksum is wrong';
  const kind = bytes[5]!;
  if (kind === 0 || kind > KIND_MAX) return `it is of kind ${kind}, which this version cannot read`;
  return {
    kind,
    goesOn: (bytes[6]! & FLAG_GOES_ON) !== 0,
    group: bytes.subarray(8, 16),
    epoch: bytes.readDoubleLE(16),
    number: bytes.readDoubleLE(24),
    writer: bytes.subarray(32, 40),
    lastRevision: bytes.readDoubleLE(40),
    clockMs: bytes.readDoubleLE(48),
    controlBytes: bytes.readUInt32LE(56),
    payload: bytes.subarray(ENTRY_HEADER_BYTES),
  };
}

/** Cuts a payload into pieces that fit entries of so many bytes; at least one. */
export function pieces(payload: Buffer, entryBytesMax: number): Buffer[] {
  const room = entryBytesMax - ENTRY_HEADER_BYTES;
  const all: Buffer[] = [];
  for (let at = 0; at < payload.length; at += room) all.push(payload.subarray(at, at + room));
  return all.length === 0 ? [payload] : all;
}
