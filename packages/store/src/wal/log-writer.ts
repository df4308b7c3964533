/**
 * What the log's thread does to files, given a disk: appends groups of frames, flushes where one of
 * them asks for it, begins segments, writes snapshots and removes what they replace. Each step
 * throws what the disk throws, and nothing is tried again: after a failed flush nobody knows what
 * is on the disk.
 *
 * The order of steps keeps a crash readable at any point. A segment is flushed before the next one
 * exists, so only the last one may end in the middle of a frame. A frame tells how much of its file
 * was flushed when it was written, so that a reader can tell damage from sectors that a power cut
 * took out of an unflushed end.
 */
import type { DiskTimes } from '../disk-times.ts';
import { FORMAT_VERSION, KIND_LOG, KIND_SNAPSHOT, encodeFileHeader, sealFrame } from './frame.ts';
import { isLogFile, logName, snapshotName } from './log-files.ts';

const SNAPSHOT_PART = 'snapshot.part';

/** A file that only grows. */
export interface LogFile {
  readonly fd: number;
  readonly size: number;
  append(frames: readonly Buffer[]): void;
  /** Writes the header anew, of the same size. */
  reheader(header: Buffer): void;
  /** Somebody else appended up to there. */
  skipTo(size: number): void;
  flush(): void;
  /** Nothing more is appended. */
  closeDirect(): void;
  close(): void;
}

/** The directory of a log. */
export interface LogDisk {
  /**
   * A file with a header; `isNew` refuses one that exists. Where the directory was removed it is
   * made anew: what is missing in it is somebody else's to notice, see home.ts.
   */
  create(name: string, isNew: boolean, header: Buffer): LogFile;
  /** Makes names durable. */
  sync(): void;
  /** False when there is no such file any more. */
  rename(from: string, to: string): boolean;
  list(): readonly string[];
  remove(name: string): void;
}

export interface LogWriterOptions {
  readonly disk: LogDisk;
  readonly clusterId: Buffer;
  readonly memberId: Buffer;
  readonly segment: number;
  readonly chain: number;
  readonly times: DiskTimes;
  readonly nowMs: () => number;
  /** A segment ends after it has grown beyond this. */
  readonly segmentBytes: number;
  /** Bytes of a segment that somebody else has flushed. */
  readonly flushedElsewhere: (segment: number) => number;
  /**
   * Waits until no flush of somebody else is under way; false once one has failed. Linux tells an
   * error once for a descriptor: a flush here may succeed because the one beside it was told.
   */
  readonly flushesWell: () => boolean;
  /** Segments before this one are flushed by nobody else any more. */
  readonly heldElsewhere: () => number;
  readonly onSegment: (fd: number, segment: number) => void;
  /** Told false when the file was removed before it got its name. */
  readonly onSnapshot: (isNamed: boolean) => void;
}

export class LogWriter {
  readonly #options: LogWriterOptions;
  #file: LogFile | null = null;
  /** Files before the current one, with their segments, as somebody else may be flushing them. */
  readonly #retired = new Map<number, LogFile>();
  #chain: number;
  #segment: number;
  /** Bytes of the current segment that are flushed. */
  #flushed = 0;
  #snapshot: LogFile | null = null;
  #snapshotChain = 0;
  /** Number of the next or running snapshot; the log may have gone on to later segments. */
  #snapshotSegment = 0;
  #snapshotStartMs = 0;

  constructor(options: LogWriterOptions) {
    this.#options = options;
    this.#chain = options.chain;
    this.#segment = options.segment;
  }

  /** Bytes of the current segment. */
  get size(): number {
    return this.#file?.size ?? 0;
  }

  get segment(): number {
    return this.#segment;
  }

  /** Checksum of the last frame. */
  get chain(): number {
    return this.#chain;
  }

  /** Descriptor of the current segment, 0 before there is one. */
  get fd(): number {
    return this.#file?.fd ?? 0;
  }

  /** Goes on behind frames that somebody else appended to the current segment. */
  resume(size: number, chain: number): void {
    if (size === this.size) return;
    this.#file?.skipTo(size);
    this.#chain = chain;
  }

