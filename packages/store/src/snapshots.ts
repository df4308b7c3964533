// data plane: writes all kept records to a file, in slices, while the store goes on
/**
 * Old versions never change, so a snapshot "as of revision S" needs no copy: keys are walked in
 * order, live and buried ones merged, and of each chain everything up to S is written, oldest
 * first. Of a history with a budget the newest part is written, as if it had been cut there: it is
 * for clients that come back after a start, which saw the newest. Until it is done the sweep is
 * held, so that nothing that S needs is freed or moved. The log is cut at S; once the snapshot is
 * named the segments before the cut are removed.
 */
import { crc32 } from 'node:zlib';
import { arenaOf, offsetOf } from './arenas.ts';
import { FRAME_BYTES_MAX, FRAME_HEADER_BYTES } from './frame.ts';
import type { KeyClass } from './classes.ts';
import type { Log } from './log.ts';
import {
  CONTROL_ALARM,
  CONTROL_BYTES,
  CONTROL_COMPACTION,
  CONTROL_CUT,
  CONTROL_LEASE_LEFT,
  CONTROL_RESERVED,
  CONTROL_REVISION,
  CONTROL_TERM,
  documentMessages,
  writeControl,
} from './log-batch.ts';
import { SLOTS } from './log-files.ts';
import type { Boot } from './restorer.ts';
import type { Store } from './store.ts';

/** Keys per slice: a millisecond or two. */
const SLICE_KEYS = 500;
/**
 * A snapshot is written when the files hold this much that it would not, and as much of it as it
 * would hold: so reading at the next start and writing now each cost twice at most.
 */
const SNAPSHOT_GARBAGE_BYTES_MIN: number = 256 * 1024 * 1024;
/** A log that has grown by more is replaced before the store closes: the next start is faster. */
const CLOSING_LOG_BYTES_MIN: number = 32 * 1024 * 1024;
/** Above this a snapshot would hold the stop up for longer than people wait. */
const CLOSING_BYTES_MAX: number = 1024 * 1024 * 1024;
/** Share of a history budget that a snapshot keeps. */
const HISTORY_SHARE = 1 / 4;
/** Slots that the snapshot leaves to the log. */
const SLOTS_LEFT = 2;

export class Snapshots {
  readonly #store: Store;
  readonly #log: Log;
  readonly #term: number;
  #isWanted = false;
  #isWriting = false;
  #isEnding = false;
  #revision = 0;
  #payload: Buffer = Buffer.alloc(0);
  #filled = 0;
  #controlSize = 0;
  /** Control messages that are not written yet. */
  #control: Buffer[] = [];
  /** The first key that was not looked at; null when all were. */
  #nextKey: Buffer | null = null;
  /** Refs to write, the next one last; and bytes of it that are in earlier frames. */
  readonly #refs: number[] = [];
  readonly #boot: Boot;
  #written = 0;
  /** Class -> the revision before which history is left out. */
  #cuts: readonly number[] = [];

  /** `boot` names the running boot of the machine. */
  constructor(store: Store, log: Log, term: number, boot: Boot) {
    this.#store = store;
    this.#log = log;
    this.#term = term;
    this.#boot = boot;
    log.onSnapshot = () => {
      this.#isEnding = false;
    };
  }

  /** Asks for a last one where the next start is worth it; then call `step` until it is done. */
  beginLast(): void {
    const isWorth = this.#log.bytesSinceSnapshot > CLOSING_LOG_BYTES_MIN;
    if (isWorth && this.#keptBytes() < CLOSING_BYTES_MAX) this.begin();
  }

  /** Bytes of records that a snapshot would hold now. */
  #keptBytes(): number {
    let kept = this.#store.arenas.liveBytes;
    for (const { historyBytes, historyBytesMax } of this.#store.classes.all) {
      kept -= Math.max(0, historyBytes - historyBytesMax * HISTORY_SHARE);
    }
    return kept;
  }

