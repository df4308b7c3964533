/** Long runs at a given rate: the longest stall of the server, and whether its memory stays. */
import type { GrpcClient } from '@megaplane/wire/grpc';
import * as harness from '../harness.ts';
import { Load, type Request, fill, scattered } from './load.ts';
import { Calls, PATHS, revisionOf, writeCompact, writeGet } from './requests.ts';
import type { Figures, Setting } from './scenarios.ts';
import { PORT, type Started, connections } from './servers.ts';

const STALL_RATE = 100_000;
const SOAK_RATE = 50_000;
const STALL_COMPACT_MS = 10_000;
const SOAK_COMPACT_MS = 60_000;
/** Of the run, before memory counts. */
const WARM_SHARE = 1 / 6;
const SNAPSHOT_PATH = '/etcdserverpb.Maintenance/Snapshot';

/** More than these never wait at once: a fifth of a second at the highest rate. */
const IN_FLIGHT_MAX = 20_000;

/** Requests at a rate; what the server had no time for is left out, not sent later. */
class Pace {
  readonly load: Load;
  readonly #clients: number;
  #due = 0;

  constructor(clients: readonly GrpcClient[], request: Request, keys: number) {
    const next = scattered(keys);
    this.#clients = clients.length;
    this.load = new Load(clients, request, () => (this.#due-- > 0 ? next() : -1));
  }

  /** Calls `everySecond`, unless what it did last is still going on. Requests a second. */
  async run(perSecond: number, seconds: number, everySecond: () => Promise<void>): Promise<number> {
    const startMs = performance.now();
    let beforeMs = startMs;
    let owed = 0;
    let seconded: Promise<void> | null = null;
    let nextMs = startMs;
    while (this.load.failure === null) {
      const nowMs = performance.now();
      if (nowMs - startMs > seconds * 1000) break;
      const room = IN_FLIGHT_MAX - this.load.inFlight;
      owed = Math.min(room, owed + ((nowMs - beforeMs) / 1000) * perSecond);
      beforeMs = nowMs;
      const each = Math.floor(owed / this.#clients);
      if (each > 0) {
        this.#due = each * this.#clients;
        owed -= this.#due;
        this.load.start(each);
        this.#due = 0;
      }
      if (nowMs >= nextMs && seconded === null) {
        nextMs = nowMs + 1000;
        seconded = everySecond().finally(() => (seconded = null));
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    await seconded;
    await this.load.idle();
    return this.load.answered / ((performance.now() - startMs) / 1000);
  }
}

/** Work beside the load, for whose end nobody waits: a compaction tells when memory is back. */
class Chore {
  readonly #work: () => Promise<unknown>;
  readonly #everyMs: number;
  #lastMs = performance.now();
  #running: Promise<void> | null = null;
  done = 0;

  constructor(everyMs: number, work: () => Promise<unknown>) {
    this.#everyMs = everyMs;
    this.#work = work;
  }

  /** Begins it where it is time and the last one is over. */
  step(): void {
    if (this.#running !== null || performance.now() - this.#lastMs < this.#everyMs) return;
    this.#lastMs = performance.now();
    this.#running = this.#work().then(() => {
      this.done++;
      this.#running = null;
    });
  }

  async end(): Promise<void> {
    await this.#running;
  }
}

async function stallSeconds(): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${PORT}/metrics`)).text();
  return Number(/^megaplane_event_loop_stall_seconds (\S+)/m.exec(text)?.[1] ?? NaN);
}

async function compact(client: GrpcClient): Promise<void> {
  const calls = new Calls();
  let revision = 0;
  await calls.once(client, PATHS.range, writeGet(calls.message, 0), (bytes, start, end) => {
    revision = revisionOf(bytes, start, end);
  });
  await calls.once(client, PATHS.compact, writeCompact(calls.message, revision));
}

/** Updates at 100,000 a second while history is compacted and a backup is read. */
export async function stall(
  setting: Setting,
  _started: Started,
  request: Request,
): Promise<Figures> {
  const clients = connections(10);
  await fill(clients, request, setting.keys);
  const [backups, other] = connections(2);
  if (backups === undefined || other === undefined) return {};
  const calls = new Calls();
  const compactions = new Chore(STALL_COMPACT_MS, () => compact(other));
  const readings = new Chore(0, () => calls.once(backups, SNAPSHOT_PATH, 0));
  const stalls: number[] = [];
  await stallSeconds();
  const rate = await new Pace(clients, request, setting.keys).run(
    STALL_RATE,
    setting.seconds,
    async () => {
      stalls.push((await stallSeconds()) * 1000);
      readings.step();
      compactions.step();
    },
  );
  await readings.end();
  await compactions.end();
  return {
    'per second': rate,
    'longest stall ms': Math.max(...stalls),
    'median of seconds ms': harness.median(stalls),
    compactions: compactions.done,
    backups: readings.done,
  };
}

/** Updates at half load, a compaction every minute: memory after a sixth of the time, and then. */
export async function soak(setting: Setting, started: Started, request: Request): Promise<Figures> {
  const clients = connections(10);
  await fill(clients, request, setting.keys);
  const [other] = connections(1);
  if (other === undefined) return {};
  const startMs = performance.now();
  const compactions = new Chore(SOAK_COMPACT_MS, () => compact(other));
  const sizes: number[] = [];
  const rate = await new Pace(clients, request, setting.keys).run(
    SOAK_RATE,
    setting.seconds,
    async () => {
      const isWarm = performance.now() - startMs > setting.seconds * 1000 * WARM_SHARE;
      if (isWarm) sizes.push(harness.rssMib(started.pid));
      compactions.step();
    },
  );
  await compactions.end();
  const half = sizes.length >> 1;
  const peak = (from: number, to: number): number => Math.max(...sizes.slice(from, to));
  const [early, late] = [peak(0, half), peak(half, sizes.length)];
  return {
    'per second': rate,
    'peak, first half MiB': early,
    'peak, second half MiB': late,
    'growth %': (late / early - 1) * 100,
    compactions: compactions.done,
  };
}
