// data plane: KV.Compact, and the hashes that a compaction would take away
/**
 * As etcd since 3.5, a compaction leaves the hash of its revision as it was before, for members to
 * compare: HashKV at the revision of one of the last compactions answers with that one. It takes a
 * walk over all records, so a store beyond KEPT_HASH_BYTES_MAX does without; its answer then counts
 * what the compaction left.
 */
import type { InPlaceHandler } from '@megaplane/wire/grpc';
import { GRPC_CODES } from '@megaplane/wire/grpc';
import { FAILURE_NONE, ProtobufReader } from '@megaplane/wire/protobuf';
import { APPLIED_COMPACTION } from '../call/call-measures.ts';
import type { EtcdContext } from '../call/context.ts';
import { ETCD, storeFailure } from '../codec/failures.ts';
import { KvHash } from './hash-kv.ts';
import { LONG_WORK_MAX, runInSlices, whenTrue } from '../call/slices.ts';

/** etcd keeps as many. */
const KEPT_HASHES_MAX = 10;
const KEPT_HASH_BYTES_MAX: number = 64 * 1024 * 1024;
/** Bytes of records up to which a hash is computed at once: some milliseconds. */
export const HASH_AT_ONCE_BYTES_MAX: number = 1024 * 1024;
const PHYSICAL_MS_MAX = 60_000;

interface KeptHash {
  readonly hash: KvHash;
  isDone: boolean;
}

export class Compactor {
  readonly #context: EtcdContext;
  #kept: readonly KeptHash[] = [];
  #running = 0;

  constructor(context: EtcdContext) {
    this.#context = context;
  }

  /** 0 or the store's failure. */
  compact(revision: number): number {
    const { store } = this.#context;
    if (revision <= store.compactRevision || revision > store.appliedRevision) {
      return store.compact(revision);
    }
    const { liveBytes } = store.arenas;
    if (liveBytes <= KEPT_HASH_BYTES_MAX && this.#running < LONG_WORK_MAX) {
      this.#keep(new KvHash(store, revision, 'compaction'), liveBytes <= HASH_AT_ONCE_BYTES_MAX);
    }
    return store.compact(revision);
  }

  #keep(hash: KvHash, isAtOnce: boolean): void {
    const kept = { hash, isDone: isAtOnce };
    this.#kept = [...this.#kept, kept].slice(-KEPT_HASHES_MAX);
    if (isAtOnce) {
      while (!hash.step());
      return;
    }
    this.#running++;
    runInSlices(hash, () => {
      this.#running--;
      kept.isDone = true;
    });
  }

  /** The hash kept for a revision; it may not be done yet. */
  keptAt(revision: number): KeptHash | null {
    return this.#kept.find(({ hash }) => hash.revision === revision) ?? null;
  }
}

/** KV.Compact, in place; with `physical` it is answered when the memory is given back. */
export function compactHandler(context: EtcdContext, compactor: Compactor): InPlaceHandler {
  const reader = new ProtobufReader();
  const { store } = context;
  const times = context.measures.applied[APPLIED_COMPACTION]!;
  return (bytes, start, end, out, offset, call) => {
    reader.reset(bytes, start, end);
    let revision = 0;
    let isPhysical = false;
    while (reader.next()) {
      if (reader.field === 1 && reader.wireType === 0) revision = reader.int64();
      else if (reader.field === 2 && reader.wireType === 0) isPhysical = reader.bool();
      else reader.skip();
    }
    if (reader.failure !== FAILURE_NONE) return context.fail(call, ETCD.malformed);
    const startMs = times.begin();
    const failure = compactor.compact(revision);
    times.end(startMs, failure === 0);
    if (failure !== 0) return context.fail(call, storeFailure(failure));
    if (!isPhysical || !store.sweep.isBehind) {
      context.guard(call.connection);
      return context.writeHeader(out, offset, store.appliedRevision);
    }
    return call.defer((deferred) => {
      whenTrue(
        () => !store.sweep.isBehind || deferred.closed,
        PHYSICAL_MS_MAX,
        () => {
          const answer = Buffer.alloc(context.headerRoom);
          const at = context.writeHeader(answer, 0, store.appliedRevision);
          context.guard(deferred.connection);
          deferred.send(answer, 0, at);
          deferred.finish(GRPC_CODES.ok);
        },
      );
    });
  };
}
