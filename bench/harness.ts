/** What every comparison needs: the machine's name, pinned children, processor time, medians. */
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { cpus, totalmem, release } from 'node:os';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { adopt } from './children.ts';
import { writeJson } from './flags.ts';
import { drawTables, keepTable } from './pictures.ts';

export const ROOT: string = join(import.meta.dirname, '..');
const TICKS_PER_SECOND = 100;

/** One line about where a figure was measured. */
export function machine(): string {
  const [first] = cpus();
  const gib = (totalmem() / 2 ** 30).toFixed(0);
  const cores = `${cpus().length} x ${first?.model.trim() ?? '?'}`;
  return `${cores}, ${gib} GiB, Linux ${release()}, Node ${process.version}`;
}

/** Keeps this process, the load generator, off the server's core. */
export function pinSelf(core: number): void {
  spawnSync('taskset', ['-acp', String(core), String(process.pid)]);
}

/** User and system seconds of a process, all its threads. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** The same to the microsecond, by the scheduler's own count of each thread that lives. */
export function cpuSecondsExact(pid: number): number {
  let nanoseconds = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const text = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8');
    nanoseconds += Number(text.split(' ')[0]);
  }
  return nanoseconds / 1e9;
}

/** Milliseconds that the main thread of a process has worked. */
export function mainThreadMs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
}

/** Resident memory of a process in MiB. */
export function rssMib(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024;
}

/** The processes of `megaplane up` that are measured. */
export const UP_PARTS = ['apiserver', 'controllers', 'scheduler', 'nodes'] as const;

/** Their process ids, in that order; `up` is their parent. */
export function upPids(up: number): number[] {
  const children = readFileSync(`/proc/${up}/task/${up}/children`, 'utf8').trim().split(' ');
  return UP_PARTS.map((part) => {
    for (const pid of children.map(Number)) {
      if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`\0${part}\0`)) return pid;
    }
    throw new Error(`no ${part} among the children of ${up}`);
  });
}

export interface Server {
  readonly pid: number;
  /** The text after `ready in … ms: `. */
  readonly listens: string;
  readonly readyMs: number;
  stop(): Promise<void>;
}

/**
 * Starts a `megaplane` subcommand on a core, or on `0,1`, and waits for its ready line; `onLine` is
 * told all lines.
 */
export async function startMegaplane(
  args: readonly string[],
  core: number | string,
  runtimeFlags: readonly string[] = [],
  onLine: (line: string) => void = () => {},
): Promise<Server> {
  const entry = join(ROOT, 'packages/cli/src/main.ts');
  const startMs = performance.now();
  const command = ['-c', String(core), process.execPath, ...runtimeFlags, entry, ...args];
  const child = adopt(spawn('taskset', command, { stdio: ['ignore', 'pipe', 'pipe'] }));
  const errors: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => errors.push(line));
  const lines = createInterface({ input: child.stdout });
  const listens = await new Promise<string>((resolve, reject) => {
    lines.on('line', (line) => {
      onLine(line);
      const match = /^ready in \d+ ms: (.*)$/.exec(line);
      if (match !== null) resolve(match[1] ?? '');
    });
    child.on('exit', (code) =>
      reject(new Error(`${args[0]} ended (${code}): ${errors.join('\n')}`)),
    );
  });
  return {
    pid: child.pid ?? 0,
    listens,
    readyMs: performance.now() - startMs,
    stop: () => stopChild(child),
  };
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const exited = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await exited;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const high = sorted[middle] ?? NaN;
  return sorted.length % 2 === 1 ? high : ((sorted[middle - 1] ?? NaN) + high) / 2;
}

/** The value below which `part` of the sorted values lie. */
export function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN;
}

/** Prints rows under a head with columns of equal width. */
export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  keepTable({ head, rows });
  const widths = head.map((name, column) =>
    Math.max(name.length, ...rows.map((row) => (row[column] ?? '').length)),
  );
  for (const row of [head, ...rows]) {
    const cells = row.map((cell, column) => cell.padEnd(widths[column] ?? 0));
    process.stdout.write(`${cells.join('  ').trimEnd()}\n`);
  }
}

/**
 * Writes results beside the tables: to the file of `--output FILE`, to stdout for `--output json`,
 * and as a picture where `--plot` asks for it.
 */
export function writeResults(file: string | undefined, results: object): void {
  drawTables(titleOf(process.argv));
  if (file === undefined) return;
  const whole = { machine: machine(), command: process.argv.slice(1).join(' '), ...results };
  const text = `${JSON.stringify(whole, undefined, 2)}\n`;
  if (file === 'json') writeJson(text);
  else writeFileSync(file, text);
}

/** The command as people type it, without the files that it reads and writes. */
function titleOf([, file = '', ...flags]: readonly string[]): string {
  const isFile = (word: string | undefined): boolean =>
    /^--(?:plot|output|html|peer|kubeconfig)$/.test(word ?? '');
  const shown = flags.filter((word, at) => !isFile(word) && !isFile(flags[at - 1]));
  return ['megaplane bench', basename(file, '.ts'), ...shown].join(' ');
}
