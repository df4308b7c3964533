// shell: processes, their pipes and timers
/** Child processes under supervision: `supervision.ts` decides, this file does. */
import { afterMs, guarded } from '@megaplane/base/deferred';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { withHugePages } from '../service/huge-pages.ts';
import { ownCommand } from '../service/self.ts';
import { STOP_ON_STDIN_END } from '../service/service.ts';
import { batchPolicy } from './batch-policy.ts';
import { ChildLog } from './child-log.ts';
import { step } from './supervision.ts';
import type { ChildEvent, ChildState } from './supervision.ts';

/** How one child is started. */
export interface ChildPlan {
  readonly name: string;
  /** Arguments of the `megaplane` command. */
  readonly args: readonly string[];
  /** Flags for the runtime, before the entry file. */
  readonly runtimeFlags: readonly string[];
}

/** Where a child's lines go. */
export interface LineLog {
  write(line: string): void;
  end(): void;
}

const READY = /^ready in \d+ ms: (.*)$/;
const LAST_LINES_MAX = 20;

/** One supervised child process. */
export class Child {
  readonly name: string;
  /** What the child said in its last ready line. */
  listens = '';
  restarts = 0;
  /** Told each time when the child is ready. */
  onReady: () => void = () => {};
  #plan: ChildPlan;
  readonly #log: LineLog;
  readonly #report: (text: string) => void;
  #state: ChildState = { kind: 'stopped' };
  #process: ChildProcess | undefined;
  #lastLines: string[] = [];
  #waiters: (() => void)[] = [];

  /** `log`: a file, or what takes the lines. */
  constructor(plan: ChildPlan, log: string | LineLog, report: (text: string) => void) {
    this.name = plan.name;
    this.#plan = plan;
    this.#report = report;
    this.#log =
      typeof log === 'string' ? new ChildLog(log, (text) => report(`${this.name}: ${text}`)) : log;
  }

  /** How it is started from the next time on. */
  replan(plan: ChildPlan): void {
    this.#plan = plan;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Resolves with the child's ready line; rejects with its last words if it dies before. */
  async start(): Promise<string> {
    this.#feed({ kind: 'start' });
    await this.#until(() => this.#state.kind === 'ready' || isOver(this.#state));
    if (this.#state.kind === 'ready') return this.listens;
    const exit = this.#state.kind === 'failed' ? this.#state.exit : 'was stopped';
    throw new Error(`${this.name}: ${this.#lastWords() ?? exit}`);
  }

  #lastWords(): string | undefined {
    return this.#lastLines.at(-1)?.replace(/^megaplane: /, '');
  }

  /** Resolves when the process is gone. */
  async stop(): Promise<void> {
    this.#feed({ kind: 'stop' });
    await this.#until(() => isOver(this.#state));
    this.#log.end();
  }

  /** The same at once, for one whose data nobody needs any more. */
  async kill(): Promise<void> {
    const stopped = this.stop();
    this.#process?.kill('SIGKILL');
    await stopped;
  }

  #until(isTrue: () => boolean): Promise<void> {
    if (isTrue()) return Promise.resolve();
    return new Promise((resolve) => {
      const check = (): void => {
        if (isTrue()) resolve();
        else this.#waiters.push(check);
      };
      this.#waiters.push(check);
    });
  }

  #feed(event: ChildEvent): void {
    const next = step(this.#state, event, performance.now());
    this.#state = next.state;
    for (const effect of next.effects) {
      if (effect.kind === 'spawn') this.#spawn();
      else if (effect.kind === 'signal') this.#process?.kill(effect.signal);
      else if (effect.kind === 'report') this.#report(`${this.name} ${effect.text}`);
      else this.#wakeAt(effect.timeMs);
    }
    for (const waiter of this.#waiters.splice(0)) waiter();
  }

  /** A timer counts from the start of the loop's turn and so may be early: then it waits again. */
  #wakeAt(timeMs: number): void {
    const leftMs = Math.max(0, timeMs - performance.now());
    afterMs(leftMs, () => {
      if (performance.now() < timeMs) this.#wakeAt(timeMs);
      else this.#feed({ kind: 'tick' });
    });
  }

  #spawn(): void {
    const { runtimeFlags, args } = this.#plan;
    const own = ownCommand(runtimeFlags, args, withHugePages(args, process.env));
    const [command = own.command[0], ...rest] = [...batchPolicy(), ...own.command];
    // A group of its own, so that a terminal's Ctrl-C reaches the parent alone, which stops the
    // children in their order; the pipe on stdin tells them when the parent itself is killed.
    const child = spawn(command, rest, {
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
      env: { ...own.env, [STOP_ON_STDIN_END]: '1' },
    });
    if (this.#process !== undefined) this.restarts++;
    this.#process = child;
    this.#lastLines = [];
    child.on(
      'error',
      guarded((error) => this.#note(`cannot be started: ${reasonOf(error)}`)),
    );
    child.on(
      'close',
      guarded((code, signal) => {
        const end = signal === null ? `code ${code}` : `signal ${signal}`;
        const lastWords = code === 0 || signal !== null ? undefined : this.#lastWords();
        this.#feed({
          kind: 'exited',
          exit: lastWords === undefined ? end : `${end}: ${lastWords}`,
        });
      }),
    );
    // A process that could not be made for want of descriptors has no streams either.
    const { stdin, stdout, stderr }: Partial<typeof child> = child;
    stdin?.on(
      'error',
      guarded(() => this.#log.write('stdin of the child is closed')),
    );
    if (stdout !== undefined) {
      createInterface({ input: stdout }).on(
        'line',
        guarded((line) => this.#hear(line)),
      );
    }
    if (stderr !== undefined) {
      createInterface({ input: stderr }).on(
        'line',
        guarded((line) => this.#note(line)),
      );
    }
  }

  #hear(line: string): void {
    this.#log.write(line);
    const listens = READY.exec(line)?.[1];
    if (listens === undefined) return;
    this.listens = listens;
    this.#feed({ kind: 'ready' });
    this.onReady();
  }

  #note(line: string): void {
    this.#log.write(line);
    this.#lastLines.push(line);
    if (this.#lastLines.length > LAST_LINES_MAX) this.#lastLines.shift();
  }
}

function reasonOf(error: NodeJS.ErrnoException): string {
  const isFull = error.code === 'EMFILE' || error.code === 'ENFILE';
  return isFull ? `${error.message}: too many open files; raise "ulimit -n"` : error.message;
}

function isOver(state: ChildState): boolean {
  return state.kind === 'stopped' || state.kind === 'failed';
}
