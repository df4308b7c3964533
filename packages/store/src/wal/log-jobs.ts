/** The jobs that the main thread gives the log's thread, taken in order and counted. */
import { FRAME_HEADER_BYTES } from './frame.ts';
import {
  JOB_CLOSE,
  JOB_CUT,
  JOB_FRAME,
  JOB_SNAPSHOT_END,
  JOB_SNAPSHOT_FRAME,
  SLOTS,
  WORD_CHAIN,
  WORD_DONE,
  WORD_FD,
  WORD_JOBS,
  WORD_SUBMITTED,
  WORD_WRITTEN,
  WORD_WRITTEN_SEGMENT,
} from './log-files.ts';
import type { LogWriter } from './log-writer.ts';

export class LogJobs {
  readonly #words: Int32Array;
  readonly #slots: readonly Buffer[];
  readonly #writer: LogWriter;
  /** Counts, wrapping. */
  done: number;
  /** The last job was done; the log is flushed. */
  isClosed = false;

  constructor(words: Int32Array, slots: readonly SharedArrayBuffer[], writer: LogWriter) {
    this.#words = words;
    this.#slots = slots.map((memory) => Buffer.from(memory, 0, memory.byteLength));
    this.#writer = writer;
    this.done = Atomics.load(words, WORD_DONE);
    this.#tellWritten();
  }

  #job(number: number): number {
    return this.#words[WORD_JOBS + (number & (SLOTS - 1)) * 2] ?? 0;
  }

  /** What the job is told: 1 where it needs a flush, or the slot of a snapshot. */
  #argument(number: number): number {
    return this.#words[WORD_JOBS + (number & (SLOTS - 1)) * 2 + 1] ?? 0;
  }

  #slot(number: number): Buffer {
    return this.#slots[number & (SLOTS - 1)] ?? Buffer.alloc(0);
  }

  #snapshotSlot(number: number): Buffer {
    return this.#slots[SLOTS + this.#argument(number)] ?? Buffer.alloc(0);
  }

  /** Does one job, or all frames in a row. False when none waits. Throws what the disk throws. */
  step(): boolean {
    const submitted = Atomics.load(this.#words, WORD_SUBMITTED);
    if (this.done === submitted) return false;
    const words = this.#words;
    this.#writer.resume(words[WORD_WRITTEN] ?? 0, (words[WORD_CHAIN] ?? 0) >>> 0);
    const first = this.done;
    let end = (first + 1) | 0;
    const job = this.#job(first);
    if (job === JOB_FRAME) {
      while (end !== submitted && this.#job(end) === JOB_FRAME) end = (end + 1) | 0;
      this.#writeFrames(first, end);
    }
    if (job === JOB_CUT) this.#writer.cut(this.#slot(first).readDoubleLE(32) + 1);
    if (job === JOB_SNAPSHOT_FRAME) this.#writer.writeSnapshot(frameIn(this.#snapshotSlot(first)));
    if (job === JOB_SNAPSHOT_END) this.#writer.endSnapshot();
    if (job === JOB_CLOSE) {
      this.#writer.flush();
      this.isClosed = true;
    }
    this.#tellWritten();
    this.done = end;
    Atomics.store(this.#words, WORD_DONE, end);
    return true;
  }

  #writeFrames(from: number, end: number): void {
    const frames: Buffer[] = [];
    let needsFlush = false;
    for (let number = from; number !== end; number = (number + 1) | 0) {
      frames.push(frameIn(this.#slot(number)));
      if (this.#argument(number) === 1) needsFlush = true;
    }
    const isWhole = this.#slot((end - 1) | 0).readUInt32LE(48) === 0;
    this.#writer.write(frames, needsFlush, isWhole);
  }

  /**
   * The main thread flushes buffered writes, so it must know what it has flushed; while no job
   * waits it also appends small ones itself.
   */
  #tellWritten(): void {
    const { segment } = this.#writer;
    if (Atomics.load(this.#words, WORD_WRITTEN_SEGMENT) !== segment) {
      Atomics.store(this.#words, WORD_WRITTEN, 0);
      Atomics.store(this.#words, WORD_WRITTEN_SEGMENT, segment);
    }
    Atomics.store(this.#words, WORD_WRITTEN, this.#writer.size);
    Atomics.store(this.#words, WORD_CHAIN, this.#writer.chain | 0);
    Atomics.store(this.#words, WORD_FD, this.#writer.fd);
  }
}

function frameIn(slot: Buffer): Buffer {
  return slot.subarray(0, FRAME_HEADER_BYTES + slot.readUInt32LE(16));
}
