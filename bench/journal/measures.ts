/** What is measured of a cluster: processor time of all its processes, latencies, gaps. */
import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from '@megaplane/wire/connect';
import type { GrpcClient } from '@megaplane/wire/grpc';
import { grpcClient } from '@megaplane/wire/grpc-client';
import * as harness from '../harness.ts';
import { fill, Load, scattered } from '../store/load.ts';
import { PATHS, writePut } from '../store/requests.ts';
import { type Cluster, end, leaderOf, ready } from './clusters.ts';

const VALUE = Buffer.alloc(1024, 'v');
const CALL_MS = 60_000;

function clientsOf(port: number, count: number): GrpcClient[] {
  return Array.from({ length: count }, () => grpcClient(connect({ port })));
}

const put = {
  path: PATHS.put,
  write: (out: Buffer, index: number): number => writePut(out, index, VALUE),
};

export interface PutCost {
  readonly perSecond: number;
  /** Microseconds of the processor per put: of all processes, the leader, a standby. */
  readonly allUs: number;
  readonly leaderUs: number;
  readonly standbyUs: number;
  readonly engineUs: number;
  readonly leaderMib: number;
  readonly standbyMib: number;
}

/** Puts at the member that leads, as many in flight as given. */
export async function putCost(
  cluster: Cluster,
  keys: number,
  seconds: number,
  inFlight: number,
): Promise<PutCost> {
  const leader = await ready('a leader', () => leaderOf(cluster.ports));
  const clients = clientsOf(leader, 10);
  await fill(clients, put, keys);
  const load = new Load(clients, put, scattered(keys));
  load.start(Math.max(1, Math.round(inFlight / clients.length)));
  await sleep(1500);
  const pids = cluster.pids();
  const members = cluster.ports.map((port) => cluster.pidOf(port));
  const standbys = members.filter((pid) => pid !== cluster.pidOf(leader));
  const startMs = performance.now();
  const before = new Map(pids.map((pid) => [pid, harness.cpuSecondsExact(pid)]));
  const answered = load.answered;
  await sleep(seconds * 1000);
  const count = load.answered - answered;
  const elapsed = (performance.now() - startMs) / 1000;
  const us = (some: readonly number[]): number =>
    some.reduce((sum, pid) => sum + harness.cpuSecondsExact(pid) - (before.get(pid) ?? 0), 0) *
    (1e6 / count);
  const costs = {
    perSecond: count / elapsed,
    allUs: us(pids),
    leaderUs: us([cluster.pidOf(leader)]),
    standbyUs: standbys.length === 0 ? 0 : us(standbys) / standbys.length,
    engineUs: us(pids.filter((pid) => !members.includes(pid))),
    leaderMib: harness.rssMib(cluster.pidOf(leader)),
    standbyMib: harness.median(standbys.map((pid) => harness.rssMib(pid))),
  };
  load.isOver = true;
  await load.idle();
  for (const client of clients) client.connection.destroy();
  return costs;
}

/** One put at a time at the leader: sorted milliseconds. */
export async function latencies(cluster: Cluster, seconds: number): Promise<readonly number[]> {
  const leader = await ready('a leader', () => leaderOf(cluster.ports));
  const clients = clientsOf(leader, 1);
  const load = new Load(clients, put, scattered(1000), true);
  load.start(1);
  await sleep(500);
  load.latencies.length = 0;
  await sleep(seconds * 1000);
  load.isOver = true;
  await load.idle();
  for (const client of clients) client.connection.destroy();
  return load.latencies.toSorted((a, b) => a - b);
}

/** Puts one at a time at the first of these members that takes it; notes when each was answered. */
class Writer {
  readonly answeredMs: number[] = [];
  isOver = false;
  readonly #ports: readonly number[];
  #index = 0;

  constructor(ports: readonly number[]) {
    this.#ports = ports;
  }

