// data plane: the bytes of log and snapshot files
/**
 * A file is a header and frames; every number is little-endian. `crc` is CRC-32 (IEEE), because
 * the runtime computes it natively at 4.6 GB/s, nine times as fast as CRC-32C in script.
 *
 * ```
 *   file header, 64 bytes                      frame header, 64 bytes
 *    0  "MPSTORE\0"                             0  u32  FRAME_MAGIC
 *    8  u32  format version                     4  u32  crc of bytes 8..64
 *   12  u32  kind: 1 log, 2 snapshot            8  u32  crc of the frame before (its bytes 8..64)
 *   16  u32  segment number                    12  u32  crc of the payload
 *   20  u32  crc of bytes 0..20 and 24..64     16  u32  payload size, a multiple of 16
 *   24  f64  first revision                    20  u32  control bytes at the payload's start
 *   32  8 bytes  cluster id                    24  f64  frame number since the store was made
 *   40  8 bytes  member id                     32  f64  last revision
 *   48  u32  crc of the last frame before      40  f64  wall clock, ms since 1970
 *   52  zero                                   48  u32  flags: 1 = the next frame goes on
 *                                              52  u32  bytes of this file flushed before it
 * ```
 *
 * Each frame names the one before it, so stale or misplaced frames cannot pass for the next one.
 * A transaction that does not fit one frame goes on in the next; such a group counts as a whole.
 * A frame follows the one before it, or stands at the next multiple of DIRECT_BYTES, and zeros
 * between them.
 */
import { crc32 } from 'node:zlib';

/** 2: zeros may stand between frames. */
export const FORMAT_VERSION = 2;
export const FILE_HEADER_BYTES = 64;
export const FRAME_HEADER_BYTES = 64;
/** Writes past the page cache begin and end at multiples of this. */
export const DIRECT_BYTES = 4096;
export const FRAME_MAGIC = 0x3146504d;
export const FRAME_BYTES_MAX: number = 4 * 1024 * 1024;
export const KIND_LOG = 1;
export const KIND_SNAPSHOT = 2;
export const FLAG_GOES_ON = 1;
const FILE_MAGIC = Buffer.from('MPSTORE\0', 'latin1');

export interface FileHeader {
  readonly version: number;
  readonly kind: number;
  readonly segment: number;
  readonly firstRevision: number;
  /** Eight bytes each. */
  readonly clusterId: Buffer;
  readonly memberId: Buffer;
  /**
   * Of a log: the chain value that its first frame must name. Of a snapshot: that of its last
   * frame, written when it was whole, so that one that was cut between two frames is not taken for
   * whole; 0 in those of older programs.
   */
  readonly chain: number;
}

export const CUT_SHORT = 'it ends before its last record';

/** Whether a snapshot whose frames end with `chain` lacks frames that it had. */
export function isCutShort(header: FileHeader, chain: number): boolean {
  return header.chain !== 0 && header.chain !== chain;
}

export function encodeFileHeader(header: FileHeader): Buffer {
  const bytes = Buffer.alloc(FILE_HEADER_BYTES);
  FILE_MAGIC.copy(bytes);
  bytes.writeUInt32LE(header.version, 8);
  bytes.writeUInt32LE(header.kind, 12);
  bytes.writeUInt32LE(header.segment, 16);
  bytes.writeDoubleLE(header.firstRevision, 24);
  header.clusterId.copy(bytes, 32, 0, 8);
  header.memberId.copy(bytes, 40, 0, 8);
  bytes.writeUInt32LE(header.chain, 48);
  bytes.writeUInt32LE(fileHeaderCrc(bytes), 20);
  return bytes;
}

function fileHeaderCrc(bytes: Buffer): number {
  return crc32(bytes.subarray(24, FILE_HEADER_BYTES), crc32(bytes.subarray(0, 20)));
}

/** The header, or null when these are not the first bytes of a whole file of ours. */
export function decodeFileHeader(bytes: Buffer): FileHeader | null {
  if (bytes.length < FILE_HEADER_BYTES || !bytes.subarray(0, 8).equals(FILE_MAGIC)) return null;
  const version = bytes.readUInt32LE(8);
  // A newer format may lay the rest out otherwise: its number alone must reach the reader.
  if (version <= FORMAT_VERSION && bytes.readUInt32LE(20) !== fileHeaderCrc(bytes)) return null;
  return {
    version,
    kind: bytes.readUInt32LE(12),
    segment: bytes.readUInt32LE(16),
    firstRevision: bytes.readDoubleLE(24),
    clusterId: Buffer.from(bytes.subarray(32, 40)),
    memberId: Buffer.from(bytes.subarray(40, 48)),
    chain: bytes.readUInt32LE(48),
  };
}

