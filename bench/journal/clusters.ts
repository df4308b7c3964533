/** Three members each of etcd and of NATS JetStream, and groups of stores on them. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '@megaplane/base/free-port.sim';
import { adopt } from '../children.ts';
import { ROOT } from '../harness.ts';

const READY_MS_MAX = 120_000;
const MEMBERS = 3;
const QUOTA_BYTES = 2 ** 33;
const ENTRY = join(ROOT, 'packages/cli/src/main.ts');

/** Programs that were started together. */
export class Programs {
  readonly children: ChildProcess[] = [];

  start(command: readonly string[]): ChildProcess {
    const [program = '', ...args] = command;
    const child = adopt(spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] }));
    let complaint = '';
    child.stderr?.on('data', (bytes: Buffer) => {
      complaint = (complaint + String(bytes)).slice(-2000);
    });
    child.once('exit', (code) => {
      if (code !== null && code !== 0) process.stderr.write(`${program} ended: ${complaint}\n`);
    });
    this.children.push(child);
    return child;
  }

  get pids(): readonly number[] {
    return this.children.filter(isAlive).map(({ pid }) => pid ?? 0);
  }

  async stop(): Promise<void> {
    for (const child of this.children.splice(0)) await end(child, 'SIGKILL');
  }
}

export function isAlive(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}

export async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (!isAlive(child)) return;
  const exited = once(child, 'exit');
  child.kill(signal);
  await exited;
}

/** Waits until `check` gives something. */
export async function ready<T>(what: string, check: () => Promise<T | null>): Promise<T> {
  const endMs = performance.now() + READY_MS_MAX;
  for (;;) {
    const found = await check().catch(() => null);
    if (found !== null) return found;
    if (performance.now() > endMs) throw new Error(`${what} is not there`);
    await sleep(20);
  }
}

/** Which port is that of a member that leads, by what etcd's metrics say. */
export async function leaderOf(ports: readonly number[]): Promise<number | null> {
  for (const port of ports) {
    const text = await fetch(`http://127.0.0.1:${port}/metrics`)
      .then((answer) => answer.text())
      .catch(() => '');
    if (/^etcd_server_is_leader 1$/m.test(text)) return port;
  }
  return null;
}

export interface Cluster {
  readonly name: string;
  readonly ports: readonly number[];
  /** All processes, those of an engine too. */
  pids(): readonly number[];
  pidOf(port: number): number;
  childOf(port: number): ChildProcess;
  /** Starts a member again that was killed. */
  restart(port: number): Promise<void>;
  stop(): Promise<void>;
}

export interface Engine {
  readonly name: string;
  readonly url: string;
  readonly programs: Programs;
}

async function ports(count: number): Promise<number[]> {
  const found: number[] = [];
  while (found.length < count) {
    const port = await freePort();
    if (!found.includes(port)) found.push(port);
  }
  return found;
}

/** Debian's etcd, or whichever is on PATH. */
export async function startEtcds(dir: string): Promise<Cluster> {
  const clients = await ports(MEMBERS);
  const peers = await ports(MEMBERS);
  const url = (port: number | undefined): string => `http://127.0.0.1:${port}`;
  const all = peers.map((port, at) => `m${at}=${url(port)}`).join();
  const commands = clients.map((client, at) => {
    const args = ['etcd', '--name', `m${at}`, '--data-dir', join(dir, `etcd-${at}`)];
    args.push('--listen-client-urls', url(client), '--advertise-client-urls', url(client));
    args.push(
      '--listen-peer-urls',
      url(peers[at]),
      '--initial-advertise-peer-urls',
      url(peers[at]),
    );
    args.push('--initial-cluster', all, '--quota-backend-bytes', String(QUOTA_BYTES));
    return args;
  });
  return await startCluster('etcd', clients, commands, () => []);
}

