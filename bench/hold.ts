/**
 * A cluster that only lives: renewals per second, their lateness, and the processor time and memory
 * of each process meanwhile.
 *
 *     node bench/hold.ts --nodes 100000 --seconds 30 --runs 3
 */
import { spawn } from 'node:child_process';
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
import { flagsOf } from './flags.ts';

const values = flagsOf({
  nodes: { type: 'string', default: '100000' },
  seconds: { type: 'string', default: '30' },
  /** Between the summary and the first look: what a start leaves behind is over by then. */
  settle: { type: 'string', default: '15' },
  runs: { type: 'string', default: '3' },
  output: { type: 'string' },
});
type Figures = Record<string, number>;

async function metrics(dataDir: string): Promise<(name: string) => number> {
  const log = readFileSync(join(dataDir, 'logs/nodes.log'), 'utf8');
  const url = /http:\/\/\S+\/metrics/.exec(log)?.[0] ?? '';
  const text = await (await fetch(url)).text();
  return (name) => {
    const line = text.split('\n').find((one) => one.startsWith(`${name} `));
    return Number(line?.split(' ')[1] ?? NaN);
  };
}

async function hold(dataDir: string): Promise<Figures> {
  const entry = join(ROOT, 'packages/cli/src/main.ts');
  const flags = ['--nodes', values.nodes, '--data-dir', dataDir, '--secure-port', '0'];
  const up = spawn(process.execPath, [entry, 'up', ...flags, '--output', 'json'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(up.stdout, 'data');
  await sleep(Number(values.settle) * 1000);
  const pids = upPids(up.pid ?? 0);
  const before = pids.map((pid) => cpuSeconds(pid));
  const first = (await metrics(dataDir))('megaplane_lease_renewals_total');
  const startMs = performance.now();
  await sleep(Number(values.seconds) * 1000);
  const seconds = (performance.now() - startMs) / 1000;
  const last = await metrics(dataDir);
  const figures: Figures = {
    'renewals/s': (last('megaplane_lease_renewals_total') - first) / seconds,
    'lateness p99 s': last('megaplane_lease_lateness_seconds{quantile="0.99"}'),
    'lateness max s': last('megaplane_lease_lateness_seconds{quantile="1"}'),
  };
  for (const [index, pid] of pids.entries()) {
    const used = cpuSeconds(pid) - (before[index] ?? 0);
    figures[`${UP_PARTS[index]} % of a core`] = (used / seconds) * 100;
    figures[`${UP_PARTS[index]} MiB`] = rssMib(pid);
    if (UP_PARTS[index] !== 'nodes') continue;
    figures['renewals per CPU second of nodes'] = ((figures['renewals/s'] ?? 0) * seconds) / used;
  }
  up.kill('SIGINT');
  await once(up, 'exit');
  return figures;
}

const runs: Figures[] = [];
for (let run = 0; run < Number(values.runs); run++) {
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
