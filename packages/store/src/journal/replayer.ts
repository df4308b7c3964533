// data plane: a store that follows the journal, group by group
/**
 * What the leader applied is applied again, in its order and at its revisions: records by revision
 * and place in it, leases before the records that name them and ends of leases behind. Each record
 * is held against what this store makes of it: members that differ find out here, before anybody
 * is shown a wrong state.
 */
import { FLAG_LEASE, FLAG_TOMBSTONE, HEADER_BYTES, KEY_BYTES_MAX } from '../record/arenas.ts';
import { recordSize } from '../recovery/record-shelf.ts';
import type { Store } from '../mvcc/store.ts';
import {
  CONTROL_ALARM,
  CONTROL_BYTES,
  CONTROL_COMPACTION,
  CONTROL_DOCUMENT,
  CONTROL_DOCUMENT_PART,
  CONTROL_LEASE,
  CONTROL_LEASE_END,
  CONTROL_LEASE_LEFT,
  DOCUMENT_PART_BYTES,
} from '../wal/log-batch.ts';

export class Replayer {
  readonly #store: Store;
  /** The group, laid out as records want to lie. */
  #bytes: Buffer = Buffer.alloc(0);
  #words: Uint32Array = new Uint32Array(0);
  #doubles: Float64Array = new Float64Array(0);
  #places: number[] = [];
  #document: { readonly number: number; readonly content: Buffer; filled: number } | null = null;
  records = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Applies and publishes a group. Returns why it does not follow what is here, or null. */
  apply(parts: readonly Buffer[], controlBytes: number, nowMs: number): string | null {
    const size = parts.reduce((sum, { length }) => sum + length, 0);
    if (controlBytes > size || controlBytes % CONTROL_BYTES !== 0) return 'its lengths are wrong';
    this.#reserve(size);
    let to = 0;
    for (const part of parts) to += part.copy(this.#bytes, to);
    this.#controls(controlBytes, nowMs);
    const wrong = this.#records(controlBytes, size);
    if (wrong !== null) return wrong;
    this.#ends(controlBytes);
    this.#store.publishReplayed();
    return null;
  }

  #reserve(size: number): void {
    if (size <= this.#bytes.length) return;
    const memory = new ArrayBuffer((Math.max(65_536, size * 2) + 15) & ~15);
    this.#bytes = Buffer.from(memory);
    this.#words = new Uint32Array(memory);
    this.#doubles = new Float64Array(memory);
  }

  /** What comes before the records. */
  #controls(end: number, nowMs: number): void {
    const store = this.#store;
    const bytes = this.#bytes;
    for (let at = 0; at < end; at += CONTROL_BYTES) {
      const kind = this.#words[at >> 2]!;
      const a = bytes.readDoubleLE(at + 8);
      const b = bytes.readDoubleLE(at + 16);
      const high = this.#words[(at >> 2) + 6]!;
      const low = this.#words[(at >> 2) + 7]!;
      if (kind === CONTROL_LEASE || kind === CONTROL_LEASE_LEFT) {
        store.leases.add(high, low, a, nowMs + b, kind === CONTROL_LEASE_LEFT);
      } else if (kind === CONTROL_ALARM) {
        store.alarms.set({ kind: a, memberHigh: high, memberLow: low }, b === 1);
      } else if (kind === CONTROL_DOCUMENT) {
        this.#document = { number: low, content: Buffer.alloc(a), filled: 0 };
        if (a === 0) this.#endDocument();
      } else if (kind === CONTROL_DOCUMENT_PART) this.#continueDocument(at + 8);
    }
  }