  async run(): Promise<void> {
    for (let at = 0; !this.isOver; at++) {
      const port = this.#ports[at % this.#ports.length] ?? 0;
      const client = grpcClient(connect({ port }));
      while (!this.isOver && (await this.#put(client)));
      client.connection.destroy();
      await sleep(1);
    }
  }

  #put(client: GrpcClient): Promise<boolean> {
    const out = Buffer.alloc(2048);
    const size = writePut(out, this.#index++ % 1000, VALUE);
    return new Promise((resolve) => {
      const onStatus = (_: unknown, { code }: { readonly code: number }): void => {
        if (code === 0) this.answeredMs.push(performance.now());
        resolve(code === 0);
      };
      const sink = { onMessage: () => {}, onStatus };
      client.unary(PATHS.put, out.subarray(0, size), sink, { timeoutMs: CALL_MS });
    });
  }

  /** From `startMs` to the first put that was answered behind it. */
  async next(startMs: number): Promise<number> {
    return await ready('an answered put', () => {
      const found = this.answeredMs.find((ms) => ms > startMs);
      return Promise.resolve(found === undefined ? null : found - startMs);
    });
  }

  /** The longest time between two answers since `startMs`. */
  longestSince(startMs: number): number {
    const times = [startMs, ...this.answeredMs.filter((ms) => ms > startMs)];
    return Math.max(...times.map((ms, at) => ms - (times[at - 1] ?? ms)));
  }
}

/** From kill -9 of the leader to the next put that another member answers, milliseconds. */
export async function failover(cluster: Cluster, times: number): Promise<number[]> {
  const found: number[] = [];
  for (let i = 0; i < times; i++) {
    const leader = await ready('a leader', () => leaderOf(cluster.ports));
    const others = cluster.ports.filter((port) => port !== leader);
    const writer = new Writer(others);
    const running = writer.run();
    await sleep(1000);
    const killed = end(cluster.childOf(leader), 'SIGKILL');
    const startMs = performance.now();
    found.push(await writer.next(startMs + 50));
    await killed;
    writer.isOver = true;
    await running;
    await cluster.restart(leader);
  }
  return found.toSorted((a, b) => a - b);
}

/** The longest pause of puts at a standby while the leader hands over, milliseconds. */
export async function handOver(cluster: Cluster, times: number): Promise<number[]> {
  const found: number[] = [];
  for (let i = 0; i < times; i++) {
    const leader = await ready('a leader', () => leaderOf(cluster.ports));
    const others = cluster.ports.filter((port) => port !== leader);
    const writer = new Writer(others);
    const running = writer.run();
    await sleep(1000);
    const startMs = performance.now();
    moveLeader(cluster.ports, leader);
    await ready('another leader', async () => {
      const now = await leaderOf(cluster.ports);
      return now === null || now === leader ? null : now;
    });
    await sleep(500);
    found.push(writer.longestSince(startMs));
    writer.isOver = true;
    await running;
  }
  return found.toSorted((a, b) => a - b);
}

function etcdctl(ports: readonly number[], ...args: readonly string[]): string {
  const endpoints = ports.map((port) => `127.0.0.1:${port}`).join();
  const env = { ...process.env, ETCDCTL_API: '3' };
  const all = ['--endpoints', endpoints, ...args];
  const { stdout, stderr, status } = spawnSync('etcdctl', all, { encoding: 'utf8', env });
  if (status !== 0) throw new Error(`etcdctl ${args.join(' ')}: ${stderr}`);
  return stdout;
}

function moveLeader(ports: readonly number[], leader: number): void {
  const lines = etcdctl(ports, 'endpoint', 'status', '-w', 'fields').split('\n');
  const members: { port: number; id: string }[] = [];
  let id = '';
  for (const line of lines) {
    id = /^"MemberID" : (\d+)/.exec(line)?.[1] ?? id;
    const port = /^"Endpoint" : ".*:(\d+)"/.exec(line)?.[1];
    if (port !== undefined) members.push({ port: Number(port), id });
  }
  const target = members.find(({ port }) => port !== leader);
  if (target === undefined) throw new Error('no other member');
  etcdctl([leader], 'move-leader', BigInt(target.id).toString(16));
}
