/** Long runs at a given rate: the longest stall of the server, and whether its memory stays. */
import { setTimeout as sleep } from 'node:timers/promises';
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

/** A request at a rate that does not depend on the answers. */
class Pace {
  readonly load: Load;
  #due = 0;

  constructor(clients: readonly GrpcClient[], request: Request, keys: number) {
    const next = scattered(keys);
    this.load = new Load(clients, request, () => (this.#due-- > 0 ? next() : -1));
  }

  async run(perSecond: number, seconds: number, everyMs: () => Promise<void>): Promise<number> {
    const clients = 10;
    const startMs = performance.now();
    let sent = 0;
    let nextMs = startMs;
    for (;;) {
      const elapsed = performance.now() - startMs;
      if (elapsed > seconds * 1000) break;
      const due = Math.floor((elapsed / 1000) * perSecond) - sent;
      const inFlight = sent - this.load.answered;
      if (due >= clients && inFlight < perSecond) {
        this.#due = due;
        this.load.start(Math.floor(due / clients));
        sent += Math.floor(due / clients) * clients;
        this.#due = 0;
      }
      if (performance.now() >= nextMs) {
        nextMs += 1000;
        await everyMs();
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    await this.load.idle();
    return this.load.answered / ((performance.now() - startMs) / 1000);
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
  const [client] = connections(1);
  if (client === undefined) return {};
  const calls = new Calls();
  let isReading = false;
  let compactedMs = performance.now();
  let longest = 0;
  await stallSeconds();
  const rate = await new Pace(clients, request, setting.keys).run(
    STALL_RATE,
    setting.seconds,
    async () => {
      longest = Math.max(longest, await stallSeconds());
      if (!isReading) {
        isReading = true;
        void calls.once(client, SNAPSHOT_PATH, 0).then(() => (isReading = false));
      }
      if (performance.now() - compactedMs < STALL_COMPACT_MS) return;
      compactedMs = performance.now();
      const [other] = clients;
      if (other !== undefined) await compact(other);
    },
  );
  return { 'per second': rate, 'longest stall ms': longest * 1000 };
}

/** Updates at half load, a compaction every minute: memory after a sixth of the time, and then. */
export async function soak(setting: Setting, started: Started, request: Request): Promise<Figures> {
  const clients = connections(10);
  await fill(clients, request, setting.keys);
  const startMs = performance.now();
  let compactedMs = startMs;
  const sizes: number[] = [];
  const rate = await new Pace(clients, request, setting.keys).run(
    SOAK_RATE,
    setting.seconds,
    async () => {
      const isWarm = performance.now() - startMs > setting.seconds * 1000 * WARM_SHARE;
      if (isWarm) sizes.push(harness.rssMib(started.pid));
      if (performance.now() - compactedMs < SOAK_COMPACT_MS) return;
      compactedMs = performance.now();
      const [client] = clients;
      if (client !== undefined) await compact(client);
    },
  );
  await sleep(100);
  const half = sizes.length >> 1;
  const peak = (from: number, to: number): number => Math.max(...sizes.slice(from, to));
  const [early, late] = [peak(0, half), peak(half, sizes.length)];
  return {
    'per second': rate,
    'peak, first half MiB': early,
    'peak, second half MiB': late,
    'growth %': (late / early - 1) * 100,
  };
}
