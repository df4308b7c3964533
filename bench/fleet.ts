/**
 * The fleet's figures beside their goals: decisions of a shard by size and shape, memory, roll-ups,
 * requests of pods, actions where providers are slow, and what chosen machines cost.
 *
 *     node bench/fleet.ts
 *     node bench/fleet.ts --only 'shape|roll-up'
 *     node bench/fleet.ts --engine strict --only catalogue
 *
 * Each row is a program of its own, as the benchmarks beside their subjects; times are processor
 * time of that process, garbage collection included, medians of six where it says median. What the
 * reference needs, on a like machine, is told where it is known.
 */
import { spawnSync } from 'node:child_process';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { flagsOf } from './flags.ts';
import * as harness from './harness.ts';

const values = flagsOf({
  only: { type: 'string', default: '' },
  engine: { type: 'string', default: 'better' },
  output: { type: 'string' },
});

const PACKAGE = join(harness.ROOT, 'packages/fleet/src');
const SHARD = 'engine/shard.bench.ts';
const DELAYS = 'engine/delays.bench.ts';
const COVER = 'engine/dense/cover.bench.ts';
const ROLLING = 'rollup/rolling.bench.ts';
const PODS = 'pods/pods-controller.bench.ts';
const HEAP_MIB = 12_000;

type Figures = Readonly<Record<string, number>>;

interface Row {
  readonly name: string;
  readonly program: string;
  readonly flags: readonly string[];
  /** What is told, the goal, and what the reference needs. */
  readonly figures: readonly (readonly [
    what: string,
    of: (figures: Figures) => number,
    goal: number,
    unit: string,
    reference: string,
  ])[];
}

function at(name: string): (figures: Figures) => number {
  return (figures) => figures[name] ?? NaN;
}

const engine = ['--engine', values.engine];
const catalogue = (machines: number, goals: readonly [number, number], reference: string): Row => ({
  name: `catalogue, ${machines} machines`,
  program: SHARD,
  flags: [...engine, '--machines', String(machines), '--cycles', machines > 100_000 ? '20' : '40'],
  figures: [
    ['all acquired', at('firstMs'), goals[0], 'ms', reference],
    ['full, median', at('fullMs'), goals[0], 'ms', reference],
    ['steady, median', at('steadyMs'), goals[1], 'ms', '-'],
    ['steady, p99', at('p99Ms'), Infinity, 'ms', '-'],
  ],
});
const memory = (name: string, flags: readonly string[]): Row => ({
  name: `memory, ${name}`,
  program: SHARD,
  flags: [...engine, '--memory', ...flags],
  figures: [['in use', at('usedMib'), 400, 'MiB', '4.8 GiB at its peak']],
});
const delays = (latency: number, churn: number): Row => ({
  name: `providers that take ${latency} s, churn ${churn}`,
  program: DELAYS,
  flags: [...engine, '--latency', String(latency), '--churn', String(churn)],
  figures:
    churn === 0
      ? [['reclaims in an hour', ({ Reclaim = 0 }) => Reclaim, 0, '', '9']]
      : [['actions in an hour', at('actions'), NaN, '', '82 to 196,000']],
});
const ONE = ['--shape', 'one', '--machines', '500000', '--churn', '0.05'];
const ROWS: readonly Row[] = [
  {
    name: 'one shape, 500000 machines',
    program: SHARD,
    flags: [...engine, ...ONE, '--cycles', '60'],
    figures: [
      ['full, median', at('fullMs'), Infinity, 'ms', '13,500 ms'],
      ['steady, median', at('steadyMs'), Infinity, 'ms', '-'],
      ['steady, p99', at('p99Ms'), 40, 'ms', '48 ms on 16 cores'],
    ],
  },
  {
    ...catalogue(5000, [60, 10], '250 ms'),
    flags: [...engine, '--machines', '5000', '--slots', '3'],
  },
  catalogue(50_000, [1000, 50], '14,800 ms'),
  catalogue(500_000, [5000, 150], '99,500 ms'),
  memory('one shape, 500000 machines', ONE),
  memory('catalogue, 500000 machines', ['--machines', '500000']),
  ...[0, 30, 60].map((latency) => delays(latency, 0.02)),
  delays(60, 0),
  {
    name: 'roll-up',
    program: ROLLING,
    flags: [],
    figures: [
      ['25,000 requests from nothing, median', at('nothingMs'), 20, 'ms', '233 ms'],
      ['a changed request', at('changeNs'), 1000, 'ns', '500 to 4,000 ns'],
    ],
  },
  {
    name: 'pods, 500000',
    program: PODS,
    flags: [],
    figures: [['memory of a pod', at('bytes'), 150, 'bytes', '-']],
  },
  ...(['0.2', '0.6'] as const).map((spread): Row => ({
    name: spread === '0.2' ? 'cost at list prices' : 'cost at spot-like prices',
    program: COVER,
    flags: ['--spread', spread],
    figures: [
      ['beside the least, by fractions', at('ours'), 1.05, 'times', '-'],
      ["the reference's rule, on these", at('theirs'), Infinity, 'times', '-'],
    ],
  })),
];

function figuresOf({ program, flags }: Row): Figures {
  const args = ['--expose-gc', `--max-old-space-size=${HEAP_MIB}`, join(PACKAGE, program)];
  const { status, stdout } = spawnSync(process.execPath, [...args, ...flags, '--json'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 2 ** 26,
  });
  if (status !== 0) throw new Error(`${program} ended with ${status}`);
  const last = stdout.toString().trim().split('\n').at(-1) ?? '';
  return JSON.parse(last) as Figures;
}

function shown(value: number): string {
  if (Number.isNaN(value) || value === Infinity) return '-';
  return value >= 100 ? Math.round(value).toString() : Number(value.toPrecision(3)).toString();
}

const only = new RegExp(values.only);
const load = (): string => (loadavg()[0] ?? 0).toFixed(1);
process.stdout.write(`${harness.machine()}, load ${load()}, engine ${values.engine}\n`);
const results: object[] = [];
for (const row of ROWS.filter(({ name }) => only.test(name))) {
  const figures = figuresOf(row);
  for (const [what, of, goal, unit, reference] of row.figures) {
    const value = of(figures);
    const verdict = value > goal ? ', MISSED' : '';
    const aim = shown(goal) === '-' ? '' : ` (goal ${shown(goal)}${verdict})`;
    const other = reference === '-' ? '' : `; reference ${reference}`;
    process.stdout.write(`${row.name}: ${what} ${shown(value)} ${unit}`.trimEnd());
    process.stdout.write(`${aim}${other}\n`);
  }
  const command = [row.program, ...row.flags].join(' ');
  results.push({ name: row.name, command, figures, loadAfter: load() });
}
harness.writeResults(values.output, { machine: harness.machine(), results });
