// data plane: mvccpb.KeyValue from a record
import type { Store } from '@megaplane/store/store';
import {
  sizeInt64,
  sizeVarint,
  writeInt64,
  writeVarint,
  writeVarint64,
  sizeVarint64,
} from '@megaplane/wire/protobuf-write';

/** Bytes of a KeyValue's content. A tombstone has key and mod revision only. */
export function keyValueSize(store: Store, ref: number, keysOnly: boolean): number {
  const arenas = store.arenas;
  const keySize = arenas.keySize(ref);
  const size = 1 + sizeVarint(keySize) + keySize + 1 + sizeInt64(arenas.modRevision(ref));
  if (arenas.isTombstone(ref)) return size;
  const valueSize = keysOnly ? 0 : arenas.valueSize(ref);
  return (
    size +
    (1 + sizeInt64(arenas.createRevision(ref))) +
    (1 + sizeInt64(arenas.version(ref))) +
    (valueSize === 0 ? 0 : 1 + sizeVarint(valueSize) + valueSize) +
    sizeOptional64(arenas.leaseLow(ref), arenas.leaseHigh(ref))
  );
}

/** Writes a KeyValue as a length-delimited field (`field` below 16); returns the new end. */
export function writeKeyValue(
  store: Store,
  ref: number,
  keysOnly: boolean,
  out: Buffer,
  at: number,
  field: number,
): number {
  out[at++] = (field << 3) | 2;
  at = writeVarint(out, at, keyValueSize(store, ref, keysOnly));
  return writeKeyValueContent(store, ref, keysOnly, out, at);
}

/** Writes the content of a KeyValue alone. */
export function writeKeyValueContent(
  store: Store,
  ref: number,
  keysOnly: boolean,
  out: Buffer,
  start: number,
): number {
  const arenas = store.arenas;
  const bytes = arenas.buffer(ref);
  const keyAt = arenas.keyAt(ref);
  const keySize = arenas.keySize(ref);
  let at = start;
  out[at++] = 0x0a;
  at = writeVarint(out, at, keySize);
  for (let i = 0; i < keySize; i++) out[at + i] = bytes[keyAt + i]!;
  at += keySize;
  const isTombstone = arenas.isTombstone(ref);
  if (!isTombstone) {
    out[at++] = 0x10;
    at = writeInt64(out, at, arenas.createRevision(ref));
  }
  out[at++] = 0x18;
  at = writeInt64(out, at, arenas.modRevision(ref));
  if (isTombstone) return at;
  out[at++] = 0x20;
  at = writeInt64(out, at, arenas.version(ref));
  const valueSize = keysOnly ? 0 : arenas.valueSize(ref);
  if (valueSize > 0) {
    out[at++] = 0x2a;
    at = writeVarint(out, at, valueSize);
    const valueAt = arenas.valueAt(ref);
    bytes.copy(out, at, valueAt, valueAt + valueSize);
    at += valueSize;
  }
  const low = arenas.leaseLow(ref);
  const high = arenas.leaseHigh(ref);
  if (low !== 0 || high !== 0) {
    out[at++] = 0x30;
    at = writeVarint64(out, at, low, high);
  }
  return at;
}

/** Size of a 64-bit varint field that is left out when zero. */
export function sizeOptional64(low: number, high: number): number {
  return low === 0 && high === 0 ? 0 : 1 + sizeVarint64(low, high);
}
