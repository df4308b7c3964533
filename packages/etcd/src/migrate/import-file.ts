// shell: a data directory out of a snapshot or database of etcd
/**
 * Keeps every revision, version, lease and alarm, so that HashKV of the new store equals the one
 * of the old one. The file is read once, in order of revision, and written as a snapshot of the
 * new store; memory stays small whatever the size.
 */
import { turnOver } from '@megaplane/base/deferred';
import { statSync } from 'node:fs';
import { SnapshotWriter } from '@megaplane/store/snapshot-writer';
import { FAILURE_NONE, ProtobufReader, WIRE_BYTES } from '@megaplane/wire/protobuf';
import {
  PUT_KEY_BYTES,
  SEPARATOR,
  TOMBSTONE_KEY_BYTES,
  TOMBSTONE_MARK,
} from '../codec/backend-record.ts';
import { AUTH_DOCUMENT } from '../auth/auth-state.ts';
import { authDocument } from '../backend/auth-buckets.ts';
import { BboltFile } from '../bbolt/reader.ts';
import { RESTORED_DOCUMENT } from '../watch/restored.ts';

/** Entries between two looks at the clock and the signals. */
const PAUSE_ENTRIES = 4096;

export interface ImportOptions {
  /** A snapshot or a database file. */
  readonly file: string;
  readonly dataDir: string;
  /** As etcdutl's flag: how far revisions are moved on; the skipped ones count as compacted. */
  readonly bumpRevision: number;
  /** Do not compare the checksum at the end of a snapshot. */
  readonly skipHashCheck: boolean;
  /** Not the database out of a data directory: then it ends with a checksum. */
  readonly isSnapshot?: boolean;
  /** Told now and then: what is done, out of how much. */
  readonly onProgress: (stage: 'checksum' | 'records', done: number, total: number) => void;
}

export interface Imported {
  readonly records: number;
  readonly leases: number;
  readonly alarms: number;
  readonly revision: number;
  /** -1 when nothing was compacted. */
  readonly compactRevision: number;
  /** Users or roles came along. */
  readonly hasUsers: boolean;
  readonly hasChecksum: boolean;
}

async function pause(): Promise<void> {
  await turnOver();
}

/** Throws an Error that says what is wrong; then nothing of the directory stays. */
export async function importFile(options: ImportOptions): Promise<Imported> {
  const file = openDatabase(options.file);
  try {
    if (!options.skipHashCheck) await checkSum(file, options);
    const writer = new SnapshotWriter(options.dataDir);
    try {
      const imported = await new Import(file, writer, options).run();
      writer.finish();
      return imported;
    } catch (error) {
      writer.abandon();
      throw error;
    }
  } finally {
    file.close();
  }
}

function openDatabase(path: string): BboltFile {
  if (statSync(path).isDirectory()) throw new Error(`${path} is a directory, not a snapshot file`);
  const file = new BboltFile(path);
  if (file.has('key') && file.has('meta')) return file;
  file.close();
  throw new Error(`${path} is a bbolt file, but not one of etcd: it has no bucket key or no meta`);
}

async function checkSum(file: BboltFile, options: ImportOptions): Promise<void> {
  const { isSnapshot = false, onProgress } = options;
  if (!file.hasChecksum && isSnapshot) {
    throw new Error(
      `${options.file} has no checksum at its end, where snapshots have one; copy it again, or ` +
        'use --skip-hash-check for a database file of a stopped etcd',
    );
  }
  if (!file.hasChecksum) return;
  for (const done of file.checkSum()) {
    onProgress('checksum', done, file.bytes);
    await pause();
  }
}

class Import {
  readonly #file: BboltFile;
  readonly #writer: SnapshotWriter;
  readonly #options: ImportOptions;
  readonly #reader = new ProtobufReader();
  #records = 0;
  #last = 1;
  #doneBytes = 0;

  constructor(file: BboltFile, writer: SnapshotWriter, options: ImportOptions) {
    this.#file = file;
    this.#writer = writer;
    this.#options = options;
  }

  async run(): Promise<Imported> {
    const { bumpRevision } = this.#options;
    const compacted = this.#compacted();
    // The boundary must be known before the records; a bumped one is known only after them.
    if (bumpRevision > 0) await this.#findLast();
    const bumped = bumpRevision > 0 ? Math.max(this.#last, compacted) + bumpRevision : 0;
    const boundary = bumped > 0 ? bumped : compacted;
    if (boundary > 0) this.#writer.compaction(boundary);
    if (boundary > 0) this.#writer.revision(boundary);
    const leases = this.#leases();
    const alarms = this.#alarms();
    const users = authDocument(this.#file);
    if (users !== null) this.#writer.document(AUTH_DOCUMENT, users);
    // What a stopped etcd has goes on as it was: nobody saw more than that.
    if (bumped === 0 && this.#options.isSnapshot === true) {
      this.#writer.document(RESTORED_DOCUMENT, Buffer.from('restored'));
    }
    await this.#copyRecords();
    if (bumped > 0) this.#mark(bumped);
    return {
      records: this.#records,
      leases,
      alarms,
      revision: Math.max(this.#last, boundary),
      compactRevision: boundary,
      hasUsers: users !== null,
      hasChecksum: this.#file.hasChecksum,
    };
  }

  #damage(what: string): Error {
    return new Error(`${this.#file.path} is damaged: ${what}; use another copy`);
  }

  #compacted(): number {
    let found = -1;
    for (const name of ['finishedCompactRev', 'scheduledCompactRev']) {
      const value = this.#file.value('meta', name);
      if (value === null) continue;
      if (value.length < PUT_KEY_BYTES) throw this.#damage(`${name} has ${value.length} bytes`);
      found = Math.max(found, this.#whole(value, 0));
    }
    return found;
  }

  #whole(bytes: Buffer, at: number): number {
    const value = bytes.readBigUInt64BE(at);
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw this.#damage(`${value} is no revision`);
    return Number(value);
  }

  async #findLast(): Promise<void> {
    let count = 0;
    for (const [key] of this.#file.entries('key')) {
      if (key.length >= PUT_KEY_BYTES) this.#last = Math.max(this.#last, this.#whole(key, 0));
      if (++count % PAUSE_ENTRIES === 0) await pause();
    }
  }

