// data plane: writes all kept records to a file, in slices, while the store goes on
/**
 * Old versions never change, so a snapshot "as of revision S" needs no copy of the store: what it
 * holds is found in slices, see snapshot-walk.ts, and goes into frames as it lies in memory. Of a
 * history with a budget the newest part is written, as if it had been cut there: it is for clients
 * that come back after a start, which saw the newest. Until it is done the sweep is held, so that
 * nothing that S needs is freed or moved. The log is cut at S; once the snapshot is named the
 * segments before the cut are removed.
 */
import { crc32 } from 'node:zlib';
import { arenaOf, offsetOf } from '../record/arenas.ts';
import type { KeyClass } from '../record/classes.ts';
import { FRAME_HEADER_BYTES } from '../wal/frame.ts';
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
} from '../wal/log-batch.ts';
import type { LeaseRows } from '../lease/lease-rows.ts';
import { SLOTS } from '../wal/log-files.ts';
import { layUnpacked } from '../mvcc/moving.ts';
import { SnapshotWalk } from './snapshot-walk.ts';
import type { Store } from '../mvcc/store.ts';
import type { Boot } from '../contract.ts';

/** Payload of a frame of a snapshot, unless one record is larger: a slice copies no more. */
const SNAPSHOT_FRAME_BYTES: number = 2 * 1024 * 1024;
/** The same of leases and other small messages: a millisecond. */
const CONTROL_FRAME_BYTES = 512 * 1024;
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

/** What a snapshot needs of the log that it shortens. */
export interface SnapshotLog {
  readonly bytesSinceSnapshot: number;
  readonly snapshotBytes: number;
  readonly hasUnlogged: boolean;
  /** Revisions up to here may be shown without a flushed record; 0 when all have one. */
  readonly reserved: number;
  readonly busySlots: number;
  /** Set by the snapshots: called when the worker has finished one, or found it removed. */
  onSnapshot: () => void;
  /** The time that leases go by. */
  readonly nowMs: number;
  /** Begins a new segment: what was applied up to now stays in the ones before. */
  cut(): void;
  /** Memory for the next frame, its payload behind FRAME_HEADER_BYTES; null while all is in use. */
  snapshotFrame(): Buffer | null;
  giveSnapshot(size: number, controlSize: number, revision: number, goesOn: boolean): void;
  endSnapshot(): void;
}

export class Snapshots {
  readonly #store: Store;
  readonly #log: SnapshotLog;
  readonly #term: number;
  #isWanted = false;
  #isWriting = false;
  #isEnding = false;
  #revision = 0;
  /** The memory that is being filled, null between two frames. */
  #frame: Buffer | null = null;
  #filled = 0;
  #controlSize = 0;
  /** Control messages that are not written yet. */
  #control: Buffer[] = [];
  /** Leases as they were at the start, null once all of them are written. */
  #leases: LeaseRows | null = null;
  #leaseNext = 0;
  #leasesMs = 0;
  /** What is written, and how much of what it found last. */
  #walk: SnapshotWalk | null = null;
  #next = 0;
  /** Bytes of the next record that are in earlier frames. */
  #written = 0;
  readonly #boot: Boot;
  /** Class -> the revision before which history is left out. */
  #cuts: readonly number[] = [];

