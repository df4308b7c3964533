/** A small cluster for tests: `megaplane up` as a child, on a free port, in a temporary directory. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import type { ChildProcess, SpawnSyncReturns } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** Only what is broken takes so long, on the slowest machine. */
const WAIT_MS_MAX = 90_000;

/** The program. */
export const ENTRY: string = join(import.meta.dirname, '..', 'src', 'main.ts');

export interface Cluster {
  readonly dataDir: string;
  readonly kubeconfig: string;
  readonly server: string;
  /** The link to its page, where it has one. */
  readonly page?: string;
  readonly up: ChildProcess;
  /** The process of one of its commands. */
  pidOf(command: string): number;
  /** Kills everything at once, as a power cut would. */
  kill(): Promise<void>;
  /** Stops it and waits for its end; resolves with the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
  /** Stops it and removes its data. */
  remove(): Promise<void>;
}

type Summary = Pick<Cluster, 'server' | 'kubeconfig' | 'page'>;

/** Flags of a cluster that nothing runs in but the API server: a third of the processes' work. */
export const SERVER_ONLY: readonly string[] = ['--nodes', '0', '--components', 'apiserver'];

/** Starts `megaplane up` with `flags` and waits for its summary. */
export async function startCluster(
  flags: readonly string[],
  dataDir: string = mkdtempSync(join(tmpdir(), 'megaplane-test-')),
): Promise<Cluster> {
  const args = ['up', '--data-dir', dataDir, '--secure-port', '0', '--output', 'json'];
  if (!flags.includes('--page-port')) args.push('--page-port', '0');
  args.push(...flags);
  const up = spawn(process.execPath, [ENTRY, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let errors = '';
  up.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const summary = await new Promise<Summary>((resolve, reject) => {
    let text = '';
    up.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      if (text.includes('\n')) resolve(JSON.parse(text));
    });
    up.once('exit', (code) => reject(new Error(`up ended with ${code}: ${errors}`)));
  });
  const stop = async (signal: NodeJS.Signals = 'SIGINT'): Promise<number | null> => {
    if (up.exitCode !== null || up.signalCode !== null) return up.exitCode;
    const exited = new Promise<number | null>((resolve) => up.once('exit', resolve));
    up.kill(signal);
    return exited;
  };
  return {
    ...summary,
    dataDir,
    up,
    pidOf: (command) => {
      const found = childrenOf(up).find((pid) => commandLine(pid).includes(`\0${command}\0`));
      if (found === undefined) throw new Error(`no ${command} among the children`);
      return found;
    },
    kill: async () => {
      // Neither may it start a child anew nor may a child hear of its end, and stop in good order.
      up.kill('SIGSTOP');
      const children = childrenOf(up);
      for (const pid of children) process.kill(pid, 'SIGKILL');
      await stop('SIGKILL');
      for (const pid of children) {
        await eventually(`the end of ${pid}`, () => commandLine(pid) === '' || undefined);
      }
    },
    stop,
    remove: async () => {
      await stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

function childrenOf({ pid }: ChildProcess): number[] {
  const found = spawnSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' }).stdout.trim();
  return found === '' ? [] : found.split('\n').map(Number);
}

/** With a NUL behind each word; empty for a process that has ended. */
function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

/** Runs `megaplane` to its end. */
export function megaplane(...args: readonly string[]): SpawnSyncReturns<string> {
  return spawnSync(process.execPath, [ENTRY, ...args], { encoding: 'utf8', timeout: WAIT_MS_MAX });
}

/** The kubectls of this machine: the one on PATH, and those of other minors beside it. */
export function kubectls(): readonly string[] {
  const found = spawnSync('sh', ['-c', 'command -v kubectl'], { encoding: 'utf8' }).stdout.trim();
  if (found === '') return [];
  const folder = dirname(realpathSync(found));
  const others = readdirSync(folder).filter((name) => /^kubectl\.1\.\d+$/.test(name));
  return [found, ...others.map((name) => join(folder, name))];
}

export const NO_KUBECTL = 'needs kubectl: apt-get install kubernetes-client';

/** A kubectl bound to one cluster, with a cache of its own. */
export function kubectlOf(program: string, cluster: Cluster): (...args: string[]) => string {
  const home = join(cluster.dataDir, 'home');
  const env = { PATH: process.env['PATH'], HOME: home, KUBECONFIG: cluster.kubeconfig };
  return (...args) => execFileSync(program, args, { encoding: 'utf8', env, timeout: WAIT_MS_MAX });
}

/** First and longest time between two looks, and what the time grows by: most look by a kubectl. */
const PAUSE_MS = { first: 100, max: 800, factor: 1.3 };

/** Calls `look` until it gives something; ever less often. */
export async function eventually<Found>(
  what: string,
  look: () => Found | undefined,
): Promise<Found> {
  const endMs = Date.now() + WAIT_MS_MAX;
  for (
    let pauseMs = PAUSE_MS.first;
    ;
    pauseMs = Math.min(pauseMs * PAUSE_MS.factor, PAUSE_MS.max)
  ) {
    const found = look();
    if (found !== undefined) return found;
    if (Date.now() > endMs) throw new Error(`not within ${WAIT_MS_MAX} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
