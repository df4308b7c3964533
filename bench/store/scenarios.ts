/** What is measured of a store, one function per scenario: figures by name. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { GrpcClient } from '@megaplane/wire/grpc';
import * as harness from '../harness.ts';
import { soak, stall } from './endurance.ts';
import { keepAlives } from './lease-streams.ts';
import { Load, type Request, fill, rate, scattered } from './load.ts';
import {
  Calls,
  PATHS,
  countOf,
  revisionOf,
  writeCompact,
  writeGet,
  writeGrant,
  writePage,
  writePut,
  writeUpdate,
} from './requests.ts';
import { type Started, connections, startServer } from './servers.ts';
import { fanOut, idleWatches, keyWatches } from './watches.ts';

export interface Setting {
  readonly server: string;
  readonly durability: string;
  readonly dir: string;
  readonly keys: number;
  readonly seconds: number;
  readonly valueBytes: number;
  readonly connections: number;
  readonly inFlight: number;
}

export type Figures = Readonly<Record<string, number>>;
type Scenario = (setting: Setting, started: Started) => Promise<Figures>;

const LEASE_BYTES = 465;
const PAGE_KEYS = 500;
const MIB = 2 ** 20;

function putOf(valueBytes: number): Request {
  const value = Buffer.alloc(valueBytes, 'v');
  return { path: PATHS.put, write: (out, index) => writePut(out, index, value) };
}

function updateOf(keys: number): Request {
  const value = Buffer.alloc(LEASE_BYTES, 'l');
  const revisions = new Float64Array(keys);
  return {
    path: PATHS.txn,
    write: (out, index) => writeUpdate(out, index, revisions[index] ?? 0, value),
    read: (index, bytes, start, end) => (revisions[index] = revisionOf(bytes, start, end)),
  };
}

const GET: Request = { path: PATHS.range, write: (out, index) => writeGet(out, index) };

/** Each key once, then all of them again in scattered order. */
async function throughput(setting: Setting, started: Started, request: Request): Promise<Figures> {
  const clients = connections(setting.connections);
  await fill(
    clients,
    request.path === PATHS.range ? putOf(setting.valueBytes) : request,
    setting.keys,
  );
  const load = new Load(clients, request, scattered(setting.keys));
  const found = await rate(load, setting.inFlight, setting.seconds, started.pid);
  drain(clients);
  return {
    'per CPU second': found.perCpuSecond,
    'per second': found.perSecond,
    'RSS MiB': harness.rssMib(started.pid),
  };
}

function drain(clients: readonly GrpcClient[]): void {
  for (const client of clients) client.connection.drain();
}

async function single(setting: Setting, started: Started): Promise<Figures> {
  const clients = connections(200);
  const request = updateOf(setting.keys);
  await fill(clients, request, setting.keys);
  const load = new Load(clients, request, scattered(setting.keys), true);
  const found = await rate(load, 1, setting.seconds, started.pid);
  drain(clients);
  return { 'per CPU second': found.perCpuSecond, 'per second': found.perSecond };
}

async function latency(setting: Setting, started: Started): Promise<Figures> {
  const clients = connections(1);
  const load = new Load(clients, putOf(setting.valueBytes), scattered(setting.keys), true);
  const { latencies } = await rate(load, 1, setting.seconds, started.pid);
  drain(clients);
  const at = (part: number): number => harness.quantile(latencies, part) * 1000;
  return { 'p50 us': at(0.5), 'p99 us': at(0.99), 'max us': at(1) };
}

