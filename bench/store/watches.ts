/** Watches: fan-out of one prefix, memory of idle ones, what many single-key ones cost a put. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { GrpcClient, GrpcClientCall, GrpcSink, GrpcStatus } from '@megaplane/wire/grpc';
import { ProtobufReader } from '@megaplane/wire/protobuf';
import * as harness from '../harness.ts';
import { Load, type Request, fill, rate, scattered } from './load.ts';
import { PATHS, writePut, writeWatch } from './requests.ts';
import type { Figures, Setting } from './scenarios.ts';
import { type Started, connections } from './servers.ts';

const FAN_WATCHERS = 1000;
const FAN_STREAMS = 10;
const IDLE_STREAMS = 1000;
const KEY_WATCHES = 100_000;
/** Before it is measured: both programs compile what they run. */
const FAN_WARM_MS = 1000;
const MIB = 2 ** 20;

/** Counts what watch streams receive. */
class Watchers implements GrpcSink {
  readonly message: Buffer = Buffer.alloc(256);
  readonly #reader = new ProtobufReader();
  readonly #event = new ProtobufReader();
  readonly latencies: number[] = [];
  created = 0;
  events = 0;
  /** Set when the server is about to be stopped. */
  isOver = false;

  open(client: GrpcClient, from: number, count: number): void {
    const call = client.open(PATHS.watch, this);
    for (let i = 0; i < count; i++) {
      const index = from < 0 ? -1 : from + i;
      call.send(this.message, 0, writeWatch(this.message, index));
    }
  }

  onMessage(_call: GrpcClientCall, bytes: Buffer, start: number, end: number): void {
    const reader = this.#reader.reset(bytes, start, end);
    let id = 0;
    while (reader.next()) {
      if (reader.field === 2) id = reader.int64();
      else if (reader.field === 3) {
        if (reader.bool()) this.created++;
      } else if (reader.field === 11) {
        reader.skip();
        this.events++;
        if (id === 0) this.#latency(bytes, reader.chunkStart, reader.chunkEnd);
      } else reader.skip();
    }
  }

  /** The value begins with the time of its put. */
  #latency(bytes: Buffer, start: number, end: number): void {
    const event = this.#event.reset(bytes, start, end);
    while (event.next()) {
      event.skip();
      if (event.field !== 2) continue;
      const keyValue = this.#event.reset(bytes, event.chunkStart, event.chunkEnd);
      while (keyValue.next()) {
        keyValue.skip();
        if (keyValue.field !== 5) continue;
        this.latencies.push(performance.now() - bytes.readDoubleLE(keyValue.chunkStart));
      }
      return;
    }
  }

  onStatus(_call: GrpcClientCall, status: GrpcStatus): void {
    if (status.code > 1 && !this.isOver)
      throw new Error(`a watch ended: ${status.code} ${status.message}`);
  }

  async ready(count: number): Promise<void> {
    while (this.created < count) await sleep(10);
  }
}

/** One put a millisecond, 1,000 watchers of its prefix on 10 streams. */
export async function fanOut(setting: Setting, started: Started): Promise<Figures> {
  const watchers = new Watchers();
  const clients = connections(FAN_STREAMS);
  for (const client of clients) watchers.open(client, -1, FAN_WATCHERS / FAN_STREAMS);
  await watchers.ready(FAN_WATCHERS);
  const value = Buffer.alloc(setting.valueBytes, 'v');
  const stamped: Request = {
    path: PATHS.put,
    write: (out, index) => {
      value.writeDoubleLE(performance.now());
      return writePut(out, index, value);
    },
  };
  const [writer] = connections(1);
  let isDue = true;
  let index = 0;
  const load = new Load(writer === undefined ? [] : [writer], stamped, () => {
    if (!isDue) return -1;
    isDue = false;
    return index++ % setting.keys;
  });
  const putFor = async (durationMs: number): Promise<void> => {
    const startMs = performance.now();
    for (let puts = 0; performance.now() - startMs < durationMs;) {
      for (; puts < performance.now() - startMs; puts++) {
        isDue = true;
        load.start(1);
      }
      // Not without a pause: a real-time process that never sleeps is stopped for 50 ms a second.
      await sleep(1);
    }
  };
  await putFor(FAN_WARM_MS);
  watchers.latencies.length = 0;
  watchers.events = 0;
  const startMs = performance.now();
  const startCpu = harness.cpuSeconds(started.pid);
  await putFor(setting.seconds * 1000);
  await load.idle();
  const elapsed = (performance.now() - startMs) / 1000;
  const cpu = harness.cpuSeconds(started.pid) - startCpu;
  watchers.isOver = true;
  const sorted = watchers.latencies.toSorted((a, b) => a - b);
  return {
    'events per CPU second': watchers.events / cpu,
    'events per second': watchers.events / elapsed,
    'p50 ms': harness.quantile(sorted, 0.5),
    'p99 ms': harness.quantile(sorted, 0.99),
  };
}

/** As many watches of a key each as there are keys, on 1,000 streams. */
export async function idleWatches(setting: Setting, started: Started): Promise<Figures> {
  const watchers = new Watchers();
  const clients = connections(FAN_STREAMS);
  const perStream = Math.ceil(setting.keys / IDLE_STREAMS);
  const before = harness.rssMib(started.pid);
  for (let stream = 0; stream < IDLE_STREAMS; stream++) {
    const client = clients[stream % FAN_STREAMS];
    if (client !== undefined) watchers.open(client, stream * perStream, perStream);
    await watchers.ready((stream + 1) * perStream);
  }
  await sleep(2000);
  watchers.isOver = true;
  const grown = harness.rssMib(started.pid) - before;
  return { 'bytes a watch': (grown * MIB) / (perStream * IDLE_STREAMS), 'RSS MiB': grown + before };
}

/** Puts per CPU second without and with 100,000 watches of keys that are not put. */
export async function keyWatches(setting: Setting, started: Started): Promise<Figures> {
  const clients = connections(setting.connections);
  const value = Buffer.alloc(setting.valueBytes, 'v');
  const put: Request = { path: PATHS.put, write: (out, index) => writePut(out, index, value) };
  await fill(clients, put, setting.keys);
  const measure = (): ReturnType<typeof rate> => {
    const load = new Load(clients, put, scattered(setting.keys));
    return rate(load, setting.inFlight, setting.seconds, started.pid);
  };
  const without = await measure();
  const watchers = new Watchers();
  const others = connections(FAN_STREAMS);
  for (const [index, client] of others.entries()) {
    const from = setting.keys + (index * KEY_WATCHES) / FAN_STREAMS;
    watchers.open(client, from, KEY_WATCHES / FAN_STREAMS);
  }
  await watchers.ready(KEY_WATCHES);
  const withThem = await measure();
  watchers.isOver = true;
  return {
    'without, per CPU s': without.perCpuSecond,
    'with, per CPU s': withThem.perCpuSecond,
    'share kept': withThem.perCpuSecond / without.perCpuSecond,
  };
}
