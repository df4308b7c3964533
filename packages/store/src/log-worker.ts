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
import { LogJobs } from './log-jobs.ts';
import {
  LOG_SEGMENT_BYTES,
  WORD_DONE,
  WORD_FLUSHED,
  WORD_FLUSHED_SEGMENT,
  WORD_STATE,
  WORD_SUBMITTED,
  type WorkerStart,
  writeFailure,
} from './log-files.ts';
import { type LogDisk, LogWriter } from './log-writer.ts';

const start = workerData as WorkerStart;
const words = new Int32Array(start.words);
const at = (name: string): string => join(start.dir, name);

const disk: LogDisk = {
  create: (name, isNew, header) => new FrameFile(at(name), isNew ? 'wx' : 'w', header),
  sync: () => {
    const fd = openSync(start.dir, 'r');
    fsyncSync(fd);
    closeSync(fd);
  },
  rename: (from, to) => renameSync(at(from), at(to)),
  list: () => readdirSync(start.dir),
  remove: (name) => rmSync(at(name)),
};

const writer = new LogWriter({
  disk,
  clusterId: Buffer.from(start.clusterId),
  memberId: Buffer.from(start.memberId),
  segment: start.segment,
  chain: start.chain,
  times: new DiskTimes(start.times),
  nowMs: () => performance.now(),
  segmentBytes: LOG_SEGMENT_BYTES,
  flushedElsewhere: (segment) =>
    Atomics.load(words, WORD_FLUSHED_SEGMENT) === segment ? Atomics.load(words, WORD_FLUSHED) : 0,
  onSegment: (fd, segment) => parentPort?.postMessage({ kind: 'segment', fd, segment }),
  onSnapshot: (segment) => parentPort?.postMessage({ kind: 'snapshot', segment }),
});

function run(): void {
  writer.start(start.firstRevision);
  Atomics.store(words, WORD_STATE, 1);
  Atomics.notify(words, WORD_STATE);
  const jobs = new LogJobs(words, start.slots, writer);
  while (!jobs.isClosed) {
    Atomics.wait(words, WORD_SUBMITTED, jobs.done);
    while (!jobs.isClosed && jobs.step()) Atomics.notify(words, WORD_DONE);
  }
}

try {
  run();
} catch (error) {
  Atomics.store(words, WORD_STATE, -1);
  parentPort?.postMessage({ kind: 'failed', message: writeFailure(start.dir, error) });
  Atomics.notify(words, WORD_DONE);
}