/** `isFlushed`: each append is on the disk before it is acknowledged. */
export async function startNats(
  dir: string,
  program: string,
  storage: 'memory' | 'file',
  isFlushed: boolean,
): Promise<Engine> {
  const clients = await ports(MEMBERS);
  const routes = await ports(MEMBERS);
  const programs = new Programs();
  const all = routes.map((port) => `nats-route://127.0.0.1:${port}`).join(', ');
  for (const [at, client] of clients.entries()) {
    const store = join(dir, `nats-${at}`);
    mkdirSync(store, { recursive: true });
    const sync = isFlushed ? ', sync_interval: always' : '';
    const file = join(dir, `nats-${at}.conf`);
    writeFileSync(
      file,
      `server_name: n${at}\nlisten: 127.0.0.1:${client}\n` +
        `jetstream { store_dir: "${store}"${sync} }\n` +
        `cluster { name: bench, listen: 127.0.0.1:${routes[at]}, routes: [${all}] }\n`,
    );
    programs.start([program, '-c', file]);
  }
  const servers = clients.map((port) => `127.0.0.1:${port}`).join();
  const url = `nats://${servers}/group?replicas=3&storage=${storage}&max-bytes=4GiB`;
  const flush = isFlushed ? ', each append flushed' : '';
  return { name: `JetStream, ${storage}${flush}`, url, programs };
}

export function engineOf(etcd: Cluster, programs: Programs): Engine {
  const servers = etcd.ports.map((port) => `127.0.0.1:${port}`).join();
  return { name: 'etcd as journal', url: `etcd://${servers}/group`, programs };
}

/** Members on a journal; the first that answers comes first. */
export async function startGroup(
  engine: Engine,
  enginePids: () => readonly number[],
  leaseMs: number,
): Promise<Cluster> {
  const clients = await ports(MEMBERS);
  const commands = clients.map((port, at) => memberCommand(engine, port, at, leaseMs));
  return await startCluster(`megaplane on ${engine.name}`, clients, commands, enginePids);
}

export function memberCommand(
  engine: Engine,
  port: number,
  at: number,
  leaseMs: number,
): readonly string[] {
  const url = `http://127.0.0.1:${port}`;
  const args = [process.execPath, ENTRY, 'store', '--journal', engine.url];
  args.push('--member-name', `m${at}`);
  return [...args, '--leader-lease', `${leaseMs}ms`, '--listen-client-urls', url];
}

/** One member alone on a file. */
export async function startAlone(dir: string, durability: string): Promise<Cluster> {
  const [port = 0] = await ports(1);
  const args = [process.execPath, ENTRY, 'store', '--data-dir', join(dir, 'alone')];
  args.push('--listen-client-urls', `http://127.0.0.1:${port}`, '--durability', durability);
  return await startCluster(`megaplane alone, ${durability}`, [port], [args], () => []);
}

async function startCluster(
  name: string,
  members: readonly number[],
  commands: readonly (readonly string[])[],
  others: () => readonly number[],
): Promise<Cluster> {
  const programs = new Programs();
  const children = commands.map((command) => programs.start(command));
  const at = (port: number): number => members.indexOf(port);
  const childOf = (port: number): ChildProcess => {
    const child = children[at(port)];
    if (child === undefined) throw new Error(`no member at port ${port}`);
    return child;
  };
  const isHealthy = async (port: number): Promise<true | null> => {
    const answer = await fetch(`http://127.0.0.1:${port}/health`);
    return answer.ok ? true : null;
  };
  const cluster: Cluster = {
    name,
    ports: members,
    pids: () => [...programs.pids, ...others()],
    pidOf: (port) => childOf(port).pid ?? 0,
    childOf,
    restart: async (port) => {
      children[at(port)] = programs.start(commands[at(port)] ?? []);
      await ready('a member that starts again', () => isHealthy(port));
    },
    stop: () => programs.stop(),
  };
  try {
    await ready(`a leader of ${name}`, () => leaderOf(members));
    for (const port of members) await ready('a member', () => isHealthy(port));
  } catch (error) {
    await programs.stop();
    throw error;
  }
  return cluster;
}

export function versionOf(program: string): string {
  const { stdout, error } = spawnSync(program, ['--version'], { encoding: 'utf8' });
  if (error !== undefined) return '';
  return /v?\d+\.\d+\.\d+/.exec(stdout)?.[0] ?? '';
}
