/**
 * The page format of bbolt, etcd's database file; every number is little-endian.
 *
 * ```
 * page header, 16 bytes         meta, behind its header         elements
 *  0  u64  page id               0  u32  magic                  leaf:   u32 flags (1 = bucket)
 *  8  u16  flags                 4  u32  version, 2                     u32 pos, ksize, vsize
 * 10  u16  count of elements     8  u32  page size              branch: u32 pos, ksize
 * 12  u32  overflow: further    12  u32  flags                          u64 page id
 *          pages of this one    16  u64  root page, sequence    `pos` counts from the element;
 *                               32  u64  free list's page       key and value lie there, one
 *                               40  u64  one past the last      behind the other
 *                               48  u64  transaction
 *                               56  u64  FNV-1a of the 56 bytes
 * ```
 *
 * Pages 0 and 1 are metas; the whole one with the larger transaction counts. A bucket is an
 * element of the root bucket whose value is u64 root page, u64 sequence; root page 0 means that
 * its only page follows right there.
 */

export const PAGE_HEADER_BYTES = 16;
export const ELEMENT_BYTES = 16;
export const FLAG_BRANCH = 1;
export const FLAG_LEAF = 2;
export const FLAG_META = 4;
export const FLAG_FREELIST = 16;
export const ELEMENT_BUCKET = 1;
export const BUCKET_HEADER_BYTES = 16;
const META_BYTES = 64;
const MAGIC = 0xed0cdaed;
const VERSION = 2;
const PAGE_BYTES_MIN = 512;
const PAGE_BYTES_MAX: number = 1024 * 1024;

export interface Meta {
  readonly pageBytes: number;
  readonly root: number;
  readonly freelist: number;
  /** Pages that the file holds at least. */
  readonly pages: number;
  readonly transaction: bigint;
}

function fnv1a(bytes: Buffer, start: number, end: number): bigint {
  let hash = 0xcbf29ce484222325n;
  for (let i = start; i < end; i++) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(bytes[i] ?? 0)) * 0x100000001b3n);
  }
  return hash;
}

export function writePageHeader(
  out: Buffer,
  at: number,
  id: number,
  flags: number,
  count: number,
  overflow: number,
): void {
  out.writeUInt32LE(id, at);
  out.writeUInt32LE(0, at + 4);
  out.writeUInt16LE(flags, at + 8);
  out.writeUInt16LE(count, at + 10);
  out.writeUInt32LE(overflow, at + 12);
}

/** Writes a meta page's header and content. */
export function writeMeta(out: Buffer, at: number, id: number, meta: Meta): void {
  writePageHeader(out, at, id, FLAG_META, 0, 0);
  const start = at + PAGE_HEADER_BYTES;
  out.writeUInt32LE(MAGIC, start);
  out.writeUInt32LE(VERSION, start + 4);
  out.writeUInt32LE(meta.pageBytes, start + 8);
  out.writeUInt32LE(0, start + 12);
  out.writeBigUInt64LE(BigInt(meta.root), start + 16);
  out.writeBigUInt64LE(0n, start + 24);
  out.writeBigUInt64LE(BigInt(meta.freelist), start + 32);
  out.writeBigUInt64LE(BigInt(meta.pages), start + 40);
  out.writeBigUInt64LE(meta.transaction, start + 48);
  out.writeBigUInt64LE(fnv1a(out, start, start + 56), start + 56);
}

/** The meta of a page at `at`, null when none stands there whole. */
export function readMeta(bytes: Buffer, at: number): Meta | null {
  const start = at + PAGE_HEADER_BYTES;
  if (start + META_BYTES > bytes.length) return null;
  if (bytes.readUInt32LE(start) !== MAGIC || bytes.readUInt32LE(start + 4) !== VERSION) return null;
  if (bytes.readBigUInt64LE(start + 56) !== fnv1a(bytes, start, start + 56)) return null;
  const pageBytes = bytes.readUInt32LE(start + 8);
  const isPower = (pageBytes & (pageBytes - 1)) === 0;
  if (!isPower || pageBytes < PAGE_BYTES_MIN || pageBytes > PAGE_BYTES_MAX) return null;
  return {
    pageBytes,
    root: Number(bytes.readBigUInt64LE(start + 16)),
    freelist: Number(bytes.readBigUInt64LE(start + 32)),
    pages: Number(bytes.readBigUInt64LE(start + 40)),
    transaction: bytes.readBigUInt64LE(start + 48),
  };
}

/** Does a meta's magic number stand here, whole or not? */
export function hasMagic(bytes: Buffer, at: number): boolean {
  const start = at + PAGE_HEADER_BYTES;
  return start + 4 <= bytes.length && bytes.readUInt32LE(start) === MAGIC;
}
