// shell: reads a directory that a simulated crash left
/** A store with its real log, snapshots and reader, over a simulated disk, thread and clock. */
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Random } from '@megaplane/base/random';
import type { PrefixPolicy, Durability } from '../contract.ts';
import { DiskTimes } from '../disk-times.ts';
import { closeLog } from '../open/closing.ts';
import { FLUSH_IDLE, WORD_FLUSH_STATE, WORD_STATE, type WorkerStart } from '../wal/log-files.ts';
import { LogJobs } from '../wal/log-jobs.ts';
import type { LogThread, LogWorld, WorkerNews } from '../wal/log-thread.ts';
import { LogWriter } from '../wal/log-writer.ts';
import { Log } from '../open/log.ts';
import { replayDirectory } from '../recovery/replay.ts';
import { Restorer } from '../recovery/restorer.ts';
import { SimulatedDisk, materialize } from './simulated-disk.sim.ts';
import { Snapshots } from '../snapshot/snapshots.ts';
import { Store } from '../mvcc/store.ts';

/** Segments end soon, so that there are many. */
const SEGMENT_BYTES = 8 * 1024;
const FLUSH_MS = 100;
/** The reader's flushes cost nothing where files are memory. */
const MEMORY = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

/** A flush of the main thread: asked for, then done, then told. */
interface Flush {
  readonly fd: number;
  readonly callback: (error: Error | null) => void;
  outcome?: Error | null;
}

/** Thread and timers of a log, moved on by the simulation alone. */
class SimulatedThread implements LogThread, LogWorld {
  readonly disk: SimulatedDisk;
  readonly clock: { nowMs: number };
  #jobs: LogJobs | null = null;
  #words: Int32Array = new Int32Array(0);
  #onNews: (news: WorkerNews) => void = () => {};
  #waiting: { readonly done: number; readonly callback: () => void } | null = null;
  #onTimer: () => void = () => {};
  #timerMs = 0;
  readonly #flushes: Flush[] = [];
  readonly #pauses: (() => void)[] = [];
  /** Told, and not heard yet. */
  readonly #news: WorkerNews[] = [];
  hasFailed = false;
  #onEnd: () => void = () => {};

  constructor(disk: SimulatedDisk, clock: { nowMs: number }) {
    this.disk = disk;
    this.clock = clock;
  }