  /** etcd's restore leaves a record without a key at a bumped revision; HashKV counts it. */
  #mark(revision: number): void {
    const none = Buffer.alloc(0);
    this.#writer.record({
      ...{ key: none, value: none, modRevision: revision, sub: 0 },
      ...{ createRevision: 0, version: 0, leaseHigh: 0, leaseLow: 0, isTombstone: false },
    });
    this.#records++;
    this.#last = revision;
  }

  async #copyRecords(): Promise<void> {
    const { onProgress } = this.#options;
    for (const [key, value] of this.#file.entries('key')) {
      this.#copy(key, value);
      this.#doneBytes += key.length + value.length + 16;
      if (this.#records % PAUSE_ENTRIES !== 0) continue;
      onProgress('records', Math.min(this.#doneBytes, this.#file.bytes), this.#file.bytes);
      await pause();
    }
    onProgress('records', this.#file.bytes, this.#file.bytes);
  }

  #copy(key: Buffer, value: Buffer): void {
    const isTombstone = key.length === TOMBSTONE_KEY_BYTES && key[PUT_KEY_BYTES] === TOMBSTONE_MARK;
    if ((key.length !== PUT_KEY_BYTES && !isTombstone) || key[8] !== SEPARATOR) {
      throw this.#damage(`the record key ${key.toString('hex')} is no revision`);
    }
    const main = this.#whole(key, 0);
    const sub = this.#whole(key, 9);
    if (main < 1 || sub > 0xffffffff) throw this.#damage(`${main}/${sub} is no revision`);
    this.#writer.record(this.#decode(main, sub, isTombstone, value));
    this.#records++;
    this.#last = Math.max(this.#last, main);
  }

  #decode(main: number, sub: number, isTombstone: boolean, bytes: Buffer) {
    const reader = this.#reader.reset(bytes, 0, bytes.length);
    let [key, value] = [bytes.subarray(0, 0), bytes.subarray(0, 0)];
    let [createRevision, version, leaseHigh, leaseLow] = [0, 0, 0, 0];
    while (reader.next()) {
      const { field } = reader;
      if (reader.wireType === WIRE_BYTES && (field === 1 || field === 5)) {
        reader.chunk();
        const chunk = bytes.subarray(reader.chunkStart, reader.chunkEnd);
        if (field === 1) key = chunk;
        else value = chunk;
      } else if (reader.wireType === 0) {
        const number = reader.int64();
        if (field === 2) createRevision = number;
        if (field === 4) version = number;
        if (field === 6) [leaseHigh, leaseLow] = [reader.high, reader.low];
      } else reader.skip();
    }
    const isRight = createRevision >= 0 && createRevision <= main && version >= 0;
    if (reader.failure !== FAILURE_NONE || !isRight || (isTombstone && key.length === 0)) {
      throw this.#damage(`the record of revision ${main}/${sub} is no key and value`);
    }
    const numbers = { modRevision: main, sub, createRevision, version, leaseHigh, leaseLow };
    return { key, value, ...numbers, isTombstone };
  }

  #leases(): number {
    let count = 0;
    for (const [key, bytes] of this.#file.entries('lease')) {
      const reader = this.#reader.reset(bytes, 0, bytes.length);
      let ttlSeconds = 0;
      let leftSeconds = 0;
      while (reader.next()) {
        if (reader.wireType === 0 && reader.field === 2) ttlSeconds = reader.int64();
        else if (reader.wireType === 0 && reader.field === 3) leftSeconds = reader.int64();
        else reader.skip();
      }
      if (reader.failure !== FAILURE_NONE || key.length !== 8) {
        throw this.#damage(`the lease ${key.toString('hex')} is no lease`);
      }
      const remainingMs = (leftSeconds > 0 ? leftSeconds : ttlSeconds) * 1000;
      const [idHigh, idLow] = [key.readUInt32BE(0), key.readUInt32BE(4)];
      this.#writer.lease({ idHigh, idLow, ttlSeconds, remainingMs });
      count++;
    }
    return count;
  }

  #alarms(): number {
    let count = 0;
    for (const [bytes] of this.#file.entries('alarm')) {
      const reader = this.#reader.reset(bytes, 0, bytes.length);
      let [kind, high, low] = [0, 0, 0];
      while (reader.next()) {
        if (reader.wireType !== 0) reader.skip();
        else if (reader.int64() !== 0 && reader.field === 2) kind = reader.low;
        else if (reader.field === 1) [high, low] = [reader.high, reader.low];
      }
      if (reader.failure !== FAILURE_NONE) throw this.#damage('an alarm is no message');
      if (kind === 0) continue;
      this.#writer.alarm(kind, high, low);
      count++;
    }
    return count;
  }
}
