// data plane
/** Finds a lease's renewTime without reading the rest. */
import { hashOf } from './node-scan.ts';

const RENEW_TIME = Buffer.from('"renewTime":');
const QUOTE = 0x22;

/** A hash that changes when the lease is renewed; 0 for a lease that never was. */
export function leaseHash(bytes: Uint8Array, start: number, end: number): number {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  // managedFields hold `"f:renewTime":`, which does not match because of the quote before.
  const at = buffer.subarray(0, end).indexOf(RENEW_TIME, start);
  if (at < 0) return 0;
  let from = at + RENEW_TIME.length;
  while (from < end && bytes[from] !== QUOTE) {
    if (bytes[from]! > 0x20) return 0;
    from++;
  }
  let to = from + 1;
  while (to < end && bytes[to] !== QUOTE) to++;
  return hashOf(bytes, from, to);
}
