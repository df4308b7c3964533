/**
 * The store's side of the log.
 *
 * Moves what the store has applied into slots of shared memory, one frame per slot, and publishes
 * when the worker says that a frame is as durable as its classes promise. When all slots are on
 * their way nothing is copied: the records wait in their arenas and go with the next frame, so a
 * slow disk makes larger groups, not longer queues.
 */
import { DiskTimes } from '../disk-times.ts';
import {
  FLAG_GOES_ON,
  FRAME_BYTES_MAX,
  FRAME_HEADER_BYTES,
  writeFrameHeader,
} from '../wal/frame.ts';
import {
  FLUSH_FAILED,
  FLUSH_IDLE,
  FLUSH_RUNS,
  JOB_CLOSE,
  JOB_CUT,
  JOB_FRAME,
  JOB_SNAPSHOT_END,
  JOB_SNAPSHOT_FRAME,
  SLOTS,
  SLOT_BYTES,
  SNAPSHOT_SLOTS,
  WORDS,
  WORD_DONE,
  WORD_JOBS,
  WORD_FLUSHED,
  WORD_FLUSHED_SEGMENT,
  WORD_FLUSH_STATE,
  WORD_HELD_SEGMENT,
  WORD_STATE,
  WORD_SUBMITTED,
  WORD_WRITTEN,
  WORD_WRITTEN_SEGMENT,
  type WorkerStart,
  writeFailure,
} from '../wal/log-files.ts';
import {
  type LogThread,
  type LogWorld,
  REAL_LOG_WORLD,
  type WorkerNews,
} from '../wal/log-thread.ts';
import type { Store } from '../mvcc/store.ts';

/** Buffered writes are flushed at latest after this. */
const BUFFERED_FLUSH_MS = 100;
/**
 * Groups up to this are written by the thread that gathered them, unless they need a flush: into
 * the page cache that takes 0.1 ms, and waking another thread and being woken by it takes as long.
 */
const HERE_BYTES_MAX = 128 * 1024;
/** How far ahead revisions are reserved that leave no record in the log. */
const RESERVED_REVISIONS = 10_000_000;

export interface LogOptions {
  readonly dir: string;
  readonly clusterId: Buffer;
  readonly memberId: Buffer;
  readonly segment: number;
  readonly chain: number;
  /** The latest time that a frame before these tells. */
  readonly wallMs: number;
  /** Where the count of jobs begins. */
  readonly firstJob?: number;
}

export class Log {
  readonly #store: Store;
  readonly #dir: string;
  readonly #world: LogWorld;
  readonly #thread: LogThread;
  readonly #words = new Int32Array(new SharedArrayBuffer(WORDS * 4));
  readonly #slots: readonly Buffer[];
  /** Per slot: the revision that its completion makes durable, 0 for none. */
  readonly #revisions = new Float64Array(SLOTS);
  readonly #changes = new Float64Array(SLOTS);
  readonly #sizes = new Float64Array(SLOTS);
  /** Jobs, counted as the thread counts them: wrapping, as 32 bits with a sign. */
  #submitted: number;
  #done: number;
  /** The job that each slot of snapshots was given with, null before the first; and the next. */
  readonly #snapshotJobs: (number | null)[] = Array.from({ length: SNAPSHOT_SLOTS }, () => null);
  #snapshotSlot = 0;
  #frameNumber = 0;
  #framesUnderWay = 0;
  #needsFlush = false;
  #reserved = 0;
  #fd = -1;
  #isUnflushed = false;
  #isFlushing = false;
  /** What is done but waits for the end of a flush, see `#collect`; 0 for nothing. */
  #lateRevision = 0;
  #lateChange = 0;
  /**
   * What the time of frames is ahead of the monotonic one: the machine's clock may be set while
   * the process runs, or have been set back since the last one, and leases go by these times.
   */
  readonly #wallFromMs: number;
  readonly #stopFlushing: () => void;
  #isStopping = false;
  #isWaiting = false;
  /** Called when the worker has finished a snapshot, or found that somebody removed it. */
  onSnapshot: () => void = () => {};
  segment: number;
  /** Bytes written to the current segment and the ones since the last snapshot. */
  bytesSinceSnapshot = 0;
  /** Some keys are not logged at all. */
  readonly hasUnlogged: boolean;
  /** Bytes of the newest snapshot. */
  snapshotBytes = 0;
  #snapshotGrows = 0;
  #bytesAtCut = 0;
  readonly times: DiskTimes = new DiskTimes();

