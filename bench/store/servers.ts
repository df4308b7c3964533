/** The servers of the store's benchmarks: each alone on core 0, in a directory of its own. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { GrpcClient } from '@megaplane/wire/grpc';
import { grpcClient } from '@megaplane/wire/grpc-client';
import { connect } from '@megaplane/wire/connect';
import { ROOT } from '../harness.ts';
import { Calls, writeGet } from './requests.ts';
import { adopt } from '../children.ts';

/** A server and, for etcd, its peers' port; benchmarks that run at the same time do not meet. */
export const PORT: number = 20_000 + (process.pid % 5000) * 2;
const READY_MS_MAX = 120_000;

export interface Started {
  readonly pid: number;
  /** From the start of the process to the first answer. */
  readonly firstAnswerMs: number;
  /** Ends it as a crash would, so that nothing is written on the way out. */
  kill(): Promise<void>;
}

function etcdCommand(dir: string): string[] {
  const url = `http://127.0.0.1:${PORT}`;
  const peers = `http://127.0.0.1:${PORT + 1}`;
  const args = ['etcd', '--data-dir', dir];
  args.push('--listen-client-urls', url, '--advertise-client-urls', url);
  args.push('--listen-peer-urls', peers, '--initial-advertise-peer-urls', peers);
  args.push('--initial-cluster', `default=${peers}`, '--quota-backend-bytes', String(2 ** 34));
  return args;
}

function megaplaneCommand(dir: string, durability: string): string[] {
  const entry = `${ROOT}/packages/cli/src/main.ts`;
  const url = `http://127.0.0.1:${PORT}`;
  const args = [process.execPath, entry, 'store', '--data-dir', dir];
  return [...args, '--listen-client-urls', url, '--durability', durability];
}

export function connections(count: number): GrpcClient[] {
  return Array.from({ length: count }, () => grpcClient(connect({ port: PORT })));
}

/** Starts a server and waits until it answers a linearizable read. */
export async function startServer(
  server: string,
  dir: string,
  durability: string,
  cores = '0',
): Promise<Started> {
  const command = server === 'etcd' ? etcdCommand(dir) : megaplaneCommand(dir, durability);
  const env = { ...process.env, GOMAXPROCS: '1' };
  const startMs = performance.now();
  const args = ['-c', cores, ...command];
  const child = adopt(spawn('taskset', args, { stdio: ['ignore', 'ignore', 'pipe'], env }));
  let complaint = '';
  child.stderr.on(
    'data',
    (bytes: Buffer) => (complaint = (complaint + String(bytes)).slice(-2000)),
  );
  while (!(await answers())) {
    const isLate = performance.now() - startMs > READY_MS_MAX;
    if (child.exitCode !== null || isLate) throw new Error(`${server} is not up: ${complaint}`);
    await sleep(10);
  }
  let isKilled = false;
  return {
    pid: child.pid ?? 0,
    firstAnswerMs: performance.now() - startMs,
    kill: async () => {
      if (isKilled) return;
      isKilled = true;
      const closed = once(child, 'close');
      child.kill('SIGKILL');
      await closed;
    },
  };
}

async function answers(): Promise<boolean> {
  const [client] = connections(1);
  if (client === undefined) return false;
  const calls = new Calls();
  const size = writeGet(calls.message, 0);
  const status = await calls.once(client, '/etcdserverpb.KV/Range', size);
  client.connection.drain();
  return status === 0;
}

export function version(server: string, durability: string): string {
  if (server !== 'etcd') return durability;
  return /etcd Version: (\S+)/.exec(spawnSync('etcd', ['--version']).stdout.toString())?.[1] ?? '?';
}