/** Writes all of a frame header but the checksums, which `sealFrame` adds. */
export function writeFrameHeader(
  frame: Buffer,
  payloadSize: number,
  controlSize: number,
  number: number,
  lastRevision: number,
  wallMs: number,
  flags: number,
): void {
  frame.writeUInt32LE(FRAME_MAGIC, 0);
  frame.writeUInt32LE(payloadSize, 16);
  frame.writeUInt32LE(controlSize, 20);
  frame.writeDoubleLE(number, 24);
  frame.writeDoubleLE(lastRevision, 32);
  frame.writeDoubleLE(wallMs, 40);
  frame.writeUInt32LE(flags, 48);
  frame.fill(0, 52, FRAME_HEADER_BYTES);
}

/**
 * Adds the checksums and how many bytes of the file were flushed when it was written; returns the
 * chain value for the next frame.
 */
export function sealFrame(frame: Buffer, chain: number, flushed: number): number {
  frame.writeUInt32LE(flushed, 52);
  const end = FRAME_HEADER_BYTES + frame.readUInt32LE(16);
  frame.writeUInt32LE(chain, 8);
  frame.writeUInt32LE(crc32(frame.subarray(FRAME_HEADER_BYTES, end)), 12);
  const own = crc32(frame.subarray(8, FRAME_HEADER_BYTES));
  frame.writeUInt32LE(own, 4);
  return own;
}

export const FRAME_OK = 0;
/** Fewer bytes are there than the header promises, or than a header needs. */
export const FRAME_SHORT = 1;
/** No frame header stands here, or it is damaged. */
export const FRAME_BAD_HEADER = 2;
/** The header is whole, the payload is not. */
export const FRAME_BAD_PAYLOAD = 3;
/** A whole frame, but not the successor of the one before. */
export const FRAME_BAD_CHAIN = 4;

/** Is there a whole frame at `at` that follows `chain`? `chain` -1 does not care. */
export function checkFrame(bytes: Buffer, at: number, end: number, chain: number): number {
  if (end - at < FRAME_HEADER_BYTES) return FRAME_SHORT;
  const state = checkFrameHeader(bytes, at, chain);
  if (state === FRAME_BAD_HEADER) return state;
  const size = bytes.readUInt32LE(at + 16);
  if (end - at < FRAME_HEADER_BYTES + size) return FRAME_SHORT;
  const from = at + FRAME_HEADER_BYTES;
  if (bytes.readUInt32LE(at + 12) !== crc32(bytes.subarray(from, from + size))) {
    return FRAME_BAD_PAYLOAD;
  }
  return state;
}

/** Does a whole frame header stand at `at`, and does it follow `chain`? */
export function checkFrameHeader(bytes: Buffer, at: number, chain: number): number {
  if (bytes.readUInt32LE(at) !== FRAME_MAGIC) return FRAME_BAD_HEADER;
  const own = crc32(bytes.subarray(at + 8, at + FRAME_HEADER_BYTES));
  if (bytes.readUInt32LE(at + 4) !== own) return FRAME_BAD_HEADER;
  if (bytes.readUInt32LE(at + 16) > FRAME_BYTES_MAX) return FRAME_BAD_HEADER;
  return chain >= 0 && bytes.readUInt32LE(at + 8) !== chain ? FRAME_BAD_CHAIN : FRAME_OK;
}

/**
 * Zeros at `at` that lead to the next multiple of DIRECT_BYTES in the file, or to `end`; 0 when
 * something else stands there. `fileAt` is where `at` lies in the file.
 */
export function paddingAt(bytes: Buffer, at: number, end: number, fileAt: number): number {
  const size = Math.min(end - at, DIRECT_BYTES - 1 - ((fileAt + DIRECT_BYTES - 1) % DIRECT_BYTES));
  for (let i = 0; i < size; i++) if (bytes[at + i] !== 0) return 0;
  return size;
}

/** Bytes of its file that were flushed when the frame at `at` was written. */
export function flushedBefore(bytes: Buffer, at: number): number {
  return bytes.readUInt32LE(at + 52);
}
