// shell
/** For tests: an etcd of the distribution, in a directory of its own, that can be killed. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const START_MS_MAX = 10_000;

/** Reason to skip a test, or false. */
export const withoutEtcd: string | false =
  spawnSync('etcd', ['--version'], { stdio: 'ignore' }).error === undefined
    ? false
    : 'needs etcd: apt-get install etcd-server';

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const isOpen = await Promise.race([
    once(socket, 'connect').then(() => true),
    once(socket, 'error').then(() => false),
  ]).catch(() => false);
  socket.destroy();
  return isOpen;
}

export class RealEtcd {
  readonly #dir: string = mkdtempSync(join(tmpdir(), 'megaplane-etcd-'));
  readonly #program: string;
  #child: ChildProcess | null = null;
  port = 0;
  #peerPort = 0;

  constructor(program = 'etcd') {
    this.#program = program;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Starts it, where it was before if it has run. */
  async start(): Promise<void> {
    if (this.port === 0) {
      this.port = await freePort();
      this.#peerPort = await freePort();
    }
    const peer = `http://127.0.0.1:${this.#peerPort}`;
    const args = ['--data-dir', this.#dir, '--listen-client-urls', this.url];
    args.push('--advertise-client-urls', this.url, '--listen-peer-urls', peer);
    args.push('--initial-advertise-peer-urls', peer, '--initial-cluster', `default=${peer}`);
    args.push('--unsafe-no-fsync', '--heartbeat-interval', '20', '--election-timeout', '100');
    this.#child = spawn(this.#program, args, { stdio: 'ignore' });
    const endMs = performance.now() + START_MS_MAX;
    while (!(await answers(this.port))) {
      if (performance.now() > endMs) throw new Error('etcd did not start');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** As a crash does. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === null) return;
    this.#child = null;
    const closed = once(child, 'close');
    child.kill('SIGKILL');
    await closed;
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