  #continueDocument(at: number): void {
    const document = this.#document;
    if (document === null) return;
    const { content } = document;
    document.filled += this.#bytes.copy(content, document.filled, at, at + DOCUMENT_PART_BYTES);
    if (document.filled >= content.length) this.#endDocument();
  }

  #endDocument(): void {
    const document = this.#document;
    this.#document = null;
    if (document === null) return;
    const { number, content } = document;
    if (content.length === 0) this.#store.documents.delete(number);
    else this.#store.documents.set(number, content);
    this.#store.onDocument(number);
  }

  /** Ends of leases, unless the lease was granted again; and compactions. */
  #ends(end: number): void {
    const store = this.#store;
    let compaction = -1;
    const ended = new Map<string, number>();
    for (let at = 0; at < end; at += CONTROL_BYTES) {
      const kind = this.#words[at >> 2]!;
      const high = this.#words[(at >> 2) + 6]!;
      const low = this.#words[(at >> 2) + 7]!;
      if (kind === CONTROL_COMPACTION) compaction = this.#bytes.readDoubleLE(at + 8);
      if (kind === CONTROL_LEASE_END) ended.set(`${high} ${low}`, at);
      if (kind === CONTROL_LEASE || kind === CONTROL_LEASE_LEFT) ended.delete(`${high} ${low}`);
    }
    for (const at of ended.values()) {
      const lease = store.leases.find(this.#words[(at >> 2) + 6]!, this.#words[(at >> 2) + 7]!);
      if (lease !== 0) store.leases.remove(lease);
    }
    if (compaction > store.compactRevision) {
      store.setCompacted(compaction);
      store.sweep.compact();
    }
  }

  /** Finds where records begin, in the order in which they were made. */
  #find(from: number, end: number): string | null {
    this.#places.length = 0;
    let isSorted = true;
    let last = -1;
    for (let at = from; at < end;) {
      if (at + HEADER_BYTES > end) return 'a record is cut off';
      this.#places.push(at);
      if (last >= 0 && this.#compare(last, at) > 0) isSorted = false;
      last = at;
      at += recordSize(this.#words, at >> 2);
      if (at > end) return 'a record is cut off';
    }
    if (!isSorted) this.#places.sort((a, b) => this.#compare(a, b));
    return null;
  }

  #compare(a: number, b: number): number {
    const revisions = this.#doubles[(a >> 3) + 1]! - this.#doubles[(b >> 3) + 1]!;
    return revisions === 0 ? this.#words[(a >> 2) + 8]! - this.#words[(b >> 2) + 8]! : revisions;
  }

  #records(from: number, end: number): string | null {
    const wrong = this.#find(from, end);
    if (wrong !== null) return wrong;
    const store = this.#store;
    let open = 0;
    for (const at of this.#places) {
      const revision = this.#doubles[(at >> 3) + 1]!;
      if (revision !== open) {
        if (open !== 0) store.commit();
        if (revision !== store.appliedRevision + 1) {
          return `revision ${revision} would follow ${store.appliedRevision}`;
        }
        store.begin();
        open = revision;
      }
      const different = this.#record(at, revision);
      if (different !== null) return different;
    }
    if (open !== 0) store.commit();
    this.records += this.#places.length;
    return null;
  }

  #record(at: number, revision: number): string | null {
    const store = this.#store;
    const word = at >> 2;
    const last = this.#words[word + 9]!;
    const flags = last >>> 24;
    const keySize = last & KEY_BYTES_MAX;
    const hasLease = (flags & FLAG_LEASE) !== 0;
    const keyAt = at + HEADER_BYTES + (hasLease ? 8 : 0);
    const valueAt = keyAt + ((keySize + 3) & ~3);
    const bytes = this.#bytes;
    let ref = 0;
    if ((flags & FLAG_TOMBSTONE) !== 0) ref = store.delete(bytes, keyAt, keyAt + keySize);
    else {
      const lease = hasLease
        ? store.leases.find(this.#words[word + 11]!, this.#words[word + 10]!)
        : 0;
      if (hasLease && lease === 0) return `a lease of revision ${revision} is not known`;
      const valueTo = valueAt + this.#words[word + 7]!;
      ref = store.put(bytes, keyAt, keyAt + keySize, bytes, valueAt, valueTo, lease);
    }
    const isSame =
      ref !== 0 &&
      store.createRevision(ref) === this.#doubles[(at >> 3) + 2]! &&
      store.version(ref) === this.#words[word + 6]!;
    return isSame ? null : `a record of revision ${revision} is another one here`;
  }
}
