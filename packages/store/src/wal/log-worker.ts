// shell: the thread that writes the log
/**
 * Frames come in slots of shared memory, in order. The worker takes all that wait as one group:
 * seals them (checksums, chain), writes them with one call, flushes once if any of them asks for
 * it, and counts them as done. While it works the next group gathers, so groups size themselves.
 * It blocks between groups; it has no event loop of its own to serve.
 *
 * Any failure of the disk is final: the state says so, the count stops, the message goes up.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { DiskTimes } from '../disk-times.ts';
import { DirectoryDisk } from './log-disk.ts';
import { LogJobs } from './log-jobs.ts';
import {
  FLUSH_IDLE,
  FLUSH_RUNS,
  LOG_SEGMENT_BYTES,
  WORD_DONE,
  WORD_FLUSH_STATE,
  WORD_FLUSHED,
  WORD_FLUSHED_SEGMENT,
  WORD_HELD_SEGMENT,
  WORD_STATE,
  WORD_SUBMITTED,
  type WorkerStart,
  writeFailure,
} from './log-files.ts';
import { LogWriter } from './log-writer.ts';

const start = workerData as WorkerStart;
const words = new Int32Array(start.words);

const writer = new LogWriter({
  disk: new DirectoryDisk(start.dir),
  clusterId: Buffer.from(start.clusterId),
  memberId: Buffer.from(start.memberId),
  segment: start.segment,
  chain: start.chain,
  times: new DiskTimes(start.times),
  nowMs: () => performance.now(),
  segmentBytes: LOG_SEGMENT_BYTES,
  flushedElsewhere: (segment) =>
    Atomics.load(words, WORD_FLUSHED_SEGMENT) === segment ? Atomics.load(words, WORD_FLUSHED) : 0,
  flushesWell,
  heldElsewhere: () => Atomics.load(words, WORD_HELD_SEGMENT),
  onSegment: (fd, segment) => parentPort?.postMessage({ kind: 'segment', fd, segment }),
  onSnapshot: (isNamed) => parentPort?.postMessage({ kind: 'snapshot', isNamed }),
});

/** The main thread tells of its flush in a turn of its own, and never waits for this thread. */
function flushesWell(): boolean {
  for (;;) {
    const state = Atomics.load(words, WORD_FLUSH_STATE);
    if (state !== FLUSH_RUNS) return state === FLUSH_IDLE;
    Atomics.wait(words, WORD_FLUSH_STATE, FLUSH_RUNS);
  }
}

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
