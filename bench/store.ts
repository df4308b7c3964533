/**
 * The store beside Debian's etcd: the same requests by the same client, each server alone on
 * core 0, the client on core 1. Figures are answers per second of the server's processor time
 * and of the clock; the median of the runs counts.
 *
 *     node bench/store.ts --keys 1000000 --seconds 5 --runs 3 --durability buffered
 *
 * `put`: KV/Put over keys in random order, after each key was put once. `update`: Kubernetes'
 * update of a lease (Txn: if mod revision then Put else Range). `get`: one key.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { connect } from '@megaplane/wire/connect';
import { grpcClient } from '@megaplane/wire/grpc-client';
import type { GrpcClient, GrpcClientCall, GrpcSink, GrpcStatus } from '@megaplane/wire/grpc';
import { ProtobufReader } from '@megaplane/wire/protobuf';
import { writeBytesField, writeBytesHead, writeInt64 } from '@megaplane/wire/protobuf-write';
import * as harness from './harness.ts';

const { values } = parseArgs({
  options: {
    keys: { type: 'string', default: '1000000' },
    seconds: { type: 'string', default: '5' },
    runs: { type: 'string', default: '3' },
    'value-size': { type: 'string', default: '1024' },
    connections: { type: 'string', default: '10' },
    'in-flight': { type: 'string', default: '100' },
    durability: { type: 'string', default: 'buffered' },
    servers: { type: 'string', default: 'etcd,megaplane' },
    modes: { type: 'string', default: 'put,update,get' },
    output: { type: 'string' },
  },
});
const KEYS = Number(values.keys);
const SERVER_CORE = 0;
const CLIENT_CORE = 1;
const PORT = 23_790;
const KEY_SIZE = 48;
const value = Buffer.alloc(Number(values['value-size']), 'v');
const lease = Buffer.alloc(465, 'l');
const modes = ['put', 'update', 'get'] as const;
type Mode = (typeof modes)[number];

interface Figure {
  readonly server: string;
  readonly mode: Mode;
  readonly perSecond: number;
  readonly perCpuSecond: number;
  readonly rssMib: number;
}

const key = Buffer.alloc(KEY_SIZE);
const message = Buffer.alloc(8192);
/** Mod revision by key, for updates. */
const revisions = new Float64Array(KEYS);

function setKey(index: number, mode: Mode): void {
  const prefix = mode === 'update' ? '/registry/leases/' : '/registry/pods/';
  key.write(`${prefix}${String(index).padStart(KEY_SIZE - prefix.length, '0')}`, 'latin1');
}

function writeMessage(mode: Mode, index: number): number {
  setKey(index, mode);
  if (mode === 'update') return writeUpdate(index);
  const at = writeBytesField(message, 0, 1, key, 0, KEY_SIZE);
  return mode === 'get' ? at : writeBytesField(message, at, 2, value, 0, value.length);
}

function writeUpdate(index: number): number {
  const compare = Buffer.alloc(80);
  let size = 0;
  compare[size++] = 0x10;
  compare[size++] = 2;
  size = writeBytesField(compare, size, 3, key, 0, KEY_SIZE);
  compare[size++] = 0x30;
  size = writeInt64(compare, size, revisions[index] ?? 0);
  let at = writeBytesField(message, 0, 1, compare, 0, size);
  const putSize = 2 + KEY_SIZE + 3 + lease.length;
  at = writeBytesHead(message, at, 2, putSize + 3);
  at = writeBytesHead(message, at, 2, putSize);
  at = writeBytesField(message, at, 1, key, 0, KEY_SIZE);
  at = writeBytesField(message, at, 2, lease, 0, lease.length);
  at = writeBytesHead(message, at, 3, KEY_SIZE + 4);
  at = writeBytesHead(message, at, 1, KEY_SIZE + 2);
  return writeBytesField(message, at, 1, key, 0, KEY_SIZE);
}

const PATHS = {
  put: '/etcdserverpb.KV/Put',
  update: '/etcdserverpb.KV/Txn',
  get: '/etcdserverpb.KV/Range',
} as const;
const outer = new ProtobufReader();
const inner = new ProtobufReader();

function revisionOf(bytes: Buffer, start: number, end: number): number {
  outer.reset(bytes, start, end);
  while (outer.next()) {
    outer.skip();
    if (outer.field !== 1) continue;
    inner.reset(bytes, outer.chunkStart, outer.chunkEnd);
    while (inner.next()) {
      if (inner.field === 3) return inner.int64();
      inner.skip();
    }
  }
  return 0;
}

/** Keeps all connections busy until told to stop. */
class Load implements GrpcSink {
  readonly #clients: readonly GrpcClient[];
  readonly #mode: Mode;
  readonly #next: () => number;
  answered = 0;
  #inFlight = 0;
  isOver = false;
  #onIdle: () => void = () => {};

  constructor(clients: readonly GrpcClient[], mode: Mode, next: () => number) {
    this.#clients = clients;
    this.#mode = mode;
    this.#next = next;
  }

