// data plane: what the log has not taken yet
/**
 * Records wait for the log where they are, in their arenas: a class remembers the places from
 * which its bytes are unlogged. Everything else that must survive (leases, compactions) waits in
 * `control`, as small messages. `take` moves all of it into a frame. See frame.ts for the bytes.
 */
import type { Arenas } from '../record/arenas.ts';
import type { KeyClasses } from '../record/classes.ts';

export const CONTROL_LEASE = 1;
export const CONTROL_LEASE_END = 2;
/** What is left of a lease now; a renewal that follows is logged. */
export const CONTROL_LEASE_LEFT = 12;
export const CONTROL_COMPACTION = 3;
/**
 * Revisions up to this one may have been given out without a record that is on the disk: by keys
 * that are not logged (second number 1), else only if the machine went down (0).
 */
export const CONTROL_RESERVED = 4;
/** How often the directory was opened; the halves name the boot of the machine, 0 if unknown. */
export const CONTROL_TERM = 5;
/** A class's own cut of history; the class is named by the CRC-32 of its prefix. */
export const CONTROL_CUT = 6;
/** An alarm: kind, 1 raised or 0 taken back, the member's id. */
export const CONTROL_ALARM = 7;
/** Revisions go on after this one, whatever the records say. */
export const CONTROL_REVISION = 8;
/** A document begins: its number and its size in bytes; DOCUMENT_PART messages follow. */
export const CONTROL_DOCUMENT = 9;
/** The next 24 bytes of the document that began last, from byte 8 of the message on. */
export const CONTROL_DOCUMENT_PART = 10;
/** The process ended in order: everything before is on the disk. */
export const CONTROL_CLOSED = 11;
/** Every control message: u32 kind, u32, f64, f64, u32, u32. */
export const CONTROL_BYTES = 32;
export const DOCUMENT_PART_BYTES = 24;

export class LogBatch {
  readonly #arenas: Arenas;
  readonly #classes: KeyClasses;
  readonly #isLogged: boolean;
  #control: Buffer = Buffer.alloc(CONTROL_BYTES * 64);
  #controlSize = 0;
  /** Counts what was noted for the log. */
  changes = 0;
  /** Something applied is not published. */
  isPending = false;
  /** Something in here belongs to a class that promises a flush. */
  needsFlush = false;

  constructor(arenas: Arenas, classes: KeyClasses, isLogged: boolean) {
    this.#arenas = arenas;
    this.#classes = classes;
    this.#isLogged = isLogged;
  }

  /** Room for a record of a class, noted as unlogged where the class is logged. */
  allocate(klass: number, size: number): number {
    const owner = this.#classes.all[klass]!;
    const before = this.#arenas.open[klass]!;
    const ref = this.#arenas.allocate(klass, size);
    this.changes++;
    if (owner.durability === 'none') return ref;
    const arena = this.#arenas.open[klass]!;
    if (arena !== before) {
      // What was taken whole must not be named any more: its arena may be freed and reused.
      const last = owner.unlogged.length - 2;
      if (last >= 0 && owner.unlogged[last + 1] === this.#arenas.used[before]) {
        owner.unlogged.length = last;
      }
      owner.unlogged.push(arena, 0);
    }
    if (owner.durability === 'fsync') this.needsFlush = true;
    return ref;
  }

  lease(idHigh: number, idLow: number, ttlSeconds: number, remainingMs: number): void {
    this.#message(CONTROL_LEASE, ttlSeconds, remainingMs, idHigh, idLow);
  }

  leaseLeft(idHigh: number, idLow: number, ttlSeconds: number, leftMs: number): void {
    this.#message(CONTROL_LEASE_LEFT, ttlSeconds, leftMs, idHigh, idLow);
  }

  leaseEnd(idHigh: number, idLow: number): void {
    this.#message(CONTROL_LEASE_END, 0, 0, idHigh, idLow);
  }

  compaction(revision: number): void {
    this.#message(CONTROL_COMPACTION, revision, 0, 0, 0);
  }

  /** Must be on the disk before revisions of it are shown. */
  reserve(revision: number, hasUnlogged: boolean): void {
    this.#message(CONTROL_RESERVED, revision, hasUnlogged ? 1 : 0, 0, 0);
    this.needsFlush = true;
  }

  term(term: number, bootHigh: number, bootLow: number): void {
    this.#message(CONTROL_TERM, term, 0, bootHigh, bootLow);
  }

  closed(): void {
    this.#message(CONTROL_CLOSED, 0, 0, 0, 0);
  }

  /** History of a class begins here; the class is named by the CRC-32 of its prefix. */
  cut(revision: number, prefixCrc: number): void {
    this.#message(CONTROL_CUT, revision, 0, 0, prefixCrc);
  }

  alarm(kind: number, isRaised: boolean, memberHigh: number, memberLow: number): void {
    this.#message(CONTROL_ALARM, kind, isRaised ? 1 : 0, memberHigh, memberLow);
  }

