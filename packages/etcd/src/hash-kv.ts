// data plane: HashKV, bit for bit what etcd answers after the same operations
/**
 * CRC-32C over the name of etcd's bucket and then, in order of revision, each kept record as etcd
 * would have stored it: its 17- or 18-byte key (main, `_`, sub, `t` for a tombstone) and its
 * KeyValue message. Records above the hashed revision are left out; of those at or below the
 * compaction only the ones count that are live at the hashed revision, unless nothing is live.
 */
import { crc32c } from '@megaplane/base/crc32c';
import type { Store } from '@megaplane/store/store';
import { keyValueSize, writeKeyValueContent } from './key-value.ts';

const BUCKET = Buffer.from('key');

interface Hashed {
  readonly hash: number;
  readonly compactRevision: number;
}

/**
 * Hash of everything up to `revision` (0 = now; of nothing when negative). Takes two
 * microseconds or so per kilobyte.
 */
export function hashKv(store: Store, revision: number): Hashed {
  const at = revision === 0 ? store.appliedRevision : revision;
  const refs = collect(store, at);
  let hash = crc32c(0, BUCKET, 0, BUCKET.length);
  let scratch = Buffer.alloc(64 * 1024);
  for (const ref of refs) {
    const isTombstone = store.isTombstone(ref);
    const keySize = isTombstone ? 18 : 17;
    const valueSize = isTombstone ? tombstoneSize(store, ref) : keyValueSize(store, ref, false);
    if (keySize + valueSize > scratch.length) scratch = Buffer.alloc((keySize + valueSize) * 2);
    writeUInt64(scratch, 0, store.modRevision(ref));
    scratch[8] = 0x5f;
    writeUInt64(scratch, 9, store.arenas.sub(ref));
    if (isTombstone) scratch[17] = 0x74;
    const end = isTombstone
      ? writeTombstone(store, ref, scratch, keySize)
      : writeKeyValueContent(store, ref, false, scratch, keySize);
    hash = crc32c(hash, scratch, 0, end);
  }
  return { hash, compactRevision: store.compactRevision };
}

/** Records that count, in order of revision. */
function collect(store: Store, revision: number): number[] {
  const { keys, arenas, compactRevision } = store;
  const kept: number[] = [];
  const old: number[] = [];
  let isAnyLive = false;
  for (let id = 1; id < keys.idEnd; id++) {
    let isNewest = true;
    let isOldest = false;
    for (let ref = keys.head(id); ref !== 0 && !isOldest; ref = arenas.previous(ref)) {
      const mod = arenas.modRevision(ref);
      if (mod > revision) continue;
      const isTombstone = arenas.isTombstone(ref);
      if (isNewest && !isTombstone) isAnyLive = true;
      if (mod > compactRevision) kept.push(ref);
      else {
        // The newest at or below the compaction; older ones are only not swept yet.
        isOldest = true;
        if (!isTombstone) (isNewest ? kept : old).push(ref);
      }
      isNewest = false;
    }
  }
  if (!isAnyLive) kept.push(...old);
  return kept.sort(
    (a, b) => arenas.modRevision(a) - arenas.modRevision(b) || arenas.sub(a) - arenas.sub(b),
  );
}

function writeUInt64(out: Buffer, at: number, value: number): void {
  out.writeUInt32BE(Math.floor(value / 2 ** 32), at);
  out.writeUInt32BE(value >>> 0, at + 4);
}

function tombstoneSize(store: Store, ref: number): number {
  return store.arenas.keySize(ref) + 6;
}

/** A tombstone is stored as a KeyValue with the key alone. */
function writeTombstone(store: Store, ref: number, out: Buffer, start: number): number {
  const from = store.keyAt(ref);
  const to = store.keyTo(ref);
  let at = start;
  out[at++] = 0x0a;
  let size = to - from;
  while (size > 0x7f) {
    out[at++] = (size & 0x7f) | 0x80;
    size >>>= 7;
  }
  out[at++] = size;
  return at + store.record(ref).copy(out, at, from, to);
}
