// data plane: HashKV, bit for bit what etcd answers after the same operations
/**
 * CRC-32C over the name of etcd's bucket and then, in order of revision, each kept record as etcd
 * would have stored it (see backend-record.ts). Records above the hashed revision are left out; of
 * those at or below the compaction only the ones count that are live at the hashed revision,
 * unless nothing is live.
 */
import { crc32c } from '@megaplane/base/crc32c';
import { RevisionOrder } from '@megaplane/store/revision-order';
import type { Store } from '@megaplane/store/store';
import {
  backendKeySize,
  backendValueSize,
  writeBackendKey,
  writeBackendValue,
} from '../codec/backend-record.ts';

const BUCKET = Buffer.from('key');
const SCRATCH_BYTES = 64 * 1024;
/** Bytes hashed per slice: about a millisecond. */
const SLICE_BYTES = 256 * 1024;

/** The hash of everything up to a revision, computed in slices. */
export class KvHash {
  readonly #store: Store;
  readonly #order: RevisionOrder;
  readonly revision: number;
  /** -1 when nothing was compacted. */
  readonly compactRevision: number;
  #isOrdered = false;
  #next = 0;
  #scratch: Buffer = Buffer.allocUnsafe(SCRATCH_BYTES);
  hash: number = crc32c(0, BUCKET, 0, BUCKET.length);

  /** Of nothing when `revision` is negative. */
  constructor(store: Store, revision: number, mode: 'hash' | 'compaction' = 'hash') {
    this.#store = store;
    this.#order = new RevisionOrder(store, revision, mode);
    this.revision = revision;
    this.compactRevision = this.#order.compactRevision;
  }

  /** One slice of work; true when `hash` is complete. */
  step(): boolean {
    if (!this.#isOrdered) {
      this.#isOrdered = this.#order.step();
      return false;
    }
    const order = this.#order;
    let bytes = 0;
    while (this.#next < order.length && bytes < SLICE_BYTES) {
      bytes += this.#add(order.refs[this.#next++]!);
    }
    if (this.#next < order.length) return false;
    order.end();
    return true;
  }

  #add(ref: number): number {
    const size = backendKeySize(this.#store, ref) + backendValueSize(this.#store, ref);
    if (size > this.#scratch.length) this.#scratch = Buffer.allocUnsafe(size * 2);
    const value = writeBackendKey(this.#store, ref, this.#scratch, 0);
    const end = writeBackendValue(this.#store, ref, this.#scratch, value);
    this.hash = crc32c(this.hash, this.#scratch, 0, end);
    return end;
  }

  /** Gives up before the end. */
  end(): void {
    this.#order.end();
  }
}
