// data plane: fills a store with records from the log, in bulk
/**
 * Records arrive as they were laid out in memory, so restoring one is a look-up, a copy and a
 * link. What a running store keeps in order at every step is put in order once, at the end: the
 * lists of live keys and tombstones are sorted and loaded, event logs are sorted only where a
 * snapshot brought records out of order, leases are attached from the live records.
 */
import { crc32 } from 'node:zlib';
import {
  ARENA_BYTES,
  FLAG_LEASE,
  HEADER_BYTES,
  KEY_BYTES_MAX,
  type Reserved,
  arenaOf,
  offsetOf,
} from '../record/arenas.ts';
import type { KeyClass } from '../record/classes.ts';
import { sortIds } from '../record/key-sort.ts';
import { LeaseClock } from '../lease/lease-clock.ts';
import {
  CONTROL_ALARM,
  CONTROL_BYTES,
  CONTROL_CLOSED,
  CONTROL_COMPACTION,
  CONTROL_CUT,
  CONTROL_DOCUMENT,
  CONTROL_DOCUMENT_PART,
  CONTROL_LEASE,
  CONTROL_LEASE_END,
  CONTROL_LEASE_LEFT,
  CONTROL_RESERVED,
  CONTROL_REVISION,
  CONTROL_TERM,
  DOCUMENT_PART_BYTES,
} from '../wal/log-batch.ts';
import type { ReadBatch } from './read-batch.ts';
import { type ShelfStart, recordSize } from './record-shelf.ts';
import type { Store } from '../mvcc/store.ts';
import type { Boot } from '../contract.ts';

// What the newest record of a key is.
const STATE_LIVE = 1;
const STATE_LEASED = 2;
const STATE_GRAVE = 3;

export class Restorer {
  readonly #store: Store;
  readonly #nowMs: number;
  lastRevision = 1;
  /** Revisions may have been shown up to here, 0 when all of them left a flushed record. */
  reserved = 0;
  #reservedUnlogged = 0;
  #boot: Boot = { high: 0, low: 0 };
  #isClosed = false;
  term = 1;
  records = 0;
  /** Wall clock of the frame that `apply` is given. */
  wallMs = 0;
  readonly #clock = new LeaseClock();
  #isOutOfOrder = false;
  /** Key id -> what its newest record is: looking at the records again would cost a miss each. */
  #states: Uint8Array = new Uint8Array(1024);
  #reserved: Reserved | null = null;
  #document: { number: number; content: Buffer; filled: number } | null = null;

  constructor(store: Store, nowMs: number) {
    this.#store = store;
    this.#nowMs = nowMs;
  }

