// shell: engines of journals for tests
/** For tests: a journal of each kind, with an engine that can be killed, stopped, gone on with. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect as connectSocket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '@megaplane/base/free-port.sim';
import { Random } from '@megaplane/base/random';
import { holdUp } from '@megaplane/base/stopped.sim';
import type { Journal } from '@megaplane/store/journal';
import { SimulatedJournal } from '@megaplane/store/simulated-journal.sim';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect as connectNats } from '@nats-io/transport-node';
import { parseEndpoints } from '../client/endpoints.ts';
import { has, startEtcd } from './peer.sim.ts';
import { EtcdJournal } from '../journal/etcd-journal.ts';
import { NatsJournal } from '../journal/nats-journal.ts';

const START_MS_MAX = 60_000;

export interface Engine {
  /** A member's way to it; every call makes one more. */
  open(): Promise<Journal>;
  /** What `--journal` would be told. */
  readonly url: string;
  /** Null where there is no process. */
  signal: ((signal: NodeJS.Signals) => void) | null;
  /** After SIGKILL: starts it again with what it had. */
  restart(): Promise<void>;
  /** As somebody would who knows nothing of members: deletes the journal. */
  destroy(): Promise<void>;
  stop(): Promise<void>;
}

export interface EngineKind {
  readonly name: string;
  /** False, or how to get it. */
  readonly missing: false | string;
  start(): Promise<Engine>;
}

const silent = (): void => {};

export function simulatedEngine(): Promise<Engine> {
  const journal = new SimulatedJournal(new Random(7), 1024 * 1024);
  const timer = setInterval(() => journal.step(), 1);
  return Promise.resolve({
    open: () => Promise.resolve(journal.client()),
    url: '',
    signal: null,
    restart: () => Promise.resolve(),
    destroy: () => {
      journal.isGone = true;
      return Promise.resolve();
    },
    stop: () => {
      clearInterval(timer);
      return Promise.resolve();
    },
  });
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connectSocket({ port, host: '127.0.0.1' });
  const isThere = await Promise.race([
    once(socket, 'connect').then(() => true),
    once(socket, 'error').then(() => false),
  ]).catch(() => false);
  socket.destroy();
  return isThere;
}

async function startNatsServer(port: number, dir: string): Promise<ChildProcess> {
  const args = ['-a', '127.0.0.1', '-p', String(port), '-js', '-sd', dir];
  const child = spawn('nats-server', args, { stdio: 'ignore' });
  const endMs = performance.now() + START_MS_MAX;
  while (!(await isOpen(port))) {
    if (child.exitCode !== null || performance.now() > endMs) {
      throw new Error('nats-server did not start');
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return child;
}

async function natsEngine(): Promise<Engine> {
  const port = await freePort();
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-nats-'));
  let child = await startNatsServer(port, dir);
  const open = async (): Promise<Journal> => {
    const endMs = performance.now() + START_MS_MAX;
    for (;;) {
      try {
        return await NatsJournal.open({
          servers: [`127.0.0.1:${port}`],
          stream: 'group',
          replicas: 1,
          storage: 'file',
          bytesMax: 1024 ** 3,
          tls: null,
          log: silent,
        });
      } catch (error) {
        if (performance.now() > endMs) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  };
  return {
    open,
    url: `nats://127.0.0.1:${port}/group`,
    signal: (signal) => {
      if (signal === 'SIGSTOP') holdUp(child.pid ?? 0);
      else child.kill(signal);
    },
    restart: async () => {
      if (child.exitCode === null && child.signalCode === null) await once(child, 'close');
      child = await startNatsServer(port, dir);
    },
    destroy: async () => {
      const connection = await connectNats({ servers: [`127.0.0.1:${port}`] });
      await (await jetstreamManager(connection)).streams.delete('group');
      await connection.close();
    },
    stop: async () => {
      const closed = child.exitCode === null && child.signalCode === null;
      const ended = closed ? once(child, 'close') : null;
      child.kill('SIGKILL');
      await ended;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function etcdEngine(): Promise<Engine> {
  const etcd = await startEtcd();
  const url = `http://127.0.0.1:${etcd.port}`;
  const endpoints = parseEndpoints('--journal', url);
  const options = {
    endpoints,
    tls: () => null,
    log: silent,
    path: 'megaplane/journal/group',
    compacts: true,
  };
  return {
    open: () => Promise.resolve(new EtcdJournal(options)),
    url: `etcd://127.0.0.1:${etcd.port}/group`,
    signal: null,
    restart: () => Promise.resolve(),
    destroy: () => {
      const flags = ['--endpoints', `127.0.0.1:${etcd.port}`, 'del', '--prefix'];
      const env = { ...process.env, ETCDCTL_API: '3' };
      execFileSync('etcdctl', [...flags, options.path], { env, stdio: 'ignore' });
      return Promise.resolve();
    },
    stop: () => etcd.stop(),
  };
}

export const ENGINES: readonly EngineKind[] = [
  { name: 'simulated', missing: false, start: simulatedEngine },
  {
    name: 'etcd',
    missing: has('etcd') ? false : 'needs etcd (apt install etcd-server etcd-client)',
    start: etcdEngine,
  },
  {
    name: 'nats',
    missing: has('nats-server') ? false : 'needs nats-server (apt install nats-server)',
    start: natsEngine,
  },
];
