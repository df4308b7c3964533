// shell: makes a data directory out of records from elsewhere
/**
 * Writes one snapshot file, which is all that a data directory needs: the next start reads it like
 * one of its own. Records may come in any order of revisions as long as those of one key come
 * oldest first. The file gets its name when it is whole, so a directory that was not finished is
 * not taken for a store.
 */
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { makeDirectory } from '@megaplane/base/directory';
import {
  Arenas,
  FLAG_LEASE,
  FLAG_TOMBSTONE,
  HEADER_BYTES,
  KEY_BYTES_MAX,
} from '../record/arenas.ts';
import {
  FLAG_GOES_ON,
  FORMAT_VERSION,
  FRAME_BYTES_MAX,
  FRAME_HEADER_BYTES,
  KIND_SNAPSHOT,
  encodeFileHeader,
  sealFrame,
  writeFrameHeader,
} from '../wal/frame.ts';
import {
  CONTROL_ALARM,
  CONTROL_BYTES,
  CONTROL_COMPACTION,
  CONTROL_LEASE_LEFT,
  CONTROL_REVISION,
  CONTROL_TERM,
  documentMessages,
  writeControl,
} from '../wal/log-batch.ts';
import { snapshotName } from '../wal/log-files.ts';

/** One version of one key. */
export interface ForeignRecord {
  readonly key: Buffer;
  readonly value: Buffer;
  readonly modRevision: number;
  /** Place within the revision. */
  readonly sub: number;
  readonly createRevision: number;
  readonly version: number;
  readonly leaseHigh: number;
  readonly leaseLow: number;
  readonly isTombstone: boolean;
}

export interface ForeignLease {
  readonly idHigh: number;
  readonly idLow: number;
  readonly ttlSeconds: number;
  readonly remainingMs: number;
}

/** Throws when something is in the directory; one that is not there is fine. */
export function refuseUsed(dir: string): void {
  const [first] = existsSync(dir) ? readdirSync(dir) : [];
  if (first === undefined) return;
  throw new Error(`${dir} is not empty (${first} is in it); choose a directory that is new`);
}

export class SnapshotWriter {
  readonly #dir: string;
  readonly #path: string;
  readonly #isNewDir: boolean;
  readonly #fd: number;
  readonly #frame: Buffer = Buffer.alloc(FRAME_HEADER_BYTES + FRAME_BYTES_MAX);
  readonly #clusterId: Buffer = randomBytes(8);
  readonly #memberId: Buffer = randomBytes(8);
  #filled = 0;
  #controlSize = 0;
  #record: Buffer = Buffer.alloc(64 * 1024);
  #chain = 0;
  #number = 0;
  #lastRevision = 1;
  /** Bytes written so far. */
  bytes = 0;

  /** Makes the directory; throws when something is in it. */
  constructor(dir: string) {
    this.#dir = dir;
    this.#isNewDir = !existsSync(dir);
    if (this.#isNewDir) makeDirectory(dir);
    refuseUsed(dir);
    this.#path = join(dir, 'snapshot.part');
    this.#fd = openSync(this.#path, 'wx', 0o600);
    const header = this.#header();
    this.#write(header, header.length);
    this.#control(CONTROL_TERM, 1, 0, 0, 0);
  }

  #header(): Buffer {
    return encodeFileHeader({
      version: FORMAT_VERSION,
      kind: KIND_SNAPSHOT,
      segment: 0,
      firstRevision: 0,
      clusterId: this.#clusterId,
      memberId: this.#memberId,
      chain: this.#chain,
    });
  }

  /** All of these come before the first record. */
  compaction(revision: number): void {
    this.#control(CONTROL_COMPACTION, revision, 0, 0, 0);
  }

  /** Revisions go on after this one at least. */
  revision(revision: number): void {
    this.#control(CONTROL_REVISION, revision, 0, 0, 0);
    this.#lastRevision = Math.max(this.#lastRevision, revision);
  }

  lease({ idHigh, idLow, ttlSeconds, remainingMs }: ForeignLease): void {
    this.#control(CONTROL_LEASE_LEFT, ttlSeconds, remainingMs, idHigh, idLow);
  }

