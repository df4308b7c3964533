// data plane: a record as etcd's backend stores it
/**
 * Key: 8 bytes main, `_`, 8 bytes sub, big-endian, and `t` behind a tombstone. Value: the KeyValue
 * message; of a tombstone with the key alone. A record whose key is empty is the mark that etcd's
 * restore leaves at a bumped revision: its value has no bytes at all.
 */
import type { Store } from '@megaplane/store/store';
import { sizeVarint, writeVarint } from '@megaplane/wire/protobuf-write';
import { keyValueSize, writeKeyValueContent } from './key-value.ts';

export const TOMBSTONE_MARK = 0x74;
export const SEPARATOR = 0x5f;
export const PUT_KEY_BYTES = 17;
export const TOMBSTONE_KEY_BYTES = 18;

export function backendKeySize(store: Store, ref: number): number {
  return store.isTombstone(ref) ? TOMBSTONE_KEY_BYTES : PUT_KEY_BYTES;
}

export function backendValueSize(store: Store, ref: number): number {
  const keySize = store.arenas.keySize(ref);
  if (keySize === 0) return 0;
  if (!store.isTombstone(ref)) return keyValueSize(store, ref, false);
  return 1 + sizeVarint(keySize) + keySize;
}

/** Writes the key; returns the end. */
export function writeBackendKey(store: Store, ref: number, out: Buffer, start: number): number {
  let at = writeUInt64(out, start, store.modRevision(ref));
  out[at++] = SEPARATOR;
  at = writeUInt64(out, at, store.arenas.sub(ref));
  if (store.isTombstone(ref)) out[at++] = TOMBSTONE_MARK;
  return at;
}

/** Writes the value; returns the end. */
export function writeBackendValue(store: Store, ref: number, out: Buffer, start: number): number {
  const keySize = store.arenas.keySize(ref);
  if (keySize === 0) return start;
  if (!store.isTombstone(ref)) return writeKeyValueContent(store, ref, false, out, start);
  out[start] = 0x0a;
  const at = writeVarint(out, start + 1, keySize);
  const from = store.keyAt(ref);
  return at + store.record(ref).copy(out, at, from, from + keySize);
}

/** Writes a whole number below 2^53 as eight big-endian bytes. */
export function writeUInt64(out: Buffer, at: number, value: number): number {
  out.writeUInt32BE(Math.floor(value / 2 ** 32), at);
  return out.writeUInt32BE(value >>> 0, at + 4);
}
