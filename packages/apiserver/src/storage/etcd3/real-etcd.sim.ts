// shell
/** For tests: an etcd of the distribution, in a directory of its own, that can be killed. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '@megaplane/base/free-port.sim';

const START_MS_MAX = 90_000;
const STARTS_MAX = 5;

/** Reason to skip a test, or false. */
export const withoutEtcd: string | false =
  spawnSync('etcd', ['--version'], { stdio: 'ignore' }).error === undefined
    ? false
    : 'needs etcd: apt-get install etcd-server';

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
    if (this.port > 0) {
      if (!(await this.#launch())) throw new Error('etcd did not start again');
      return;
    }
    // Somebody may take a port before etcd does: then it ends at once.
    for (let tries = 0; tries < STARTS_MAX; tries++) {
      this.port = await freePort();
      this.#peerPort = await freePort();
      if (await this.#launch()) return;
    }
    throw new Error('etcd did not start');
  }

  /** False when it has ended before it answered. */
  async #launch(): Promise<boolean> {
    const peer = `http://127.0.0.1:${this.#peerPort}`;
    const args = ['--data-dir', this.#dir, '--listen-client-urls', this.url];
    args.push('--advertise-client-urls', this.url, '--listen-peer-urls', peer);
    args.push('--initial-advertise-peer-urls', peer, '--initial-cluster', `default=${peer}`);
    args.push('--unsafe-no-fsync', '--heartbeat-interval', '20', '--election-timeout', '100');
    const child = spawn(this.#program, args, { stdio: 'ignore' });
    this.#child = child;
    const endMs = performance.now() + START_MS_MAX;
    while (!(await answers(this.port))) {
      if (child.exitCode !== null || performance.now() > endMs) return false;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return true;
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