  /** What a thread needs that lays records of so many bytes in arenas, ahead of this one. */
  reserve(bytes: number): ShelfStart {
    const { arenas, classes, keys } = this.#store;
    // A class may leave most of its last arena empty; the reader stops before it has none; and
    // what does not stay where it was read leaves holes there.
    const spare = (classes.all.length * 2 + 12) * ARENA_BYTES;
    this.#reserved = arenas.reserve(bytes + bytes / 8 + spare);
    const { low, high } = keys.seeds;
    const { prefixes } = classes;
    return { reserved: this.#reserved, prefixes, seedLow: low, seedHigh: high };
  }

  /** Nobody lays records in the reserved arenas any more. */
  endReserve(): void {
    if (this.#reserved !== null) this.#store.arenas.endReserve(this.#reserved);
    this.#reserved = null;
  }

  /** The thread that lays records there does not answer, but may still be at it. */
  abandonReserve(): void {
    this.#store.arenas.abandonReserve();
    this.#reserved = null;
  }

  /** Frames whose records lie in reserved arenas already. */
  adopt(batch: ReadBatch): void {
    const { arenas } = this.#store;
    const { control, refs, hashes, classes } = batch;
    for (let frame = 0; frame < batch.frameCount; frame++) {
      this.wallMs = batch.wallMs(frame);
      this.#controls(control, batch.controlTo(frame - 1), batch.controlTo(frame));
      const end = batch.recordsTo(frame);
      for (let index = batch.recordsTo(frame - 1); index < end; index++) {
        const ref = refs[index]!;
        const klass = classes[index]!;
        arenas.adopt(ref, klass);
        this.#add(ref, hashes[index]!, klass);
      }
    }
  }

  /** One payload: control messages up to `recordsAt`, then records; `at` is 16-byte aligned. */
  apply(bytes: Buffer, at: number, recordsAt: number, end: number): void {
    this.#controls(bytes, at, recordsAt);
    const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
    for (let record = recordsAt; record < end;) {
      record += this.#record(bytes, words, record);
    }
  }

  #controls(bytes: Buffer, from: number, to: number): void {
    let isStart = false;
    for (let message = from; message < to; message += CONTROL_BYTES) {
      if (bytes.readUInt32LE(message) === CONTROL_TERM) isStart = true;
    }
    this.#clock.frame(this.wallMs, isStart);
    for (let message = from; message < to; message += CONTROL_BYTES) {
      this.#control(bytes, message);
    }
  }

  #control(bytes: Buffer, at: number): void {
    const kind = bytes.readUInt32LE(at);
    const a = bytes.readDoubleLE(at + 8);
    const b = bytes.readDoubleLE(at + 16);
    const high = bytes.readUInt32LE(at + 24);
    const low = bytes.readUInt32LE(at + 28);
    const { leases } = this.#store;
    if (kind === CONTROL_LEASE || kind === CONTROL_LEASE_LEFT) {
      const isLeft = kind === CONTROL_LEASE_LEFT;
      const lease = leases.add(high, low, a, this.#nowMs + b, isLeft);
      if (isLeft) this.#clock.checkpoint(lease);
      else this.#clock.forget(lease);
    }
    if (kind === CONTROL_LEASE_END) {
      const lease = leases.find(high, low);
      this.#clock.forget(lease);
      if (lease !== 0) leases.remove(lease);
    }
    if (kind === CONTROL_COMPACTION && a > this.#store.compactRevision) this.#store.setCompacted(a);
    if (kind === CONTROL_CUT) this.#cut(a, low);
    if (kind === CONTROL_RESERVED) {
      this.reserved = Math.max(this.reserved, a);
      if (b === 1) this.#reservedUnlogged = Math.max(this.#reservedUnlogged, a);
    }
    if (kind === CONTROL_REVISION) this.lastRevision = Math.max(this.lastRevision, a);
    if (kind === CONTROL_ALARM) {
      this.#store.alarms.set({ kind: a, memberHigh: high, memberLow: low }, b === 1);
    }
    if (kind === CONTROL_TERM) {
      this.term = Math.max(this.term, a);
      this.#boot = { high, low };
    }
    if (kind === CONTROL_TERM || kind === CONTROL_CLOSED) {
      this.#isClosed = kind === CONTROL_CLOSED;
    }
    if (kind === CONTROL_DOCUMENT) this.#beginDocument(low, a);
    if (kind === CONTROL_DOCUMENT_PART) this.#continueDocument(bytes, at + 8);
  }

  #beginDocument(number: number, size: number): void {
    this.#document = { number, content: Buffer.alloc(size), filled: 0 };
    if (size === 0) this.#store.documents.delete(number);
  }

  /** A document counts once all of it is there. */
  #continueDocument(bytes: Buffer, at: number): void {
    const document = this.#document;
    if (document === null) return;
    const end = at + DOCUMENT_PART_BYTES;
    document.filled += bytes.copy(document.content, document.filled, at, end);
    if (document.filled < document.content.length) return;
    this.#store.documents.set(document.number, document.content);
    this.#document = null;
  }