  document(number: number, content: Buffer): void {
    this.changes++;
    if (!this.#isLogged) return;
    const messages = documentMessages(number, content);
    this.#reserveControl(messages.length);
    messages.copy(this.#control, this.#controlSize);
    this.#controlSize += messages.length;
    this.isPending = true;
    // Whoever may do what must not come back after it was taken away.
    this.needsFlush = true;
  }

  #reserveControl(size: number): void {
    while (this.#controlSize + size > this.#control.length) {
      this.#control = Buffer.concat([this.#control, Buffer.alloc(this.#control.length)]);
    }
  }

  #message(kind: number, a: number, b: number, high: number, low: number): void {
    this.changes++;
    if (!this.#isLogged) return;
    this.#reserveControl(CONTROL_BYTES);
    const at = this.#controlSize;
    writeControl(this.#control, at, kind, a, b, high, low);
    this.#controlSize = at + CONTROL_BYTES;
    this.isPending = true;
    if (this.#classes.all[0]!.durability === 'fsync') this.needsFlush = true;
  }

  get controlSize(): number {
    return this.#controlSize;
  }

  /** Bytes of records that wait for the log. */
  get recordBytes(): number {
    let size = 0;
    for (const { unlogged } of this.#classes.all) {
      for (let i = 0; i < unlogged.length; i += 2) {
        size += this.#arenas.used[unlogged[i]!]! - unlogged[i + 1]!;
      }
    }
    return size;
  }

  /** What was seen up to now is shown only when the log has answered once more. */
  touch(): void {
    this.changes++;
    this.isPending = true;
  }

  /** Moves control messages into `target`, as many as fit; returns the bytes written. */
  takeControl(target: Buffer, at: number): number {
    const room = Math.floor((target.length - at) / CONTROL_BYTES) * CONTROL_BYTES;
    const size = Math.min(this.#controlSize, room);
    this.#control.copy(target, at, 0, size);
    this.#control.copy(this.#control, 0, size, this.#controlSize);
    this.#controlSize -= size;
    return size;
  }

  /**
   * Moves unlogged record bytes into `target` from `at` on, up to its end; returns the new end.
   * What does not fit stays; `isDrained` tells.
   */
  takeRecords(target: Buffer, at: number): number {
    let to = at;
    for (const klass of this.#classes.all) {
      const spans = klass.unlogged;
      let done = 0;
      for (let i = 0; i < spans.length && to < target.length; i += 2) {
        const arena = spans[i]!;
        const from = spans[i + 1]!;
        const size = Math.min(this.#arenas.used[arena]! - from, target.length - to);
        this.#arenas.bytes[arena]!.copy(target, to, from, from + size);
        to += size;
        spans[i + 1] = from + size;
        const isWhole = from + size === this.#arenas.used[arena]!;
        if (isWhole && i + 2 < spans.length) done = i + 2;
      }
      if (done > 0) spans.splice(0, done);
    }
    return to;
  }

  /** Nothing is left for the log to take. */
  get isDrained(): boolean {
    if (this.#controlSize > 0) return false;
    for (const klass of this.#classes.all) {
      const spans = klass.unlogged;
      for (let i = 0; i < spans.length; i += 2) {
        if (spans[i + 1]! < this.#arenas.used[spans[i]!]!) return false;
      }
    }
    return true;
  }

  /** Replay filled the arenas with bytes that the log has: only what comes now is new. */
  skipAll(): void {
    for (const klass of this.#classes.all) {
      const arena = this.#arenas.open[klass.number]!;
      klass.unlogged.length = 0;
      if (arena !== 0 && klass.durability !== 'none') {
        klass.unlogged.push(arena, this.#arenas.used[arena]!);
      }
    }
    this.#controlSize = 0;
    this.isPending = false;
    this.needsFlush = false;
  }
}

/** The messages that carry a document. */
export function documentMessages(number: number, content: Buffer): Buffer {
  const count = Math.ceil(content.length / DOCUMENT_PART_BYTES);
  const messages = Buffer.alloc((1 + count) * CONTROL_BYTES);
  writeControl(messages, 0, CONTROL_DOCUMENT, content.length, 0, 0, number);
  for (let part = 0; part < count; part++) {
    const at = (1 + part) * CONTROL_BYTES;
    messages.writeUInt32LE(CONTROL_DOCUMENT_PART, at);
    content.copy(messages, at + 8, part * DOCUMENT_PART_BYTES, (part + 1) * DOCUMENT_PART_BYTES);
  }
  return messages;
}

/** One control message. */
export function writeControl(
  bytes: Buffer,
  at: number,
  kind: number,
  a: number,
  b: number,
  high: number,
  low: number,
): void {
  bytes.writeUInt32LE(kind, at);
  bytes.writeUInt32LE(0, at + 4);
  bytes.writeDoubleLE(a, at + 8);
  bytes.writeDoubleLE(b, at + 16);
  bytes.writeUInt32LE(high, at + 24);
  bytes.writeUInt32LE(low, at + 28);
}