  constructor(store: Store, options: LogOptions, world: LogWorld = REAL_LOG_WORLD) {
    this.#store = store;
    this.#world = world;
    this.#dir = options.dir;
    this.#wallFromMs = Math.max(world.wallMs(), options.wallMs) - world.nowMs();
    this.segment = options.segment;
    this.#submitted = this.#done = options.firstJob ?? 0;
    this.#words[WORD_SUBMITTED] = this.#words[WORD_DONE] = this.#done;
    const memory = Array.from({ length: SLOTS + SNAPSHOT_SLOTS }, () => slotMemory());
    this.#slots = memory.map((slot) => Buffer.from(slot, 0, FRAME_HEADER_BYTES + FRAME_BYTES_MAX));
    const start: WorkerStart = {
      dir: options.dir,
      words: this.#words.buffer,
      slots: memory,
      times: this.times.memory,
      clusterId: options.clusterId,
      memberId: options.memberId,
      segment: options.segment,
      firstRevision: store.appliedRevision + 1,
      chain: options.chain,
    };
    this.#thread = this.#world.start(start, (news) => this.#onNews(news));
    this.#stopFlushing = this.#world.every(BUFFERED_FLUSH_MS, () => this.#flushBuffered());
    const modes = store.classes.all.map(({ durability }) => durability);
    this.hasUnlogged = modes.includes('none');
    if (this.hasUnlogged || modes.includes('buffered')) this.#reserve();
  }