  /** A snapshot lacks history of a prefix; of all of them if the prefix is not known any more. */
  #cut(revision: number, prefixCrc: number): void {
    const { all } = this.#store.classes;
    const named = all.filter((klass) => crc32(klass.prefix) === prefixCrc);
    for (const klass of named.length > 0 ? named : all) {
      klass.boundary = Math.max(klass.boundary, revision);
    }
  }

  #record(bytes: Buffer, words: Uint32Array, at: number): number {
    const { arenas, keys, classes } = this.#store;
    const word = at >> 2;
    const last = words[word + 9]!;
    const keyAt = at + (((last >>> 24) & FLAG_LEASE) === 0 ? HEADER_BYTES : HEADER_BYTES + 8);
    const keyTo = keyAt + (last & KEY_BYTES_MAX);
    const size = recordSize(words, word);
    keys.load(bytes, keyAt, keyTo);
    const { hash } = keys;
    const klass = classes.ofKey(bytes, keyAt, keyTo);
    const ref = arenas.allocate(klass, size);
    bytes.copy(arenas.bytes[arenaOf(ref)]!, offsetOf(ref), at, at + size);
    this.#add(ref, hash, klass);
    return size;
  }

  /** The latest time that a frame told. */
  get latestWallMs(): number {
    return this.#clock.wallMs;
  }

  /** A record lies in its arena: links it behind the older ones of its key. */
  #add(ref: number, hash: number, klass: number): void {
    const { arenas, keys, classes } = this.#store;
    const arena = arenaOf(ref);
    const revision = arenas.modRevision(ref);
    if (revision > arenas.lastRevision[arena]!) arenas.lastRevision[arena] = revision;
    if (revision > this.lastRevision) this.lastRevision = revision;
    this.records++;
    const head = keys.supersede(ref, hash, klass);
    const owner = classes.all[klass]!;
    arenas.setPrevious(ref, head);
    const wasLive = head !== 0 && !arenas.isTombstone(head);
    const isLive = !arenas.isTombstone(ref);
    this.#setState(arenas.keyId(ref), isLive, arenas.flags(ref));
    if (wasLive) owner.historyBytes += arenas.size(head);
    if (!isLive) owner.historyBytes += arenas.size(ref);
    // Nobody can ask for events below the boundary; the sweep wants to see superseding ones.
    if (revision < owner.boundary && head === 0 && isLive) return;
    const { events, liveness } = owner;
    if (events.next > 0 && !this.#isOutOfOrder) {
      const last = events.at(events.next - 1);
      const difference = revision - arenas.modRevision(last);
      // A snapshot brings the changes of one revision in the order of their keys.
      this.#isOutOfOrder =
        difference < 0 || (difference === 0 && arenas.sub(ref) < arenas.sub(last));
    }
    events.append(ref);
    if (wasLive !== isLive) liveness.append(revision, arenas.keyId(ref), isLive ? 1 : -1);
  }

  #setState(id: number, isLive: boolean, flags: number): void {
    if (id >= this.#states.length) {
      const grown = new Uint8Array(this.#states.length * 2);
      grown.set(this.#states);
      this.#states = grown;
    }
    const live = (flags & FLAG_LEASE) === 0 ? STATE_LIVE : STATE_LEASED;
    this.#states[id] = isLive ? live : STATE_GRAVE;
  }

  /** Did the machine go down under the last process, as far as can be told? */
  #wasCutOff({ high, low }: Boot): boolean {
    if (this.#isClosed) return false;
    const isKnown = this.#boot.high !== 0 || this.#boot.low !== 0;
    return !isKnown || this.#boot.high !== high || this.#boot.low !== low;
  }

  /**
   * All is in: puts the orders right. Revisions go on after the highest of what was seen, or, when
   * `boot` is another one than the last process had, of what may have been seen and was lost.
   */
  finish(boot: Boot): void {
    const store = this.#store;
    if (this.#isOutOfOrder) for (const klass of store.classes.all) this.#sortEvents(klass);
    const { keys, arenas } = store;
    const live = new Uint32Array(keys.size);
    const graves = new Uint32Array(keys.size);
    let liveCount = 0;
    let graveCount = 0;
    for (let id = 1; id < keys.idEnd; id++) {
      const state = this.#states[id]!;
      if (state === STATE_GRAVE) {
        graves[graveCount++] = id;
        continue;
      }
      live[liveCount++] = id;
      if (state !== STATE_LEASED) continue;
      const lease = store.leases.ofRecord(keys.head(id));
      if (lease !== 0) store.leases.attach(lease, id);
    }
    sortIds(keys, arenas, live, liveCount);
    sortIds(keys, arenas, graves, graveCount);
    store.live.load(live, liveCount);
    store.graves.load(graves, graveCount);
    this.#clock.settle(store.leases);
    store.batch.skipAll();
    const lost = this.#wasCutOff(boot) ? this.reserved : 0;
    const revision = Math.max(this.lastRevision, this.#reservedUnlogged, lost);
    store.restore(revision);
    if (revision > this.lastRevision && lost > 0) this.#forgetHistory(revision);
    // Keys of unlogged classes are gone without an event: whoever watched them must list again.
    for (const klass of store.classes.all) {
      if (klass.durability === 'none') klass.boundary = Math.max(klass.boundary, revision);
    }
  }

  /**
   * The end of the log may be lost. Whoever saw it must list again, not go on from revisions that
   * never happened now: their history counts as compacted, also after the next start.
   */
  #forgetHistory(revision: number): void {
    for (const klass of this.#store.classes.all) {
      if (klass.durability === 'fsync') continue;
      klass.boundary = Math.max(klass.boundary, revision);
      this.#store.batch.cut(klass.boundary, crc32(klass.prefix));
    }
  }

  #sortEvents(klass: KeyClass): void {
    const { arenas } = this.#store;
    const { events, liveness } = klass;
    events.sort();
    liveness.clear();
    for (let position = events.first; position < events.next; position++) {
      const ref = events.at(position);
      const isGone = arenas.isTombstone(ref);
      if (!isGone && arenas.version(ref) !== 1) continue;
      liveness.append(arenas.modRevision(ref), arenas.keyId(ref), isGone ? -1 : 1);
    }
  }
}
