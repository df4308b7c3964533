/**
 * Runs many commands of `megaplane` in one process of its own: for tests of what commands refuse,
 * where starting the program is nearly all of the work. A test of how the program itself starts
 * and ends uses `megaplane` of `cluster.ts`.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { runCommandLine } from '../src/program.ts';
import { toldExit } from '../src/command-line.ts';

/** How a command ended. */
export interface Ran {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Stands behind all that a command wrote, on both streams. */
const END = '\0end of the command\0';

export class CommandHost {
  readonly #child: ChildProcess = fork(import.meta.filename, ['serve'], { silent: true });
  readonly #ended: Promise<unknown> = once(this.#child, 'exit');
  #written = { stdout: '', stderr: '' };
  #check: () => void = () => undefined;

  constructor() {
    for (const name of ['stdout', 'stderr'] as const) {
      this.#child[name]?.on('data', (chunk: Buffer) => {
        this.#written[name] += chunk.toString();
        this.#check();
      });
    }
  }

  /** Runs one command line to its end, one at a time. */
  async run(...args: readonly string[]): Promise<Ran> {
    this.#written = { stdout: '', stderr: '' };
    const status = new Promise<number>((resolve) => this.#child.once('message', resolve));
    const written = new Promise<void>((resolve) => {
      this.#check = () => {
        const { stdout, stderr } = this.#written;
        if (stdout.endsWith(END) && stderr.endsWith(END)) resolve();
      };
    });
    this.#child.send(args);
    const ended = this.#ended.then(() => {
      throw new Error(`the process of commands ended at: ${args.join(' ')}`);
    });
    const [code] = await Promise.race([Promise.all([status, written]), ended]);
    const { stdout, stderr } = this.#written;
    return { status: code, stdout: stdout.replace(END, ''), stderr: stderr.replace(END, '') };
  }

  close(): void {
    this.#child.kill('SIGKILL');
  }
}

/** The child: it goes on after each command as if the program began anew. */
function serve(): void {
  process.on('message', (args: readonly string[]) => {
    void toldExit(() => runCommandLine(args, '0.0.0')).then((status) => {
      process.stdout.write(END);
      process.stderr.write(END);
      process.send?.(status);
    });
  });
}

if (process.argv[1] === import.meta.filename && process.argv[2] === 'serve') serve();