  /** Begins the segment of the constructor; once, before anything else. */
  start(firstRevision: number): void {
    const { disk, clusterId, memberId, onSegment } = this.#options;
    const segment = this.#segment;
    const chain = this.#chain;
    if (this.#file !== null) this.#flushFile(this.#file);
    this.#file?.closeDirect();
    const identity = { version: FORMAT_VERSION, kind: KIND_LOG, clusterId, memberId };
    const header = encodeFileHeader({ ...identity, segment, firstRevision, chain });
    const fresh = disk.create(logName(segment), true, header);
    fresh.flush();
    disk.sync();
    this.#retire();
    this.#file = fresh;
    this.#flushed = fresh.size;
    onSegment(fresh.fd, segment);
  }

  /** A descriptor that was closed too early fails its flush, or is another file's by then. */
  #retire(): void {
    if (this.#file !== null) this.#retired.set(this.#segment - 1, this.#file);
    const held = this.#options.heldElsewhere();
    for (const [segment, file] of this.#retired) {
      if (segment >= held) continue;
      file.close();
      this.#retired.delete(segment);
    }
  }

  #next(firstRevision: number): void {
    this.#segment++;
    this.start(firstRevision);
  }

  /** Begins the next segment, which is the first that the coming snapshot does not replace. */
  cut(firstRevision: number): void {
    this.#next(firstRevision);
    this.#snapshotSegment = this.#segment;
  }

  /** One group: appended together, flushed once if asked; a full segment ends after it. */
  write(frames: readonly Buffer[], needsFlush: boolean, isWhole: boolean): void {
    const file = this.#file;
    const last = frames.at(-1);
    if (file === null || last === undefined) return;
    const { times, nowMs, flushedElsewhere } = this.#options;
    this.#flushed = Math.max(this.#flushed, flushedElsewhere(this.#segment));
    for (const frame of frames) this.#chain = sealFrame(frame, this.#chain, this.#flushed);
    const startMs = nowMs();
    file.append(frames);
    times.addWritten(frames.reduce((sum, frame) => sum + frame.length, 0));
    const writtenMs = nowMs();
    times.writes.record((writtenMs - startMs) / 1000);
    if (needsFlush) {
      this.#flushFile(file);
      this.#flushed = file.size;
      times.flushes.record((nowMs() - writtenMs) / 1000);
    }
    if (isWhole && file.size > this.#options.segmentBytes) this.#next(last.readDoubleLE(32) + 1);
  }

  flush(): void {
    if (this.#file !== null) this.#flushFile(this.#file);
    this.#flushed = this.size;
  }

  /** What is said to be flushed is so: frames and segments that follow rely on it. */
  #flushFile(file: LogFile): void {
    file.flush();
    if (!this.#options.flushesWell()) throw new Error('a flush beside this one has failed');
  }

  writeSnapshot(frame: Buffer): void {
    const { disk, nowMs } = this.#options;
    if (this.#snapshot === null) {
      this.#snapshotStartMs = nowMs();
      this.#snapshotChain = 0;
      this.#snapshot = disk.create(SNAPSHOT_PART, false, this.#snapshotHeader());
    }
    this.#snapshotChain = sealFrame(frame, this.#snapshotChain, 0);
    this.#snapshot.append([frame]);
  }

  #snapshotHeader(): Buffer {
    const { clusterId, memberId } = this.#options;
    const identity = { version: FORMAT_VERSION, kind: KIND_SNAPSHOT, clusterId, memberId };
    const [segment, chain] = [this.#snapshotSegment, this.#snapshotChain];
    return encodeFileHeader({ ...identity, segment, firstRevision: 0, chain });
  }

  /** The snapshot is whole: names it, then removes what it replaces. */
  endSnapshot(): void {
    const { disk, times, nowMs, onSnapshot } = this.#options;
    if (this.#snapshot === null) return;
    this.#snapshot.reheader(this.#snapshotHeader());
    this.#snapshot.flush();
    this.#snapshot.close();
    this.#snapshot = null;
    const segment = this.#snapshotSegment;
    if (!disk.rename(SNAPSHOT_PART, snapshotName(segment))) {
      onSnapshot(false);
      return;
    }
    disk.sync();
    times.snapshots.record((nowMs() - this.#snapshotStartMs) / 1000);
    for (const name of disk.list()) {
      const number = isLogFile(name);
      if (number !== null && number < segment) disk.remove(name);
    }
    onSnapshot(true);
  }
}
