/**
 * A whole cluster from nothing: `megaplane up`, its timings, memory and processor time.
 *
 *     node bench/up.ts --nodes 100000 --pods 100000 --runs 3
 *
 * Everything goes through the API over TLS; simulator, scheduler, controllers and API server share
 * the machine. Prints the median of the runs and, beside it, every run.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { flagsOf } from './flags.ts';
import { machine, median, printTable, ROOT, writeResults } from './harness.ts';

const values = flagsOf({
  nodes: { type: 'string', default: '10000' },
  pods: { type: 'string', default: '0' },
  runs: { type: 'string', default: '3' },
  restart: { type: 'boolean', default: false },
  output: { type: 'string' },
});

interface Run {
  readonly firstAnswerMs: number;
  readonly nodesReadyMs: number;
  readonly podsBoundMs: number | null;
  readonly podsRunningMs: number | null;
  readonly processes: readonly {
    readonly name: string;
    readonly rssPeakMib: number;
    readonly cpuSeconds: number;
  }[];
}

function up(dataDir: string): Run {
  const state = values.pods === '0' ? 'ready' : 'bound';
  const flags = ['--nodes', values.nodes, '--pods', values.pods, '--exit-when', state];
  const entry = join(ROOT, 'packages/cli/src/main.ts');
  const args = [
    entry,
    'up',
    ...flags,
    '--data-dir',
    dataDir,
    '--secure-port',
    '0',
    '--output',
    'json',
  ];
  const result = spawnSync(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  if (result.status !== 0) throw new Error(`up ended with code ${result.status}`);
  return JSON.parse(result.stdout.toString()) as Run;
}

const COLUMNS = [
  ['first answer ms', (run: Run) => run.firstAnswerMs],
  ['nodes ready ms', (run: Run) => run.nodesReadyMs],
  ['pods bound ms', (run: Run) => run.podsBoundMs],
  ['pods running ms', (run: Run) => run.podsRunningMs],
  ['memory MiB', (run: Run) => run.processes.reduce((sum, one) => sum + one.rssPeakMib, 0)],
  ['cpu s', (run: Run) => run.processes.reduce((sum, one) => sum + one.cpuSeconds, 0)],
] as const;

const runs: Run[] = [];
const again: Run[] = [];
for (let index = 0; index < Number(values.runs); index++) {
  const dataDir = mkdtempSync(join(tmpdir(), 'megaplane-bench-'));
  try {
    runs.push(up(dataDir));
    if (values.restart) again.push(up(dataDir));
  } finally {
    rmSync(dataDir, { recursive: true });
  }
}

process.stdout.write(`${machine()}\n${values.nodes} nodes, ${values.pods} pods\n`);
const head = ['', 'median', ...runs.map((_, index) => `run ${index + 1}`)];
for (const [title, list] of [
  ['from nothing', runs],
  ['restart', again],
] as const) {
  if (list.length === 0) continue;
  process.stdout.write(`\n${title}\n`);
  printTable(
    head,
    COLUMNS.map(([name, read]) => {
      const figures = list.map((run) => read(run) ?? NaN);
      return [name, median(figures).toFixed(1), ...figures.map((figure) => figure.toFixed(1))];
    }),
  );
}
writeResults(values.output, {
  nodes: Number(values.nodes),
  pods: Number(values.pods),
  runs,
  again,
});
