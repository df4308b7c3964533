// shell: reads log and snapshot files into a store
/**
 * Files are read in large pieces; each frame is checked and its payload handed on in place.
 *
 * What a crash leaves is a torn tail: the last segment ends in the middle of a frame. It is cut
 * off and kept beside the log. Anything else that does not check is damage: a frame that is bad
 * although a good one follows, or a bad frame in a segment that is not the last. Then nothing is
 * changed and the error says where and what to do.
 */
import {
  closeSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  readdirSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import {
  CUT_SHORT,
  FILE_HEADER_BYTES,
  FLAG_GOES_ON,
  FORMAT_VERSION,
  FRAME_BAD_CHAIN,
  FRAME_HEADER_BYTES,
  FRAME_OK,
  FRAME_SHORT,
  type FileHeader,
  checkFrame,
  decodeFileHeader,
  flushedBefore,
  isCutShort,
  paddingAt,
} from '../wal/frame.ts';
import { SLOT_BYTES, isLogFile, logName, snapshotName } from '../wal/log-files.ts';
import { READ_AHEAD_BYTES_MIN, ReadAhead } from './read-ahead.ts';
import type { ReadBatch } from './read-batch.ts';
import type { Restorer } from './restorer.ts';

/** Bytes read at a time; at least two of the largest frames. */
const READ_BYTES: number = SLOT_BYTES * 2;
const NOTHING: Buffer = Buffer.alloc(0);

/** What replay learned about the files. */
export interface Replayed {
  readonly clusterId: Buffer;
  readonly memberId: Buffer;
  /** Number for the next segment. */
  readonly nextSegment: number;
  readonly chain: number;
  /** Segments on the disk, bytes of them, and what was cut off the tail. */
  readonly bytes: number;
  /** Bytes of the segments alone: what a snapshot would replace. */
  readonly logBytes: number;
  readonly cutBytes: number;
}

/** Reads everything in a directory. Null when there is nothing whole: a new store. */
export function replayDirectory(dir: string, restorer: Restorer): Replayed | null {
  const names = readdirSync(dir);
  const snapshots = names.filter(
    (name) => name.startsWith('snapshot-') && isLogFile(name) !== null,
  );
  const segments = names
    .filter((name) => name.startsWith('log-') && isLogFile(name) !== null)
    .map((name) => isLogFile(name) ?? 0)
    .sort((a, b) => a - b);
  if (snapshots.length === 0 && segments.length === 0) {
    refuseForeign(dir, names);
    return null;
  }
  const newest = Math.max(0, ...snapshots.map((name) => isLogFile(name) ?? 0));
  const needed = segments.filter((segment) => segment >= newest);
  refuseGaps(dir, newest, snapshots.length > 0, needed);
  const files = needed.map((segment) => logName(segment));
  if (snapshots.length > 0) files.unshift(snapshotName(newest));
  const ahead = readAhead(dir, files, restorer);
  const reader = new FileReader(dir, restorer, ahead);
  try {
    for (const name of files) reader.read(name, name === logName(needed.at(-1) ?? -1));
    restorer.endReserve();
  } finally {
    ahead?.close();
  }
  const header = reader.header;
  if (header === null) return null;
  return {
    clusterId: header.clusterId,
    memberId: header.memberId,
    nextSegment: reader.nextSegment,
    chain: reader.chain,
    bytes: reader.bytes,
    logBytes: reader.logBytes,
    cutBytes: reader.cutBytes,
  };
}

/** Starts the thread that helps, where there is enough to read. */
function readAhead(dir: string, names: readonly string[], restorer: Restorer): ReadAhead | null {
  const files = names.map((name) => ({ path: join(dir, name), isLog: name.startsWith('log-') }));
  const bytes = files.reduce((sum, { path }) => sum + statSync(path).size, 0);
  if (bytes < READ_AHEAD_BYTES_MIN) return null;
  return new ReadAhead(files, restorer.reserve(bytes));
}

function refuseForeign(dir: string, names: readonly string[]): void {
  const home = etcdHome(dir, names);
  if (home === null) return;
  throw new Error(
    `${dir} is ${home === dir ? '' : 'part of '}a data directory of etcd; start with an empty ` +
      `directory and bring the data over with "megaplane store import ${home} --data-dir NEW" ` +
      'once etcd is stopped, or with its address in place of the directory while it runs',
  );
}

/** The data directory of etcd that `dir` is, or a part of: `member`, `member/snap`, its log. */
function etcdHome(dir: string, names: readonly string[]): string | null {
  if (names.includes('member')) return dir;
  if (names.includes('snap') && names.includes('wal')) return dirname(dir);
  const isSnap = basename(dir) === 'snap' && names.includes('db');
  const isLog = names.some((name) => /^[0-9a-f]{16}-[0-9a-f]{16}\.wal$/.test(name));
  return isSnap || isLog ? dirname(dirname(dir)) : null;
}

function refuseGaps(dir: string, from: number, hasSnapshot: boolean, found: number[]): void {
  let expected = hasSnapshot ? from : 0;
  for (const segment of found) {
    if (segment !== expected) {
      throw new Error(
        `${dir}: ${logName(expected)} is missing, but ${logName(segment)} is there; ` +
          'put the missing file back or restore a backup',
      );
    }
    expected++;
  }
}

class FileReader {
  readonly #dir: string;
  readonly #restorer: Restorer;
  readonly #ahead: ReadAhead | null;
  #file = -1;
  #buffer: Buffer = NOTHING;
  /** Payloads of a group that is not whole yet, and where it began. */
  #group: { readonly payload: Buffer; readonly controlSize: number }[] = [];
  #groupAt = 0;
  #groupChain = 0;
  #hasLog = false;
  chain = 0;
  header: FileHeader | null = null;
  bytes = 0;
  logBytes = 0;
  cutBytes = 0;
  nextSegment = 0;

  constructor(dir: string, restorer: Restorer, ahead: ReadAhead | null) {
    this.#dir = dir;
    this.#restorer = restorer;
    this.#ahead = ahead;
  }

  read(name: string, isLast: boolean): void {
    this.#file++;
    const path = join(this.#dir, name);
    const fd = openSync(path, 'r+');
    try {
      const size = fstatSync(fd).size;
      this.bytes += size;
      if (name.startsWith('log-')) this.logBytes += size;
      const header = this.#readHeader(fd, path, size, isLast);
      if (header === null) return;
      const isLog = name.startsWith('log-');
      if (isLog && this.#hasLog && header.chain !== this.chain) {
        throw damage(path, 0, 'it does not follow the segment before it');
      }
      this.header = header;
      this.chain = isLog ? header.chain : 0;
      this.#hasLog = isLog;
      this.nextSegment = header.segment + (isLog ? 1 : 0);
      this.#readFrames(fd, path, size, isLast);
      if (!isLog && isCutShort(header, this.chain)) throw damage(path, size, CUT_SHORT);
      // Killed before its next flush, the last process may have left the end in memory only; the
      // segments after this one must not be the first to reach the disk.
      if (isLast) fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  }

  #readHeader(fd: number, path: string, size: number, isLast: boolean): FileHeader | null {
    const bytes = Buffer.alloc(FILE_HEADER_BYTES);
    readSync(fd, bytes, 0, FILE_HEADER_BYTES, 0);
    const header = decodeFileHeader(bytes);
    if (header !== null && header.version > FORMAT_VERSION) {
      throw new Error(
        `${path} was written by a newer version (format ${header.version}, this program knows ` +
          `up to ${FORMAT_VERSION}); start the newer program again`,
      );
    }
    if (header !== null) return header;
    // A crash between making the file and writing its header leaves it short and empty.
    if (isLast && size <= FILE_HEADER_BYTES) {
      this.cutBytes += size;
      unlinkSync(path);
      return null;
    }
    throw damage(path, 0, 'its header is damaged');
  }

  #readFrames(fd: number, path: string, size: number, isLast: boolean): void {
    let at = this.#takeAhead();
    if (at < size && this.#buffer === NOTHING) {
      this.#buffer = Buffer.from(new ArrayBuffer(READ_BYTES));
    }
    while (at < size) {
      const count = readSync(fd, this.#buffer, 0, READ_BYTES, at);
      let from = 0;
      let state = FRAME_OK;
      while (from < count) {
        const padding = paddingAt(this.#buffer, from, count, at + from);
        from += padding;
        if (padding > 0) continue;
        state = checkFrame(this.#buffer, from, count, this.chain);
        if (state !== FRAME_OK) break;
        from = this.#take(this.#buffer, from, at + from);
      }
      at += from;
      if (state === FRAME_OK || (state === FRAME_SHORT && at + count - from < size)) continue;
      this.#endOfGood(fd, path, at, size, isLast, state);
      return;
    }
    if (this.#group.length > 0) this.#endOfGood(fd, path, at, size, isLast, FRAME_SHORT);
  }

  /** What was read, checked and laid down ahead; returns where in the file the rest begins. */
  #takeAhead(): number {
    const ahead = this.#ahead;
    if (ahead === null) return FILE_HEADER_BYTES;
    let at = FILE_HEADER_BYTES;
    let isWhole = true;
    let batch: ReadBatch | null = null;
    while ((batch = ahead.next(this.#file)) !== null) {
      this.#restorer.adopt(batch);
      this.chain = batch.crc(batch.frameCount - 1);
      at = batch.fileAt;
      isWhole = batch.isWhole;
    }
    if (ahead.isLost) this.#restorer.abandonReserve();
    if (!isWhole) throw new Error('the thread that reads the log has ended early; start again');
    return at;
  }

  /** One good frame; returns where the next one starts. */
  #take(bytes: Buffer, from: number, fileAt: number): number {
    const size = bytes.readUInt32LE(from + 16);
    const controlSize = bytes.readUInt32LE(from + 20);
    const start = from + FRAME_HEADER_BYTES;
    const before = this.chain;
    this.chain = bytes.readUInt32LE(from + 4);
    this.#restorer.wallMs = bytes.readDoubleLE(from + 40);
    const goesOn = (bytes.readUInt32LE(from + 48) & FLAG_GOES_ON) !== 0;
    if (!goesOn && this.#group.length === 0) {
      this.#restorer.apply(bytes, start, start + controlSize, start + size);
      return start + size;
    }
    if (this.#group.length === 0) {
      this.#groupAt = fileAt;
      this.#groupChain = before;
    }
    this.#group.push({ payload: Buffer.from(bytes.subarray(start, start + size)), controlSize });
    if (!goesOn) this.#applyGroup();
    return start + size;
  }

  #applyGroup(): void {
    const control: Buffer[] = [];
    const records: Buffer[] = [];
    for (const { payload, controlSize } of this.#group) {
      control.push(payload.subarray(0, controlSize));
      records.push(payload.subarray(controlSize));
    }
    const controlSize = control.reduce((sum, part) => sum + part.length, 0);
    const size = records.reduce((sum, part) => sum + part.length, controlSize);
    const whole = Buffer.from(new ArrayBuffer(size));
    let at = 0;
    for (const part of [...control, ...records]) at += part.copy(whole, at);
    this.#restorer.apply(whole, 0, controlSize, size);
    this.#group = [];
  }

  /** The first frame that does not check stands at `at`: a torn tail, or damage. */
  #endOfGood(
    fd: number,
    path: string,
    at: number,
    size: number,
    isLast: boolean,
    state: number,
  ): void {
    const what =
      state === FRAME_BAD_CHAIN
        ? 'the record there does not follow the one before it'
        : 'the checksum there does not fit';
    if (!isLast) throw damage(path, at, what);
    const next = this.#findFlushed(fd, at, size);
    if (next >= 0) throw damage(path, at, `${what}, and good records follow at byte ${next}`);
    if (this.#group.length === 0) {
      this.#cut(fd, path, at, size);
      return;
    }
    this.#group = [];
    this.chain = this.#groupChain;
    this.#cut(fd, path, this.#groupAt, size);
  }

  /**
   * Where a whole frame stands behind `bad` that was written when `bad` was flushed already; -1
   * when nowhere. Without one, a power cut may have taken any sectors from `bad` on: nothing there
   * was promised, so nothing of it counts.
   */
  #findFlushed(fd: number, bad: number, size: number): number {
    for (let at = bad + 16; at < size; at += READ_BYTES - SLOT_BYTES) {
      const count = readSync(fd, this.#buffer, 0, READ_BYTES, at);
      const end = Math.min(count, READ_BYTES - SLOT_BYTES);
      for (let place = 0; place < end; place += 16) {
        if (checkFrame(this.#buffer, place, count, -1) !== FRAME_OK) continue;
        if (flushedBefore(this.#buffer, place) > bad) return at + place;
      }
    }
    return -1;
  }

  #cut(fd: number, path: string, at: number, size: number): void {
    const rest = Buffer.alloc(size - at);
    readSync(fd, rest, 0, rest.length, at);
    keepCopy(`${path}.torn`, rest);
    ftruncateSync(fd, at);
    fsyncSync(fd);
    this.cutBytes += rest.length;
  }
}

/** A full disk is the likely reason for the torn tail, and must be the message here too. */
function keepCopy(path: string, bytes: Buffer): void {
  try {
    writeFileSync(path, bytes, { mode: 0o600 });
  } catch (error) {
    throw new Error(
      `the torn end of the log (${bytes.length} bytes) cannot be kept as ${path}: ` +
        `${(error as Error).message}; free that much space, then start again`,
      { cause: error },
    );
  }
}

function damage(path: string, at: number, what: string): Error {
  // What stands before a fault in a log is a state that was; a part of a snapshot never was one.
  const advice = path.endsWith('.mps')
    ? 'Restore a backup'
    : 'Restore a backup; or, to go on with what stands before it, copy the directory, then ' +
      `"truncate -s ${at} ${path}" and remove the segments after it`;
  return new Error(`${path} is damaged at byte ${at}: ${what}. Nothing was changed. ${advice}`);
}