  /** See `Store.documents`. */
  document(number: number, content: Buffer): void {
    const messages = documentMessages(number, content);
    for (let at = 0; at < messages.length; at += CONTROL_BYTES) {
      if (this.#filled + CONTROL_BYTES > FRAME_BYTES_MAX) this.#send(false);
      messages.copy(this.#frame, FRAME_HEADER_BYTES + this.#filled, at, at + CONTROL_BYTES);
      this.#filled += CONTROL_BYTES;
      this.#controlSize = this.#filled;
    }
  }

  alarm(kind: number, memberHigh: number, memberLow: number): void {
    this.#control(CONTROL_ALARM, kind, 1, memberHigh, memberLow);
  }

  #control(kind: number, a: number, b: number, high: number, low: number): void {
    if (this.#filled + CONTROL_BYTES > FRAME_BYTES_MAX) this.#send(false);
    writeControl(this.#frame, FRAME_HEADER_BYTES + this.#filled, kind, a, b, high, low);
    this.#filled += CONTROL_BYTES;
    this.#controlSize = this.#filled;
  }

  /** Throws when a number or size is more than a record can hold. */
  record(record: ForeignRecord): void {
    const size = this.#lay(record);
    // Frames of whole records can be taken one by one when they are read.
    if (size > FRAME_BYTES_MAX - this.#filled && this.#filled > 0) this.#send(false);
    for (let from = 0; from < size;) {
      if (this.#filled === FRAME_BYTES_MAX) this.#send(from > 0);
      const count = Math.min(size - from, FRAME_BYTES_MAX - this.#filled);
      const at = FRAME_HEADER_BYTES + this.#filled;
      this.#record.copy(this.#frame, at, from, from + count);
      this.#filled += count;
      from += count;
    }
    this.#lastRevision = Math.max(this.#lastRevision, record.modRevision);
  }

  /** The bytes of a record as arenas hold it, see arenas.ts. */
  #lay(record: ForeignRecord): number {
    const { key, value, leaseHigh, leaseLow } = record;
    const hasLease = leaseHigh !== 0 || leaseLow !== 0;
    if (key.length > KEY_BYTES_MAX || record.version > 0xffffffff) {
      throw new Error(`a key of ${key.length} bytes, version ${record.version}, is too large`);
    }
    const size = Arenas.sizeOf(key.length, value.length, hasLease);
    if (size > this.#record.length) this.#record = Buffer.alloc(size * 2);
    const out = this.#record.fill(0, 0, size);
    out.writeDoubleLE(record.modRevision, 8);
    out.writeDoubleLE(record.createRevision, 16);
    out.writeUInt32LE(record.version, 24);
    out.writeUInt32LE(value.length, 28);
    out.writeUInt32LE(record.sub, 32);
    const flags = (record.isTombstone ? FLAG_TOMBSTONE : 0) | (hasLease ? FLAG_LEASE : 0);
    out.writeUInt32LE(((flags << 24) | key.length) >>> 0, 36);
    let at = HEADER_BYTES;
    if (hasLease) {
      out.writeUInt32LE(leaseLow, at);
      out.writeUInt32LE(leaseHigh, at + 4);
      at += 8;
    }
    key.copy(out, at);
    value.copy(out, at + ((key.length + 3) & ~3));
    return size;
  }

  #send(goesOn: boolean): void {
    const flags = goesOn ? FLAG_GOES_ON : 0;
    const { length } = this.#frame;
    writeFrameHeader(
      this.#frame,
      this.#filled,
      this.#controlSize,
      this.#number++,
      this.#lastRevision,
      Date.now(),
      flags,
    );
    this.#chain = sealFrame(this.#frame, this.#chain, 0);
    this.#write(this.#frame, Math.min(length, FRAME_HEADER_BYTES + this.#filled));
    this.#filled = 0;
    this.#controlSize = 0;
  }

  #write(bytes: Buffer, size: number): void {
    for (let done = 0; done < size;) done += writeSync(this.#fd, bytes, done, size - done);
    this.bytes += size;
  }

  /** All is in: makes it durable and gives it its name. */
  finish(): void {
    if (this.#filled > 0) this.#send(false);
    const header = this.#header();
    writeSync(this.#fd, header, 0, header.length, 0);
    fsyncSync(this.#fd);
    closeSync(this.#fd);
    renameSync(this.#path, join(this.#dir, snapshotName(0)));
    const dir = openSync(this.#dir, 'r');
    fsyncSync(dir);
    closeSync(dir);
  }

  /** Gives up: nothing of it stays. */
  abandon(): void {
    closeSync(this.#fd);
    rmSync(this.#path, { force: true });
    if (this.#isNewDir) rmSync(this.#dir, { recursive: true, force: true });
  }
}
