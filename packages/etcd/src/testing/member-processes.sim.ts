// shell: members of a group as processes
/** For tests: three members in processes of their own, to be killed, stopped and gone on with. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { holdUp } from '@megaplane/base/stopped.sim';
import { freePort } from '@megaplane/base/free-port.sim';

const CHILD = join(import.meta.dirname, 'member-child.sim.ts');

export class MemberProcess {
  readonly name: string;
  readonly port: number;
  readonly #url: string;
  readonly #leaseMs: number;
  readonly #more: readonly string[];
  #child: ChildProcess | null = null;
  isStopped = false;

  private constructor(
    name: string,
    port: number,
    url: string,
    leaseMs: number,
    more: readonly string[],
  ) {
    this.#more = more;
    this.name = name;
    this.port = port;
    this.#url = url;
    this.#leaseMs = leaseMs;
  }

  /** `more`: a directory of copies, and the entries between them. */
  static async start(
    name: string,
    url: string,
    leaseMs: number,
    ...more: string[]
  ): Promise<MemberProcess> {
    const member = new MemberProcess(name, await freePort(), url, leaseMs, more);
    assert(await member.begin(), `${name} does not start`);
    return member;
  }

  get isUp(): boolean {
    return this.#child !== null && !this.isStopped;
  }

  /** Starts it, and waits until it serves; false when it ended instead. */
  async begin(): Promise<boolean> {
    const args = [CHILD, this.#url, this.name, String(this.port), String(this.#leaseMs)];
    args.push(...this.#more);
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#child = child;
    this.isStopped = false;
    const ended = once(child, 'close').then(() => null);
    const told = once(child.stdout, 'data') as Promise<[Buffer]>;
    const first = await Promise.race([told, ended]);
    if (first === null) {
      this.#child = null;
      return false;
    }
    assert.match(first[0].toString(), /^ready \d+/);
    return true;
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null) return;
    const closed = child.exitCode === null && child.signalCode === null;
    const ended = closed ? once(child, 'close') : null;
    if (this.isStopped) child.kill('SIGCONT');
    child.kill(signal);
    await ended;
  }

  pause(): void {
    const pid = this.#child?.pid;
    this.isStopped = pid !== undefined;
    if (pid !== undefined) holdUp(pid);
  }

  goOn(): void {
    this.isStopped = false;
    this.#child?.kill('SIGCONT');
  }
}
