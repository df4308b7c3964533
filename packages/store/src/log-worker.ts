// shell: the thread that writes the log
/**
 * Frames come in slots of shared memory, in order. The worker takes all that wait as one group:
 * seals them (checksums, chain), writes them with one call, flushes once if any of them asks for
 * it, and counts them as done. While it works the next group gathers, so groups size themselves.
 * It blocks between groups; it has no event loop of its own to serve.
 *
 * Any failure of the disk is final: the state says so, the count stops, the message goes up.
 */
import { closeSync, fsyncSync, openSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { DiskTimes } from './disk-times.ts';
import { FrameFile } from './frame-file.ts';
import {
  FORMAT_VERSION,
  FRAME_HEADER_BYTES,
  KIND_LOG,
  KIND_SNAPSHOT,
  encodeFileHeader,
  sealFrame,
} from './frame.ts';
import {
  JOB_CLOSE,
  JOB_CUT,
  JOB_FRAME,
  JOB_SNAPSHOT_END,
  JOB_SNAPSHOT_FRAME,
  LOG_SEGMENT_BYTES,
  SLOTS,
  WORD_DONE,
  WORD_JOBS,
  WORD_STATE,
  WORD_SUBMITTED,
  type WorkerStart,
  isLogFile,
  logName,
  snapshotName,
} from './log-files.ts';

const start = workerData as WorkerStart;
const words = new Int32Array(start.words);
const slots: readonly Buffer[] = start.slots.map((memory) =>
  Buffer.from(memory, 0, memory.byteLength),
);
const identity = {
  version: FORMAT_VERSION,
  clusterId: Buffer.from(start.clusterId),
  memberId: Buffer.from(start.memberId),
};
const times = new DiskTimes(start.times);
let log: FrameFile | null = null;
let chain = start.chain;
let segment = start.segment;
let retired: FrameFile | null = null;
let snapshot: FrameFile | null = null;
let snapshotChain = 0;
let snapshotStartMs = 0;

function syncDirectory(): void {
  const fd = openSync(start.dir, 'r');
  fsyncSync(fd);
  closeSync(fd);
}

function openSegment(firstRevision: number): void {
  const path = join(start.dir, logName(segment));
  const header = { ...identity, kind: KIND_LOG, segment, firstRevision, chain };
  const fresh = new FrameFile(path, 'wx', encodeFileHeader(header));
  fresh.flush();
  syncDirectory();
  // The one before stays open for one more round: the main thread may be flushing it.
  retired?.close();
  retired = log;
  retired?.flush();
  retired?.closeDirect();
  log = fresh;
  parentPort?.postMessage({ kind: 'segment', fd: fresh.fd, segment });
}

function frameIn(slot: number): Buffer {
  const bytes = slots[slot] as Buffer;
  return bytes.subarray(0, FRAME_HEADER_BYTES + bytes.readUInt32LE(16));
}

function writeFrames(file: FrameFile, from: number, to: number): void {
  const frames: Buffer[] = [];
  let needsFlush = false;
  for (let number = from; number !== to; number = (number + 1) | 0) {
    const slot = number & (SLOTS - 1);
    const frame = frameIn(slot);
    chain = sealFrame(frame, chain);
    frames.push(frame);
    if (words[WORD_JOBS + slot * 2 + 1] === 1) needsFlush = true;
  }
  const startMs = performance.now();
  file.append(frames);
  times.addWritten(frames.reduce((sum, frame) => sum + frame.length, 0));
  const writtenMs = performance.now();
  times.writes.record((writtenMs - startMs) / 1000);
  if (!needsFlush) return;
  file.flush();
  times.flushes.record((performance.now() - writtenMs) / 1000);
}

function cut(firstRevision: number): void {
  segment++;
  openSegment(firstRevision);
}

function writeSnapshot(frame: Buffer): void {
  if (snapshot === null) {
    snapshotStartMs = performance.now();
    const header = { ...identity, kind: KIND_SNAPSHOT, segment, firstRevision: 0, chain: 0 };
    const path = join(start.dir, 'snapshot.part');
    snapshot = new FrameFile(path, 'w', encodeFileHeader(header));
    snapshotChain = 0;
  }
  snapshotChain = sealFrame(frame, snapshotChain);
  snapshot.append([frame]);
}

/** The snapshot is whole: names it, then removes what it replaces. */
function endSnapshot(): void {
  if (snapshot === null) return;
  snapshot.flush();
  snapshot.close();
  snapshot = null;
  renameSync(join(start.dir, 'snapshot.part'), join(start.dir, snapshotName(segment)));
  syncDirectory();
  times.snapshots.record((performance.now() - snapshotStartMs) / 1000);
  for (const name of readdirSync(start.dir)) {
    const number = isLogFile(name);
    if (number !== null && number < segment) rmSync(join(start.dir, name));
  }
  parentPort?.postMessage({ kind: 'snapshot', segment });
}

/** Does one job, or all frames in a row; returns the number of the next one. */
function work(file: FrameFile, from: number, to: number): number {
  const slot = from & (SLOTS - 1);
  const job = words[WORD_JOBS + slot * 2];
  if (job === JOB_FRAME) {
    let end = from;
    while (end !== to && words[WORD_JOBS + (end & (SLOTS - 1)) * 2] === JOB_FRAME)
      end = (end + 1) | 0;
    writeFrames(file, from, end);
    const last = slots[(end - 1) & (SLOTS - 1)] as Buffer;
    const isWhole = last.readUInt32LE(48) === 0;
    if (isWhole && file.size > LOG_SEGMENT_BYTES) cut(last.readDoubleLE(32) + 1);
    return end;
  }
  if (job === JOB_CUT) cut((slots[slot] as Buffer).readDoubleLE(32) + 1);
  if (job === JOB_SNAPSHOT_FRAME) writeSnapshot(frameIn(slot));
  if (job === JOB_SNAPSHOT_END) endSnapshot();
  if (job === JOB_CLOSE) file.flush();
  return (from + 1) | 0;
}

function isClose(number: number): boolean {
  return words[WORD_JOBS + (number & (SLOTS - 1)) * 2] === JOB_CLOSE;
}

function explain(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  const what =
    code === 'ENOSPC' ? 'the disk is full; free space on it, then start again' : String(message);
  return `the log in ${start.dir} cannot be written: ${what}`;
}

function run(): void {
  openSegment(start.firstRevision);
  Atomics.store(words, WORD_STATE, 1);
  Atomics.notify(words, WORD_STATE);
  let done = 0;
  for (;;) {
    Atomics.wait(words, WORD_SUBMITTED, done);
    const submitted = Atomics.load(words, WORD_SUBMITTED);
    while (done !== submitted) {
      const isLast = isClose(done);
      if (log !== null) done = work(log, done, submitted);
      Atomics.store(words, WORD_DONE, done);
      Atomics.notify(words, WORD_DONE);
      if (isLast) return;
    }
  }
}

try {
  run();
} catch (error) {
  Atomics.store(words, WORD_STATE, -1);
  parentPort?.postMessage({ kind: 'failed', message: explain(error) });
  Atomics.notify(words, WORD_DONE);
}
