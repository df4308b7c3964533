// data plane: checksums of log records

// The polynomial of Castagnoli, bits reversed (RFC 3720, appendix B.4).
const POLYNOMIAL = 0x82f63b78;

/**
 * Table t, entry b: what byte b does to the checksum when t more bytes follow it. With eight tables
 * eight bytes are folded in at once.
 */
const TABLES: Int32Array = (() => {
  const tables = new Int32Array(8 * 256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ ((crc & 1) === 1 ? POLYNOMIAL : 0);
    tables[byte] = crc;
  }
  for (let at = 256; at < tables.length; at++) {
    const crc = tables[at - 256]!;
    tables[at] = (crc >>> 8) ^ tables[crc & 255]!;
  }
  return tables;
})();

/**
 * CRC-32C of a range, going on from `crc` (0 at the beginning): the checksum of two ranges one
 * after the other is `crc32c(crc32c(0, first...), second...)`. An unsigned 32-bit number.
 */
export function crc32c(crc: number, bytes: Uint8Array, start: number, end: number): number {
  const tables = TABLES;
  let state = ~crc;
  let at = start;
  const foldEnd = end - ((end - start) & 7);
  while (at < foldEnd) {
    state ^= bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
    state =
      tables[1792 + (state & 255)]! ^
      tables[1536 + ((state >>> 8) & 255)]! ^
      tables[1280 + ((state >>> 16) & 255)]! ^
      tables[1024 + (state >>> 24)]! ^
      tables[768 + bytes[at + 4]!]! ^
      tables[512 + bytes[at + 5]!]! ^
      tables[256 + bytes[at + 6]!]! ^
      tables[bytes[at + 7]!]!;
    at += 8;
  }
  while (at < end) state = (state >>> 8) ^ tables[(state ^ bytes[at++]!) & 255]!;
  return ~state >>> 0;
}