  start(): void {
    for (let i = 0; i < Number(values['in-flight']); i++) {
      for (const client of this.#clients.keys()) this.#send(client);
    }
  }

  #send(client: number): void {
    const index = this.#next();
    if (index < 0 || this.isOver) return;
    const size = writeMessage(this.#mode, index);
    this.#inFlight++;
    const tag = client * KEYS + index;
    this.#clients[client]?.unary(PATHS[this.#mode], message.subarray(0, size), this, { tag });
  }

  onMessage(call: GrpcClientCall, bytes: Buffer, start: number, end: number): void {
    if (this.#mode === 'update') revisions[call.tag % KEYS] = revisionOf(bytes, start, end);
  }

  onStatus(call: GrpcClientCall, status: GrpcStatus): void {
    if (status.code !== 0) throw new Error(`a call failed: ${status.code} ${status.message}`);
    this.answered++;
    this.#inFlight--;
    this.#send(Math.floor(call.tag / KEYS));
    if (this.#inFlight === 0) this.#onIdle();
  }

  async idle(): Promise<void> {
    if (this.#inFlight === 0) return;
    await new Promise<void>((resolve) => (this.#onIdle = resolve));
  }
}

interface Started {
  readonly pid: number;
  stop(): Promise<void>;
}

async function startEtcd(dir: string): Promise<Started> {
  const url = `http://127.0.0.1:${PORT}`;
  const peers = `http://127.0.0.1:${PORT + 1}`;
  const args = ['-c', String(SERVER_CORE), 'etcd', '--data-dir', dir];
  args.push('--listen-client-urls', url, '--advertise-client-urls', url);
  args.push('--listen-peer-urls', peers, '--initial-advertise-peer-urls', peers);
  args.push('--initial-cluster', `default=${peers}`, '--quota-backend-bytes', String(2 ** 34));
  const env = { ...process.env, GOMAXPROCS: '1' };
  const child = spawn('taskset', args, { stdio: 'ignore', env });
  await sleep(2000);
  return {
    pid: child.pid ?? 0,
    stop: async () => {
      const closed = once(child, 'close');
      child.kill('SIGKILL');
      await closed;
    },
  };
}

async function startServer(name: string, dir: string): Promise<Started> {
  if (name === 'etcd') return startEtcd(dir);
  const url = `http://127.0.0.1:${PORT}`;
  const args = ['store', '--data-dir', dir, '--listen-client-urls', url];
  args.push('--durability', values.durability);
  return harness.startMegaplane(args, SERVER_CORE);
}

async function measure(clients: readonly GrpcClient[], mode: Mode, pid: number) {
  // Each key once, so that later calls find all of them.
  let filled = 0;
  if (mode !== 'get') {
    const fill = new Load(clients, mode, () => (filled < KEYS ? filled++ : -1));
    fill.start();
    await fill.idle();
  }
  // Neighbours in time are far apart in the order of keys, and no key is in flight twice.
  let cursor = 0;
  const load = new Load(clients, mode, () => (cursor = (cursor + 611_953) % KEYS));
  load.start();
  await sleep(500);
  const startMs = performance.now();
  const startCpu = harness.cpuSeconds(pid);
  const before = load.answered;
  await sleep(Number(values.seconds) * 1000);
  const seconds = (performance.now() - startMs) / 1000;
  const cpu = harness.cpuSeconds(pid) - startCpu;
  const count = load.answered - before;
  load.isOver = true;
  await load.idle();
  return { perSecond: count / seconds, perCpuSecond: count / cpu };
}

async function run(server: string): Promise<Figure[]> {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-bench-store-'));
  const started = await startServer(server, dir);
  const figures: Figure[] = [];
  try {
    const count = Number(values.connections);
    const clients = Array.from({ length: count }, () => grpcClient(connect({ port: PORT })));
    for (const mode of modes) {
      if (!values.modes.split(',').includes(mode)) continue;
      const figure = await measure(clients, mode, started.pid);
      figures.push({ server, mode, ...figure, rssMib: harness.rssMib(started.pid) });
    }
    for (const client of clients) client.connection.drain();
  } finally {
    await started.stop();
    rmSync(dir, { recursive: true, force: true });
  }
  return figures;
}

function version(server: string): string {
  if (server !== 'etcd') return values.durability;
  return /etcd Version: (\S+)/.exec(spawnSync('etcd', ['--version']).stdout.toString())?.[1] ?? '?';
}

async function main(): Promise<void> {
  if (spawnSync('etcd', ['--version']).error !== undefined && values.servers.includes('etcd')) {
    throw new Error('needs etcd: apt-get install etcd-server');
  }
  harness.pinSelf(CLIENT_CORE);
  const servers = values.servers.split(',');
  process.stdout.write(`${harness.machine()}\n`);
  const all: Figure[] = [];
  for (let i = 0; i < Number(values.runs); i++) {
    for (const server of servers) all.push(...(await run(server)));
  }
  const rows = modes.flatMap((mode) => {
    let base = NaN;
    return servers.flatMap((server) => {
      const found = all.filter((one) => one.mode === mode && one.server === server);
      if (found.length === 0) return [];
      const perCpu = harness.median(found.map((one) => one.perCpuSecond));
      if (Number.isNaN(base)) base = perCpu;
      return [
        [
          mode,
          `${server} ${version(server)}`,
          perCpu.toFixed(0),
          harness.median(found.map((one) => one.perSecond)).toFixed(0),
          (perCpu / base).toFixed(1),
          harness.median(found.map((one) => one.rssMib)).toFixed(0),
        ],
      ];
    });
  });
  const head = ['call', 'server', 'per CPU second', 'per second', 'ratio', 'RSS MiB'];
  harness.printTable(head, rows);
  harness.writeResults(values.output, { figures: all });
}

await main();