/** Pages of 500 at one fixed revision through all keys, while each key was put again since. */
async function pages(setting: Setting, started: Started): Promise<Figures> {
  const clients = connections(setting.connections);
  await fill(clients, putOf(2048), setting.keys);
  const calls = new Calls();
  const [client] = clients;
  if (client === undefined) return {};
  let revision = 0;
  await calls.once(client, PATHS.range, writeGet(calls.message, 0), (bytes, start, end) => {
    revision = revisionOf(bytes, start, end);
  });
  // A hundredth of the keys changes, so that the pages come from the past.
  await fill(clients, putOf(2048), Math.ceil(setting.keys / 100));
  const times: number[] = [];
  const startCpu = harness.cpuSeconds(started.pid);
  for (let from = 0; from < setting.keys; from += PAGE_KEYS) {
    const size = writePage(calls.message, from, PAGE_KEYS, revision);
    const startMs = performance.now();
    let found = 0;
    await calls.once(client, PATHS.range, size, (bytes, start, end) => {
      found = countOf(bytes, start, end, 2);
    });
    if (found !== Math.min(PAGE_KEYS, setting.keys - from))
      throw new Error(`page of ${found} keys`);
    times.push(performance.now() - startMs);
  }
  const cpuMs = ((harness.cpuSeconds(started.pid) - startCpu) * 1000) / times.length;
  drain(clients);
  const tenth = Math.ceil(times.length / 10);
  return {
    'ms a page': harness.median(times),
    'first tenth': harness.median(times.slice(0, tenth)),
    'last tenth': harness.median(times.slice(-tenth)),
    'CPU ms a page': cpuMs,
  };
}

async function memory(setting: Setting, started: Started): Promise<Figures> {
  const clients = connections(setting.connections);
  await fill(clients, putOf(setting.valueBytes), setting.keys);
  await sleep(1000);
  drain(clients);
  return { 'RSS MiB': harness.rssMib(started.pid) };
}

/** Leases of 465 bytes in four versions, then compacted. */
async function history(setting: Setting, started: Started): Promise<Figures> {
  const clients = connections(setting.connections);
  for (let version = 0; version < 4; version++) {
    await fill(clients, putOf(LEASE_BYTES), setting.keys);
  }
  const full = harness.rssMib(started.pid);
  const calls = new Calls();
  const [client] = clients;
  if (client === undefined) return {};
  let revision = 0;
  await calls.once(client, PATHS.range, writeGet(calls.message, 0), (bytes, start, end) => {
    revision = revisionOf(bytes, start, end);
  });
  await calls.once(client, PATHS.compact, writeCompact(calls.message, revision));
  await sleep(5000);
  drain(clients);
  return { 'RSS MiB': full, 'compacted MiB': harness.rssMib(started.pid) };
}

/** The process is killed when all keys are in, and started again twice. */
async function restart(setting: Setting, started: Started): Promise<Figures> {
  const clients = connections(setting.connections);
  await fill(clients, putOf(setting.valueBytes), setting.keys);
  drain(clients);
  await started.kill();
  const times: number[] = [];
  let rss = 0;
  for (let run = 0; run < 2; run++) {
    const again = await startServer(setting.server, setting.dir, setting.durability, '0,1');
    times.push(again.firstAnswerMs / 1000);
    rss = harness.rssMib(again.pid);
    await again.kill();
  }
  return { 's to first answer': Math.min(...times), 'RSS MiB': rss };
}

/** Grants, then the renewals of them all, on as many streams as connections. */
async function leases(setting: Setting, started: Started): Promise<Figures> {
  const clients = connections(setting.connections);
  const grant: Request = { path: PATHS.grant, write: (out, index) => writeGrant(out, index + 1) };
  const before = harness.rssMib(started.pid);
  const startCpu = harness.cpuSeconds(started.pid);
  await fill(clients, grant, setting.keys);
  const grants = setting.keys / (harness.cpuSeconds(started.pid) - startCpu);
  const perCpu = await keepAlives(clients, setting, started.pid);
  drain(clients);
  const bytes = ((harness.rssMib(started.pid) - before) * MIB) / setting.keys;
  return { 'grants per CPU s': grants, 'renewals per CPU s': perCpu, 'bytes a lease': bytes };
}

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  put: (setting, started) => throughput(setting, started, putOf(setting.valueBytes)),
  update: (setting, started) => throughput(setting, started, updateOf(setting.keys)),
  get: (setting, started) => throughput(setting, started, GET),
  single,
  latency,
  page: pages,
  watch: (setting, started) => fanOut(setting, started),
  'idle-watches': (setting, started) => idleWatches(setting, started),
  'key-watches': (setting, started) => keyWatches(setting, started),
  leases,
  memory,
  history,
  restart,
  stall: (setting, started) => stall(setting, started, updateOf(setting.keys)),
  soak: (setting, started) => soak(setting, started, updateOf(setting.keys)),
};