  /** `boot` names the running boot of the machine. */
  constructor(store: Store, log: SnapshotLog, term: number, boot: Boot) {
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
    let kept = this.#store.arenas.rawBytes;
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
    this.#filled = 0;
    this.#next = 0;
    this.#cuts = store.classes.all.map((klass) => this.#cutOf(klass));
    this.#walk = new SnapshotWalk(store, this.#cuts);
    this.#control = this.#controlMessages();
    this.#leases = store.leases.copyRows();
    this.#leaseNext = 1;
    this.#leasesMs = this.#log.nowMs;
    store.leases.markNoted();
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

  /** Fills at most one frame. */
  #writeSome(): void {
    this.#frame ??= this.#log.snapshotFrame();
    const walk = this.#walk;
    if (this.#frame === null || walk === null || !this.#fillControl(this.#frame)) return;
    if (this.#next === walk.length) {
      this.#next = 0;
      if (!walk.collect()) {
        this.#end();
        return;
      }
    }
    while (this.#next < walk.length) if (!this.#writeRun(walk, this.#frame)) return;
  }

  #end(): void {
    this.#send(false);
    this.#log.endSnapshot();
    this.#store.sweep.release();
    this.#walk = null;
    this.#isWriting = false;
    this.#isEnding = true;
  }

  /** False when a frame was sent and the rest must wait for the next one. */
  #fillControl(frame: Buffer): boolean {
    if (this.#control.length === 0 && this.#leases === null) return true;
    const end = CONTROL_FRAME_BYTES - CONTROL_BYTES;
    for (const message of this.#control.splice(0, Math.floor(end / CONTROL_BYTES))) {
      this.#filled += message.copy(frame, FRAME_HEADER_BYTES + this.#filled);
    }
    if (this.#control.length === 0) this.#fillLeases(frame, end);
    this.#controlSize = this.#filled;
    if (this.#control.length === 0 && this.#leases === null) return true;
    this.#send(false);
    return false;
  }

  /** Leases up to `end` of the frame; there may be a million. */
  #fillLeases(frame: Buffer, end: number): void {
    const rows = this.#leases;
    if (rows === null) return;
    for (; this.#leaseNext < rows.end && this.#filled <= end; this.#leaseNext++) {
      const lease = this.#leaseNext;
      if (!rows.isUsed(lease)) continue;
      const at = FRAME_HEADER_BYTES + this.#filled;
      const ttl = rows.ttlSeconds(lease);
      // Renewals since the start are in the log behind this.
      const left = Math.min(ttl * 1000, Math.max(0, rows.deadlineMs(lease) - this.#leasesMs));
      writeControl(frame, at, CONTROL_LEASE_LEFT, ttl, left, rows.high(lease), rows.low(lease));
      this.#filled += CONTROL_BYTES;
    }
    if (this.#leaseNext === rows.end) this.#leases = null;
  }

  /** Writes the next records that lie side by side; false when the frame was sent. */
  #writeRun(walk: SnapshotWalk, frame: Buffer): boolean {
    const { arenas } = this.#store;
    const { refs, length } = walk;
    const first = refs[this.#next]!;
    const arena = arenaOf(first);
    const room = SNAPSHOT_FRAME_BYTES - this.#filled;
    if (arenas.isPacked(first)) return this.#writeUnpacked(first, frame, room);
    let size = arenas.size(first) - this.#written;
    // Frames of whole records can be taken one by one when they are read.
    if (size > room) {
      if (this.#written === 0 && this.#filled > 0) this.#send(false);
      else this.#writePart(first, frame, Math.min(size, room));
      return false;
    }
    let next = this.#next + 1;
    for (; next < length; next++) {
      const ref = refs[next]!;
      if (ref !== first + ((this.#written + size) >>> 4) || arenaOf(ref) !== arena) break;
      if (arenas.isPacked(ref)) break;
      const more = arenas.size(ref);
      if (size + more > room) break;
      size += more;
    }
    const from = offsetOf(first) + this.#written;
    arenas.bytes[arena]!.copy(frame, FRAME_HEADER_BYTES + this.#filled, from, from + size);
    this.#filled += size;
    this.#next = next;
    this.#written = 0;
    return true;
  }

  /** Files have records as they were put; none that is packed is larger than a frame. */
  #writeUnpacked(ref: number, frame: Buffer, room: number): boolean {
    const size = this.#store.arenas.rawSize(ref);
    if (size > room) {
      this.#send(false);
      return false;
    }
    layUnpacked(this.#store.arenas, ref, frame, FRAME_HEADER_BYTES + this.#filled);
    this.#filled += size;
    this.#next++;
    return true;
  }

  /** A record that is larger than a frame goes on in the next one. */
  #writePart(ref: number, frame: Buffer, count: number): void {
    const from = offsetOf(ref) + this.#written;
    const bytes = this.#store.arenas.bytes[arenaOf(ref)]!;
    bytes.copy(frame, FRAME_HEADER_BYTES + this.#filled, from, from + count);
    this.#filled += count;
    this.#written += count;
    this.#send(true);
  }

  #send(goesOn: boolean): void {
    this.#log.giveSnapshot(this.#filled, this.#controlSize, this.#revision, goesOn);
    this.#frame = null;
    this.#filled = 0;
    this.#controlSize = 0;
  }
}
