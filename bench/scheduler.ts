/**
 * Decisions of the scheduler alone, without an API server, each shape of pods in its own process:
 *
 *     node bench/scheduler.ts --nodes 1000000 --pods 1000000 --runs 3
 *     node bench/scheduler.ts --plot docs/scheduler-cost.svg
 *
 * The second form measures the cost of a decision from 1,000 nodes on, ten times as many at a time,
 * and draws it. Figures are processor time, which a shared machine distorts less than the clock.
 */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { flagsOf } from './flags.ts';
import * as harness from './harness.ts';

const values = flagsOf({
  nodes: { type: 'string', default: '100000' },
  pods: { type: 'string', default: '100000' },
  runs: { type: 'string', default: '1' },
  only: { type: 'string', default: '' },
  plot: { type: 'string' },
  output: { type: 'string' },
});

interface Figure {
  readonly nodes: number;
  readonly decisionsPerSecond: number;
  readonly microsecondsPerDecision: number;
  readonly residentMiB: number;
  readonly evaluated: number;
}

/** Name, shape and number of sets; goal in decisions per second, 0 for none. */
const SHAPES: readonly (readonly [string, string, number, number])[] = [
  ['pods without requests', 'best-effort', 1, 500_000],
  ['four templates', 'templated', 1, 0],
  ['all different', 'random', 1, 30_000],
  ['one Deployment, default spreading', 'deployment', 1, 100_000],
  ['1,000 Deployments, default spreading', 'deployment', 1000, 0],
  ['apart by host (required)', 'host-anti-affinity', 1, 100_000],
  ['together by zone (required)', 'zone-affinity', 1, 50_000],
  ['spread over zones (required)', 'zone-spread', 1, 0],
  ['together by zone (preferred)', 'preferred-affinity', 1, 0],
  ['every tenth fits nowhere', 'unschedulable', 1, 0],
];
const PLOTTED = ['best-effort', 'templated', 'random', 'deployment', 'zone-affinity'];
const PLOTTED_NODES = [1000, 10_000, 100_000, 1_000_000];
const PLOTTED_PODS_MAX = 50_000;
/** Pods that each node of the benchmark has room for, whatever their shape. */
const PODS_PER_NODE = 12;

function measure(nodes: number, pods: number, shape: string, sets: number): Figure {
  const program = join(harness.ROOT, 'packages/scheduler/src/placement/placement.bench.ts');
  const args = [program, String(nodes), String(pods), shape, String(sets)];
  const figures = Array.from({ length: Number(values.runs) }, () => {
    return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' })) as Figure;
  });
  const middle = harness.median(figures.map((figure) => figure.microsecondsPerDecision));
  const found = figures.find((figure) => figure.microsecondsPerDecision === middle) ?? figures[0];
  if (found === undefined) throw new Error('--runs: at least 1');
  return found;
}

function table(): void {
  const [nodes, pods] = [Number(values.nodes), Number(values.pods)];
  const results: object[] = [];
  const rows: string[][] = [];
  for (const [name, shape, sets, goal] of SHAPES) {
    if (values.only !== '' && !new RegExp(values.only).test(shape)) continue;
    const figure = measure(nodes, pods, shape, sets);
    results.push({ name, shape, sets, ...figure });
    const rate = figure.decisionsPerSecond;
    const ratio = goal === 0 ? '-' : `${(rate / goal).toFixed(2)} of ${goal}/s`;
    const micros = figure.microsecondsPerDecision.toFixed(1);
    rows.push([name, `${rate}/s`, `${micros} us`, `${figure.residentMiB} MiB`, ratio]);
  }
  process.stdout.write(`${harness.machine()}\n${nodes} nodes, ${pods} pods\n\n`);
  harness.printTable(['pods', 'decisions', 'each', 'memory', 'goal'], rows);
  harness.writeResults(values.output, { machine: harness.machine(), nodes, pods, results });
}

const WIDTH = 640;
const HEIGHT = 360;
const LEFT = 60;
const RIGHT = 470;
const TOP = 20;
const BOTTOM = 310;
const MICROS_MAX = 100;
const COLORS = ['#1b6ca8', '#2a9d4b', '#c0392b', '#8e44ad', '#b8860b'];

function x(nodes: number): number {
  return LEFT + ((Math.log10(nodes) - 3) / 3) * (RIGHT - LEFT);
}

/** Logarithmic from 1 to 100 us. */
function y(micros: number): number {
  const part = Math.log10(Math.max(1, micros)) / Math.log10(MICROS_MAX);
  return BOTTOM - part * (BOTTOM - TOP);
}

function plot(file: string): void {
  const lines: string[] = [];
  for (const micros of [1, 10, 100]) {
    const at = y(micros);
    lines.push(`<line x1="${LEFT}" x2="${RIGHT}" y1="${at}" y2="${at}" stroke="#ddd"/>`);
    lines.push(`<text x="${LEFT - 8}" y="${at + 4}" text-anchor="end">${micros} us</text>`);
  }
  for (const nodes of PLOTTED_NODES) {
    const text = nodes.toLocaleString('en');
    lines.push(`<text x="${x(nodes)}" y="${BOTTOM + 20}" text-anchor="middle">${text}</text>`);
  }
  lines.push(
    `<text x="${(LEFT + RIGHT) / 2}" y="${BOTTOM + 40}" text-anchor="middle">nodes</text>`,
  );
  const results: object[] = [];
  for (const [index, shape] of PLOTTED.entries()) {
    const figures = PLOTTED_NODES.map((nodes) => {
      return measure(nodes, Math.min(PODS_PER_NODE * nodes, PLOTTED_PODS_MAX), shape, 1);
    });
    results.push({ shape, figures });
    const color = COLORS[index] ?? '#000';
    const points = figures.map(
      (figure) => `${x(figure.nodes).toFixed(1)},${y(figure.microsecondsPerDecision).toFixed(1)}`,
    );
    lines.push(`<polyline points="${points.join(' ')}" fill="none" stroke="${color}"/>`);
    const micros = figures.map((figure) => figure.microsecondsPerDecision);
    const growth = ((micros.at(-1) ?? 0) / (micros[0] ?? 1)).toFixed(1);
    const at = 40 + 22 * index;
    lines.push(`<text x="${RIGHT + 14}" y="${at}" fill="${color}">${shape}: x ${growth}</text>`);
    process.stdout.write(`${shape}: ${micros.join(', ')} us, ${growth} times from end to end\n`);
  }
  const style = 'font-family="sans-serif" font-size="12"';
  const box = `viewBox="0 0 ${WIDTH} ${HEIGHT}"`;
  const title = '<title>Processor time of a decision by number of nodes</title>';
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" ${box} ${style}>\n${title}\n`;
  writeFileSync(file, `${svg}${lines.join('\n')}\n</svg>\n`);
  harness.writeResults(values.output, { machine: harness.machine(), results });
}

if (values.plot === undefined) table();
else plot(values.plot);
