/**
 * A cluster that only lives: renewals per second, their lateness, failures, and the processor time
 * and memory of each process meanwhile. All is counted from the first look to the last, so that
 * what the filling left behind is left out. A line each ten seconds says how it goes.
 *
 *     node bench/hold.ts --nodes 100000 --seconds 30 --runs 3
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  cpuSeconds,
  machine,
  median,
  printTable,
  ROOT,
  rssMib,
  UP_PARTS,
  upPids,
  writeResults,
} from './harness.ts';
import { flagsOf, wholeNumbers } from './flags.ts';
import { lookAt, latenessBetween, type Look } from './lateness.ts';
import { adopt } from './children.ts';

const values = flagsOf({
  nodes: { type: 'string', default: '100000' },
  seconds: { type: 'string', default: '30' },
  /** Between the summary and the first look: what a start leaves behind is over by then. */
  settle: { type: 'string', default: '15' },
  runs: { type: 'string', default: '3' },
  /** As of `megaplane up`: `leases.coordination.k8s.io=none,buffered`, say. */
  durability: { type: 'string' },
  output: { type: 'string' },
});
const given = wholeNumbers(values, { nodes: 1, seconds: 1, settle: 0, runs: 1 });
type Figures = Record<string, number>;

const PROGRESS_MS = 10_000;

async function look(dataDir: string): Promise<Look> {
  const log = readFileSync(join(dataDir, 'logs/nodes.log'), 'utf8');
  const url = /http:\/\/\S+\/metrics/.exec(log)?.[0] ?? '';
  return lookAt(await (await fetch(url)).text(), performance.now());
}

/** Rejects when the cluster ends before we end it. */
async function ended(up: ChildProcess): Promise<never> {
  const [code, signal] = (await once(up, 'exit')) as [number | null, string | null];
  throw new Error(`megaplane up ended (${signal ?? code}) before it was measured`);
}

async function hold(dataDir: string): Promise<Figures> {
  const entry = join(ROOT, 'packages/cli/src/main.ts');
  const flags = ['--nodes', values.nodes, '--data-dir', dataDir, '--secure-port', '0'];
  if (values.durability !== undefined) flags.push('--durability', values.durability);
  const up = adopt(
    spawn(process.execPath, [entry, 'up', ...flags, '--output', 'json'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  );
  const end = ended(up);
  const work = async (): Promise<Figures> => {
    await once(up.stdout, 'data');
    await sleep(given.settle * 1000);
    return measure(up.pid ?? 0, dataDir);
  };
  try {
    return await Promise.race([work(), end]);
  } finally {
    end.catch(() => {});
    if (up.exitCode === null && up.signalCode === null) {
      up.kill('SIGINT');
      await once(up, 'exit');
    }
  }
}

async function measure(up: number, dataDir: string): Promise<Figures> {
  const pids = upPids(up);
  const before = pids.map((pid) => cpuSeconds(pid));
  const first = await look(dataDir);
  const last = await watch(first, dataDir);
  const seconds = (last.atMs - first.atMs) / 1000;
  const lateness = latenessBetween(first, last);
  const figures: Figures = {
    'renewals/s': (last.renewals - first.renewals) / seconds,
    'lateness p99 s': lateness.p99,
    'lateness max s, at most': lateness.max,
    failures: last.errors - first.errors,
    conflicts: last.conflicts - first.conflicts,
  };
  for (const [index, pid] of pids.entries()) {
    const used = cpuSeconds(pid) - (before[index] ?? 0);
    figures[`${UP_PARTS[index]} % of a core`] = (used / seconds) * 100;
    figures[`${UP_PARTS[index]} MiB`] = rssMib(pid);
    if (UP_PARTS[index] !== 'nodes') continue;
    figures['renewals per CPU second of nodes'] = ((figures['renewals/s'] ?? 0) * seconds) / used;
  }
  return figures;
}

/** The last look; tells from time to time how it goes. */
async function watch(first: Look, dataDir: string): Promise<Look> {
  const endMs = first.atMs + given.seconds * 1000;
  let before = first;
  for (;;) {
    await sleep(Math.max(0, Math.min(PROGRESS_MS, endMs - performance.now())));
    const now = await look(dataDir);
    const passed = Math.round((now.atMs - first.atMs) / 1000);
    const rate = ((now.renewals - before.renewals) * 1000) / (now.atMs - before.atMs);
    const { p99 } = latenessBetween(before, now);
    process.stderr.write(
      `${passed} of ${values.seconds} s: ${rate.toFixed(0)} renewals/s, p99 ${p99.toFixed(2)} s ` +
        `late, ${now.errors - first.errors} failures\n`,
    );
    if (now.atMs >= endMs) return now;
    before = now;
  }
}

const runs: Figures[] = [];
for (let run = 0; run < given.runs; run++) {
  const dataDir = mkdtempSync(join(tmpdir(), 'megaplane-bench-'));
  try {
    runs.push(await hold(dataDir));
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}
process.stdout.write(`${machine()}\n${values.nodes} nodes held for ${values.seconds} s\n\n`);
const names = Object.keys(runs[0] ?? {});
printTable(
  ['', 'median', ...runs.map((_, index) => `run ${index + 1}`)],
  names.map((name) => {
    const all = runs.map((figures) => figures[name] ?? NaN);
    return [name, ...[median(all), ...all].map((figure) => figure.toFixed(2))];
  }),
);
writeResults(values.output, { nodes: Number(values.nodes), runs });