  start(start: WorkerStart, onNews: (news: WorkerNews) => void): LogThread {
    this.#onNews = onNews;
    this.#words = new Int32Array(start.words);
    const words = this.#words;
    const writer = new LogWriter({
      disk: this.disk,
      clusterId: Buffer.from(start.clusterId),
      memberId: Buffer.from(start.memberId),
      segment: start.segment,
      chain: start.chain,
      times: new DiskTimes(start.times),
      nowMs: () => this.clock.nowMs,
      segmentBytes: SEGMENT_BYTES,
      flushedElsewhere: (segment) => (words[6] === segment ? (words[5] ?? 0) : 0),
      flushesWell: () => {
        // meanwhile the main thread goes on: its flush ends, and it hears of that
        while (this.#flushes.length > 0) this.#stepFlush();
        return words[WORD_FLUSH_STATE] === FLUSH_IDLE;
      },
      heldElsewhere: () => words[9] ?? 0,
      onSegment: (fd, segment) => this.#news.push({ kind: 'segment', fd, segment }),
      onSnapshot: (isNamed) => this.#news.push({ kind: 'snapshot', isNamed }),
    });
    this.#guarded(() => {
      writer.start(start.firstRevision);
      this.#jobs = new LogJobs(words, start.slots, writer);
    });
    return this;
  }

  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.hasFailed = true;
      this.#words[WORD_STATE] = -1;
      this.#news.push({ kind: 'failed', message: (error as Error).message });
    }
    if (this.hasFailed || this.#jobs?.isClosed === true) this.#onEnd();
  }

  wake(): void {}

  /** All goes through the thread, whose pace is simulated. */
  appendHere(): boolean {
    return false;
  }

  whenDone(done: number, callback: () => void): void {
    this.#waiting = { done, callback };
  }

  flush(fd: number, callback: (error: Error | null) => void): void {
    this.#flushes.push({ fd, callback });
  }

  #stepFlush(): void {
    const [flush] = this.#flushes;
    if (flush === undefined) return;
    if (flush.outcome !== undefined) {
      this.#flushes.shift();
      flush.callback(flush.outcome);
      return;
    }
    try {
      this.disk.flush(flush.fd);
      flush.outcome = null;
    } catch (error) {
      flush.outcome = error as Error;
    }
  }

  join(): Promise<void> {
    const ended = this.hasFailed || this.#jobs?.isClosed === true;
    return ended ? Promise.resolve() : new Promise((resolve) => (this.#onEnd = resolve));
  }

  end(): void {
    this.hasFailed = true;
    this.#onEnd();
  }

  nowMs(): number {
    return this.clock.nowMs;
  }

  wallMs(): number {
    // Somebody sets the clock all the time, by hours.
    return 1_700_000_000_000 + Math.sin(this.clock.nowMs) * 36_000_000;
  }

  every(_ms: number, callback: () => void): () => void {
    this.#onTimer = callback;
    return () => (this.#onTimer = () => {});
  }

  pause(): Promise<void> {
    return new Promise((resolve) => this.#pauses.push(resolve));
  }

  /** Pauses end. */
  goOn(): void {
    for (const resolve of this.#pauses.splice(0)) resolve();
  }

  /** The thread does one group of jobs. */
  step(): void {
    if (!this.hasFailed) this.#guarded(() => this.#jobs?.step());
  }

  /** The main thread hears of jobs that were done. */
  hear(): void {
    for (const news of this.#news.splice(0)) this.#onNews(news);
    const waiting = this.#waiting;
    if (waiting === null || (this.#words[1] ?? 0) === waiting.done) return;
    this.#waiting = null;
    waiting.callback();
  }

  /** Timers that are due, and flushes that were asked for. */
  tick(): void {
    if (this.clock.nowMs >= this.#timerMs) {
      this.#timerMs = this.clock.nowMs + FLUSH_MS;
      this.#onTimer();
    }
    this.#stepFlush();
  }
}

export interface SimulatedOptions {
  readonly durability: Durability;
  readonly prefixes: readonly PrefixPolicy[];
}

/** One run of the process, from a start to its crash. */
export class SimulatedStore {
  readonly store: Store;
  readonly disk: SimulatedDisk;
  readonly thread: SimulatedThread;
  readonly clusterId: Buffer = Buffer.alloc(8, 1);
  readonly memberId: Buffer = Buffer.alloc(8, 2);
  readonly term: number;
  /** Everything logged up to here was found at the start. */
  readonly lastRevision: number;
  readonly #log: Log;
  readonly #snapshots: Snapshots;
  #isDirty = false;
  failure: string | null = null;

  /** Starts from `files`; `boot` names the machine's boot. Throws what the reader throws. */
  constructor(
    options: SimulatedOptions,
    files: ReadonlyMap<string, Buffer>,
    random: Random,
    clock: { nowMs: number },
    boot: number,
  ) {
    const store = new Store({ ...options, dataDir: 'simulated' }, random.below(2 ** 32));
    const restorer = new Restorer(store, clock.nowMs);
    const place = { high: boot, low: 7 };
    const dir = mkdtempSync(join(MEMORY, 'megaplane-sim-'));
    this.disk = new SimulatedDisk(random);
    let found: ReturnType<typeof replayDirectory>;
    try {
      materialize(files, dir);
      found = replayDirectory(dir, restorer);
      for (const name of readdirSync(dir)) this.disk.put(name, readFileSync(join(dir, name)));
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
    if (found !== null) restorer.finish(place);
    this.store = store;
    this.thread = new SimulatedThread(this.disk, clock);
    store.onDirty = () => (this.#isDirty = true);
    store.onLogFailure((message) => (this.failure = message));
    const { clusterId, memberId } = this;
    const segment = found?.nextSegment ?? 0;
    const chain = found?.chain ?? 0;
    const wallMs = restorer.latestWallMs;
    const logOptions = { dir: 'simulated', clusterId, memberId, segment, chain, wallMs };
    this.#log = new Log(store, logOptions, this.thread);
    this.term = restorer.term + 1;
    this.lastRevision = restorer.lastRevision;
    store.batch.term(this.term, place.high, place.low);
    this.#snapshots = new Snapshots(store, this.#log, this.term, place);
    this.endTurn();
  }

  /** What the event loop does after the sockets. */
  endTurn(): void {
    this.#isDirty = false;
    this.store.flush();
    this.#log.submit();
  }

  /** Ends it as a signal does; its steps wait for `thread.goOn`. */
  close(): Promise<void> {
    const turn = (): Promise<void> => this.thread.pause();
    return closeLog({ store: this.store, log: this.#log, snapshots: this.#snapshots, turn });
  }

  get isDirty(): boolean {
    return this.#isDirty;
  }

  snapshot(): void {
    this.#snapshots.begin();
  }

  tick(nowMs: number): void {
    this.store.tick(nowMs);
    this.#snapshots.step();
    this.thread.tick();
  }
}
