/** What the log's two threads agree on: names of files, slots of shared memory, jobs. */
import { DIRECT_BYTES, FRAME_BYTES_MAX } from './frame.ts';

/** A segment is closed, and the next begun, after it has grown beyond this. */
export const LOG_SEGMENT_BYTES: number = 256 * 1024 * 1024;
/** Frames on their way to the worker at most; a power of two. */
export const SLOTS = 4;
/** Frames of a snapshot at once, each in memory of its own: it is filled over several turns. */
export const SNAPSHOT_SLOTS = 2;
/** A frame of the largest payload, padded. */
export const SLOT_BYTES: number = FRAME_BYTES_MAX + DIRECT_BYTES;

export const JOB_FRAME = 1;
/** Begins a new segment; the slot's frame header tells the last revision before it. */
export const JOB_CUT = 2;
export const JOB_SNAPSHOT_FRAME = 3;
export const JOB_SNAPSHOT_END = 4;
export const JOB_CLOSE = 5;

// Words of the shared control block.
/** Jobs given so far (counts, wrapping). */
export const WORD_SUBMITTED = 0;
/** Jobs done so far. */
export const WORD_DONE = 1;
/** 0 starting, 1 running, -1 failed. */
export const WORD_STATE = 2;
/** Bytes of the segment that the worker has written, and its number. */
export const WORD_WRITTEN = 3;
export const WORD_WRITTEN_SEGMENT = 4;
/** Bytes of a segment that the main thread has flushed, and its number. */
export const WORD_FLUSHED = 5;
export const WORD_FLUSHED_SEGMENT = 6;
/** Checksum of the last frame, and the file's descriptor, 0 while there is none. */
export const WORD_CHAIN = 7;
export const WORD_FD = 8;
/** Of segments before this one the main thread flushes none any more: they may be closed. */
export const WORD_HELD_SEGMENT = 9;
/** How the main thread's own flush stands: one of the three below. */
export const WORD_FLUSH_STATE = 10;
export const FLUSH_IDLE = 0;
export const FLUSH_RUNS = 1;
export const FLUSH_FAILED = -1;
/**
 * From here on two words per slot: the job, and 1 when it needs a flush, or which of the snapshot's
 * slots its frame is in.
 */
export const WORD_JOBS = 11;
export const WORDS: number = WORD_JOBS + SLOTS * 2;

export interface WorkerStart {
  readonly dir: string;
  readonly words: SharedArrayBuffer;
  /** SLOTS for the log, then SNAPSHOT_SLOTS. */
  readonly slots: readonly SharedArrayBuffer[];
  /** See DiskTimes. */
  readonly times: SharedArrayBuffer;
  readonly clusterId: Uint8Array;
  readonly memberId: Uint8Array;
  /** Number of the segment that the worker begins. */
  readonly segment: number;
  readonly firstRevision: number;
  /** Checksum of the last frame in the segment before. */
  readonly chain: number;
}

/** What to tell people when a write or a flush of the log has failed. */
export function writeFailure(dir: string, error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  const what =
    code === 'ENOSPC' ? 'the disk is full; free space on it, then start again' : String(message);
  return `the log in ${dir} cannot be written: ${what}`;
}

export function logName(segment: number): string {
  return `log-${segment.toString(16).padStart(8, '0')}.mpl`;
}

/** Snapshot of everything before the segment of the same number. */
export function snapshotName(segment: number): string {
  return `snapshot-${segment.toString(16).padStart(8, '0')}.mps`;
}

/** Segment number of a log's or snapshot's name, null for other files. */
export function isLogFile(name: string): number | null {
  const match = /^(?:log-([0-9a-f]{8})\.mpl|snapshot-([0-9a-f]{8})\.mps)$/.exec(name);
  return match === null ? null : Number.parseInt(match[1] ?? match[2] ?? '', 16);
}
