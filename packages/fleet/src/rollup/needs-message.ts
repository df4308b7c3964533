// data plane: joins rows that are written already
/** The bytes of `ClusterCapacityNeeds` (`capacity.proto`) around rows that are bytes. */

const TAG_CLUSTER_ID = 0x0a;
const TAG_TIMESTAMP = 0x10;
const TAG_NEEDS = 0x1a;
const VARINT_BYTES_MAX = 10;

/** `timestampUnixNanos` is not negative. */
export function needsMessage(
  clusterId: string,
  timestampUnixNanos: bigint,
  needs: readonly Uint8Array[],
): Buffer {
  const idBytes = Buffer.byteLength(clusterId);
  let size = 2 * (1 + VARINT_BYTES_MAX) + idBytes;
  for (const need of needs) size += 1 + VARINT_BYTES_MAX + need.length;
  const bytes = Buffer.allocUnsafe(size);
  let at = 0;
  bytes[at++] = TAG_CLUSTER_ID;
  at = writeVarint(bytes, at, idBytes);
  at += bytes.write(clusterId, at);
  bytes[at++] = TAG_TIMESTAMP;
  at = writeBigVarint(bytes, at, timestampUnixNanos);
  for (const need of needs) {
    bytes[at++] = TAG_NEEDS;
    at = writeVarint(bytes, at, need.length);
    bytes.set(need, at);
    at += need.length;
  }
  return bytes.subarray(0, at);
}

function writeVarint(bytes: Buffer, at: number, value: number): number {
  let rest = value;
  while (rest >= 0x80) {
    bytes[at++] = (rest & 0x7f) | 0x80;
    rest = Math.floor(rest / 128);
  }
  bytes[at++] = rest;
  return at;
}

function writeBigVarint(bytes: Buffer, at: number, value: bigint): number {
  let rest = value;
  while (rest >= 0x80n) {
    bytes[at++] = Number(rest & 0x7fn) | 0x80;
    rest >>= 7n;
  }
  bytes[at++] = Number(rest);
  return at;
}