  #reserve(): void {
    this.#reserved = this.#store.appliedRevision + RESERVED_REVISIONS;
    this.#store.batch.reserve(this.#reserved, this.hasUnlogged);
  }

  #onNews(news: WorkerNews): void {
    switch (news.kind) {
      case 'segment':
        this.#fd = news.fd;
        this.segment = news.segment;
        this.#letGo();
        break;
      case 'snapshot':
        if (news.isNamed) this.#countSnapshot();
        this.#snapshotGrows = 0;
        this.onSnapshot();
        break;
      case 'failed':
        this.#store.fail(news.message);
        break;
    }
  }

  /** Revisions up to here may be shown without a flushed record; 0 when all have one. */
  get reserved(): number {
    return this.#reserved;
  }

  /** The segment that is written, -1 before it is known. */
  get file(): number {
    return this.#fd;
  }

  /** The time that leases go by. */
  get nowMs(): number {
    return this.#world.nowMs();
  }

  /** Jobs that are not done; at most SLOTS. */
  get busySlots(): number {
    return (this.#submitted - this.#done) | 0;
  }

  /** End of a turn: hands over what was applied, as far as slots are free. */
  submit(): void {
    if (this.#store.hasFailed) return;
    this.#collect();
    const { batch } = this.#store;
    if (
      this.#reserved > 0 &&
      this.#store.appliedRevision > this.#reserved - RESERVED_REVISIONS / 2
    ) {
      this.#reserve();
    }
    while (this.busySlots < SLOTS && !batch.isDrained) this.#submitFrame();
    if (batch.isPending && this.#isAllDone) this.#publishAll();
    this.#wait();
  }

  #submitFrame(): void {
    const store = this.#store;
    const slot = this.#slots[this.#submitted & (SLOTS - 1)] as Buffer;
    const controlSize = store.batch.takeControl(slot, FRAME_HEADER_BYTES);
    const end = store.batch.takeRecords(slot, FRAME_HEADER_BYTES + controlSize);
    const size = end - FRAME_HEADER_BYTES;
    const isWhole = store.batch.isDrained;
    const flags = isWhole ? 0 : FLAG_GOES_ON;
    this.#frameNumber++;
    writeFrameHeader(
      slot,
      size,
      controlSize,
      this.#frameNumber,
      store.appliedRevision,
      this.#wallFromMs + this.#world.nowMs(),
      flags,
    );
    if (store.batch.needsFlush) this.#needsFlush = true;
    const needsFlush = this.#needsFlush && isWhole;
    if (isWhole) {
      store.batch.needsFlush = false;
      this.#needsFlush = false;
    }
    this.bytesSinceSnapshot += end;
    if (!needsFlush) this.#isUnflushed = true;
    if (isWhole && !needsFlush && this.#appendHere(slot.subarray(0, end))) {
      store.settle(size);
      return;
    }
    this.#framesUnderWay++;
    this.#give(JOB_FRAME, needsFlush ? 1 : 0, isWhole ? store.appliedRevision : 0, size);
  }

  /** Handing a small group over would cost more, and take longer, than writing it. */
  #appendHere(frame: Buffer): boolean {
    if (frame.length > HERE_BYTES_MAX || this.busySlots > 0 || this.#isStopping) return false;
    try {
      return this.#thread.appendHere(frame);
    } catch (error) {
      // It stays under way for ever: nothing after it is published.
      this.#framesUnderWay++;
      this.#store.fail(writeFailure(this.#dir, error));
      return true;
    }
  }

  #give(job: number, argument: number, revision: number, size: number): void {
    const index = this.#submitted & (SLOTS - 1);
    this.#words[WORD_JOBS + index * 2] = job;
    this.#words[WORD_JOBS + index * 2 + 1] = argument;
    this.#revisions[index] = revision;
    this.#changes[index] = this.#store.appliedChange;
    this.#sizes[index] = size;
    this.#submitted = (this.#submitted + 1) | 0;
    Atomics.store(this.#words, WORD_SUBMITTED, this.#submitted);
    this.#thread.wake();
  }

  get #isAllDone(): boolean {
    return this.#framesUnderWay === 0 && this.#lateRevision === 0 && this.#store.batch.isDrained;
  }

  /**
   * Takes note of finished jobs and publishes what they made durable. A flush of this thread that
   * runs beside one of the worker's may be the only one of both that hears of an error (Linux tells
   * it once for a descriptor): so it is waited for.
   */
  #collect(): void {
    const done = Atomics.load(this.#words, WORD_DONE);
    let revision = 0;
    let change = 0;
    let isLate = this.#lateRevision > 0;
    while (this.#done !== done) {
      const index = this.#done & (SLOTS - 1);
      if (this.#words[WORD_JOBS + index * 2] === JOB_FRAME) {
        this.#framesUnderWay--;
        this.#store.settle(this.#sizes[index] as number);
        isLate ||= this.#isFlushing && this.#words[WORD_JOBS + index * 2 + 1] === 1;
      }
      if ((this.#revisions[index] as number) > 0) {
        revision = this.#revisions[index] as number;
        change = this.#changes[index] as number;
      }
      this.#done = (this.#done + 1) | 0;
    }
    if (revision === 0) return;
    if (isLate) {
      this.#lateRevision = revision;
      this.#lateChange = change;
    } else this.#publishDone(revision, change);
  }

  #publishDone(revision: number, change: number): void {
    if (this.#isAllDone) this.#publishAll();
    else this.#store.publish(revision, change);
  }

  /** The flush that was waited for has ended well. */
  #publishLate(): void {
    const revision = this.#lateRevision;
    this.#lateRevision = 0;
    if (revision > 0) this.#publishDone(revision, this.#lateChange);
  }

  #publishAll(): void {
    this.#store.batch.isPending = false;
    this.#store.publish(this.#store.appliedRevision);
  }

  /** Asks to be called when the worker finishes something. */
  #wait(): void {
    if (this.#isWaiting || this.#done === this.#submitted) return;
    this.#isWaiting = true;
    this.#thread.whenDone(this.#done, () => this.#resume());
  }

  #resume(): void {
    this.#isWaiting = false;
    this.submit();
  }

  /** Files before the one that is flushed next may be closed, unless one is being flushed. */
  #letGo(): void {
    if (!this.#isFlushing) Atomics.store(this.#words, WORD_HELD_SEGMENT, this.segment);
  }

  #flushBuffered(): void {
    if (!this.#isUnflushed || this.#isFlushing || this.#fd < 0) return;
    this.#isFlushing = true;
    const segment = Atomics.load(this.#words, WORD_WRITTEN_SEGMENT);
    const written = Atomics.load(this.#words, WORD_WRITTEN);
    const isSame =
      segment === this.segment && segment === Atomics.load(this.#words, WORD_WRITTEN_SEGMENT);
    // Of a segment that was begun meanwhile the descriptor is not known yet.
    this.#isUnflushed = !isSame;
    Atomics.store(this.#words, WORD_FLUSH_STATE, FLUSH_RUNS);
    this.#thread.flush(this.#fd, (error) => {
      this.#isFlushing = false;
      Atomics.store(this.#words, WORD_FLUSH_STATE, error === null ? FLUSH_IDLE : FLUSH_FAILED);
      Atomics.notify(this.#words, WORD_FLUSH_STATE);
      this.#letGo();
      if (error === null && isSame) {
        // In this order, so that the worker never reads too many bytes for a segment.
        Atomics.store(this.#words, WORD_FLUSHED, 0);
        Atomics.store(this.#words, WORD_FLUSHED_SEGMENT, segment);
        Atomics.store(this.#words, WORD_FLUSHED, written);
      }
      if (error === null) this.#publishLate();
      // A thread that has failed ends, and its files with it: its own word says why.
      else if (!this.#hasThreadFailed()) {
        this.#store.fail(`the log cannot be flushed: ${error.message}`);
      }
    });
  }

  /** Begins a new segment: what was applied up to now stays in the ones before. */
  cut(): void {
    this.submit();
    this.#bytesAtCut = this.bytesSinceSnapshot;
    const slot = this.#slots[this.#submitted & (SLOTS - 1)] as Buffer;
    writeFrameHeader(slot, 0, 0, 0, this.#store.appliedRevision, 0, 0);
    this.#give(JOB_CUT, 0, 0, 0);
    this.#wait();
  }

  /**
   * The memory for the next frame of a snapshot, its payload behind FRAME_HEADER_BYTES;
   * `giveSnapshot` sends it. Null while all of it is on its way.
   */
  snapshotFrame(): Buffer | null {
    const job = this.#snapshotJobs[this.#snapshotSlot] ?? null;
    if (job !== null && ((this.#done - job) | 0) <= 0) return null;
    return this.#slots[SLOTS + this.#snapshotSlot] as Buffer;
  }

  giveSnapshot(size: number, controlSize: number, revision: number, goesOn: boolean): void {
    const slot = this.#snapshotSlot;
    const flags = goesOn ? FLAG_GOES_ON : 0;
    const wallMs = this.#wallFromMs + this.#world.nowMs();
    const frame = this.#slots[SLOTS + slot] as Buffer;
    writeFrameHeader(frame, size, controlSize, 0, revision, wallMs, flags);
    this.#snapshotGrows += FRAME_HEADER_BYTES + size;
    this.#snapshotJobs[slot] = this.#submitted;
    this.#snapshotSlot = (slot + 1) % SNAPSHOT_SLOTS;
    this.#give(JOB_SNAPSHOT_FRAME, slot, 0, 0);
    this.#wait();
  }

  endSnapshot(): void {
    this.#give(JOB_SNAPSHOT_END, 0, 0, 0);
    this.#wait();
  }

  /** What it replaces is gone; one that was lost replaces nothing, and the next is due at once. */
  #countSnapshot(): void {
    this.snapshotBytes = this.#snapshotGrows;
    this.bytesSinceSnapshot -= this.#bytesAtCut;
  }

  #hasThreadFailed(): boolean {
    return Atomics.load(this.#words, WORD_STATE) === -1;
  }

  get #hasFailed(): boolean {
    return this.#store.hasFailed || this.#hasThreadFailed();
  }

  /** False when the log has failed. */
  async #drain(): Promise<boolean> {
    while (!this.#store.batch.isDrained || this.busySlots > 0) {
      if (this.#hasFailed) return false;
      this.submit();
      await this.#world.pause();
    }
    return !this.#hasFailed;
  }

  async #flushAll(): Promise<void> {
    while (this.#isFlushing) await this.#world.pause();
    this.#flushBuffered();
    while (this.#isFlushing) await this.#world.pause();
  }

  /**
   * Writes out what is left, flushes, ends the worker. A log that fails on the way tells its store
   * so, as always, and writes no more: after a failed flush the next one may say that all is well.
   */
  async close(): Promise<void> {
    this.#isStopping = true;
    this.#stopFlushing();
    const ended = this.#thread.join();
    const isWritten = (await this.#drain()) && (await this.#writeClosed());
    if (isWritten) this.#give(JOB_CLOSE, 1, 0, 0);
    else if (!this.#hasThreadFailed()) this.#thread.end();
    await ended;
    if (!this.#hasFailed) this.#collect();
  }

  async #writeClosed(): Promise<boolean> {
    // Flushed before the last word is written, which thereby tells it of everything before.
    await this.#flushAll();
    if (this.#hasFailed) return false;
    this.#store.batch.closed();
    return this.#drain();
  }
}

/** Only growable memory begins at a page, which direct writes ask for. */
function slotMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(SLOT_BYTES, { maxByteLength: SLOT_BYTES });
}