  #cutOf({ events, boundary, historyBytes, historyBytesMax }: KeyClass): number {
    const share = (historyBytesMax * HISTORY_SHARE) / historyBytes;
    if (!(share < 1)) return boundary;
    const position = events.next - Math.floor((events.next - events.first) * share);
    if (position === events.next) return this.#revision;
    return Math.max(boundary, this.#store.arenas.modRevision(events.at(position)));
  }

  get isRunning(): boolean {
    return this.#isWanted || this.#isWriting || this.#isEnding;
  }

  /** Asks for one: it starts with the next slice, unless one is running. */
  begin(): void {
    this.#isWanted = true;
  }

  #start(): void {
    const store = this.#store;
    if (this.#isEnding || !store.batch.isDrained) return;
    if (this.#log.busySlots > SLOTS - SLOTS_LEFT) return;
    this.#isWanted = false;
    this.#log.cut();
    store.sweep.hold();
    this.#isWriting = true;
    this.#revision = store.appliedRevision;
    this.#payload = Buffer.alloc(FRAME_BYTES_MAX);
    this.#filled = 0;
    this.#nextKey = Buffer.alloc(0);
    this.#cuts = store.classes.all.map((klass) => this.#cutOf(klass));
    this.#control = this.#controlMessages();
  }

  #controlMessages(): Buffer[] {
    const store = this.#store;
    const messages: Buffer[] = [];
    const add = (kind: number, a: number, b: number, high: number, low: number): void => {
      const message = Buffer.alloc(CONTROL_BYTES);
      writeControl(message, 0, kind, a, b, high, low);
      messages.push(message);
    };
    add(CONTROL_TERM, this.#term, 0, this.#boot.high, this.#boot.low);
    if (store.compactRevision >= 0) add(CONTROL_COMPACTION, store.compactRevision, 0, 0, 0);
    for (const klass of store.classes.all) {
      const cut = this.#cuts[klass.number]!;
      if (cut > store.compactRevision) add(CONTROL_CUT, cut, 0, 0, crc32(klass.prefix));
    }
    for (const { kind, memberHigh, memberLow } of store.alarms.list()) {
      add(CONTROL_ALARM, kind, 1, memberHigh, memberLow);
    }
    // The segment that told how far revisions are given away is removed with the others.
    const { reserved, hasUnlogged } = this.#log;
    if (reserved > 0) add(CONTROL_RESERVED, reserved, hasUnlogged ? 1 : 0, 0, 0);
    // Compacted away, the records no longer tell how far revisions have come.
    add(CONTROL_REVISION, store.appliedRevision, 0, 0, 0);
    for (const [number, content] of store.documents) {
      const parts = documentMessages(number, content);
      for (let at = 0; at < parts.length; at += CONTROL_BYTES) {
        messages.push(parts.subarray(at, at + CONTROL_BYTES));
      }
    }
    const { leases } = store;
    leases.eachByNumber((lease) => {
      const ttl = leases.ttlSeconds(lease);
      const left = Math.max(0, leases.remainingMs(lease, this.#log.nowMs));
      add(CONTROL_LEASE_LEFT, ttl, left, leases.idHigh(lease), leases.idLow(lease));
      leases.markNoted(lease);
    });
    return messages;
  }

  /**
   * One slice, or the start when the log has grown enough. True where another may follow at once:
   * a snapshot is being written, and its frames do not wait for the disk.
   */
  step(): boolean {
    if (this.#isEnding) return false;
    if (!this.#isWriting) {
      const kept = this.#keptBytes();
      const garbage = this.#log.bytesSinceSnapshot + this.#log.snapshotBytes - kept;
      if (garbage > Math.max(SNAPSHOT_GARBAGE_BYTES_MIN, kept)) this.begin();
      if (this.#isWanted) this.#start();
      return this.#isWriting;
    }
    if (this.#log.busySlots > SLOTS - SLOTS_LEFT) return false;
    this.#writeSome();
    return this.#isWriting;
  }

  #writeSome(): void {
    if (!this.#fillControl()) return;
    if (this.#refs.length === 0) this.#collect();
    while (this.#refs.length > 0) {
      if (!this.#writeRecord()) return;
    }
    if (this.#nextKey !== null) return;
    this.#send(false);
    this.#log.endSnapshot();
    this.#store.sweep.release();
    this.#payload = Buffer.alloc(0);
    this.#isWriting = false;
    this.#isEnding = true;
  }

  /** False when a frame was sent and the rest must wait for the next slice. */
  #fillControl(): boolean {
    if (this.#control.length === 0) return true;
    const count = Math.min(this.#control.length, FRAME_BYTES_MAX / CONTROL_BYTES);
    for (const message of this.#control.splice(0, count)) {
      this.#filled += message.copy(this.#payload, this.#filled);
    }
    this.#controlSize = this.#filled;
    if (this.#control.length === 0) return true;
    this.#send(false);
    return false;
  }

  /** Puts the records of the next keys on the list, so that the first is written first. */
  #collect(): void {
    const { keys, live, graves, arenas, classes } = this.#store;
    if (this.#nextKey === null) return;
    keys.load(this.#nextKey, 0, this.#nextKey.length);
    live.seek();
    graves.seek();
    const refs = this.#refs;
    let id = 0;
    for (let count = 0; count < SLICE_KEYS; count++) {
      id = this.#nextId();
      if (id === 0) break;
      // What the log does not hold must not come back from a snapshot either, older than it was.
      if (classes.all[keys.classOf(id)]!.durability === 'none') continue;
      const first = refs.length;
      const cut = this.#cuts[keys.classOf(id)]!;
      for (let ref = keys.head(id); ref !== 0; ref = arenas.previous(ref)) {
        const revision = arenas.modRevision(ref);
        if (revision < cut && arenas.isTombstone(ref)) break;
        if (revision <= this.#revision) refs.push(ref);
        if (revision <= cut) break;
      }
      // The list is reversed as a whole below; within a key the oldest must come first.
      reverse(refs, first, refs.length);
    }
    this.#nextKey = id === 0 ? null : keyAfter(this.#store, id);
    reverse(refs, 0, refs.length);
  }

  #nextId(): number {
    const { keys, live, graves } = this.#store;
    const liveId = live.current();
    const graveId = graves.current();
    if (liveId === 0 && graveId === 0) return 0;
    const isLive = graveId === 0 || (liveId !== 0 && keys.compareIds(liveId, graveId) < 0);
    if (isLive) live.slot++;
    else graves.slot++;
    return isLive ? liveId : graveId;
  }

  /** Writes the last ref of the list; false when it waits for room in the next slice. */
  #writeRecord(): boolean {
    const { arenas } = this.#store;
    const ref = this.#refs.at(-1)!;
    const size = arenas.size(ref) - this.#written;
    const room = FRAME_BYTES_MAX - this.#filled;
    // Frames of whole records can be taken one by one when they are read.
    if (size > room && this.#written === 0 && this.#filled > 0) {
      this.#send(false);
      return false;
    }
    const from = offsetOf(ref) + this.#written;
    const count = Math.min(size, room);
    arenas.bytes[arenaOf(ref)]!.copy(this.#payload, this.#filled, from, from + count);
    this.#filled += count;
    if (count === size) {
      this.#refs.pop();
      this.#written = 0;
      return true;
    }
    this.#written += count;
    this.#send(true);
    return false;
  }

  #send(goesOn: boolean): void {
    const slot = this.#log.snapshotSlot();
    this.#payload.copy(slot, FRAME_HEADER_BYTES, 0, this.#filled);
    this.#log.giveSnapshot(this.#filled, this.#controlSize, this.#revision, goesOn);
    this.#filled = 0;
    this.#controlSize = 0;
  }
}

function keyAfter(store: Store, id: number): Buffer {
  const ref = store.keys.head(id);
  const key = store.record(ref).subarray(store.keyAt(ref), store.keyTo(ref));
  return Buffer.concat([key, Buffer.from([0])]);
}

function reverse(list: number[], from: number, to: number): void {
  for (let i = from, j = to - 1; i < j; i++, j--) {
    const one = list[i]!;
    list[i] = list[j]!;
    list[j] = one;
  }
}
