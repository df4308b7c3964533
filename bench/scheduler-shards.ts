/**
 * Full evaluation with shards, beside the single process: processor time a pod of each process,
 * octets, latency, and how long shards take to be told of the cluster.
 *
 *     node bench/scheduler-shards.ts --nodes 100000 --pods 60 --shards 8 --relays 2
 *
 * Figures are processor time, which a shared machine distorts less than the clock; latencies are by
 * the clock, and say as much of the machine as of the program where shards outnumber its cores.
 */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { flagsOf } from './flags.ts';
import * as harness from './harness.ts';

const values = flagsOf({
  nodes: { type: 'string', default: '100000' },
  pods: { type: 'string', default: '60' },
  shards: { type: 'string', default: '8' },
  relays: { type: 'string', default: '0' },
  kind: { type: 'string', default: 'plugin' },
  runs: { type: 'string', default: '3' },
  output: { type: 'string' },
});

interface Figure {
  readonly aloneMs: number;
  readonly rootMs: number;
  readonly busiestShardMs: number;
  readonly relayMs: number;
  readonly allMs: number;
  readonly part: number;
  readonly bytesPerPodAndChild: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly tellingMs: number;
  readonly tellingRootMs: number;
}

const program = join(harness.ROOT, 'packages/scheduler/src/sharding/shards.bench.ts');
const { nodes, pods, shards, relays, kind } = values;
const args = [program, nodes, pods, shards, relays, kind];
const figures = Array.from({ length: Number(values.runs) }, () => {
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' })) as Figure;
});
const middle = (name: keyof Figure): number => harness.median(figures.map((one) => one[name]));
const rows: readonly (readonly [string, keyof Figure, string])[] = [
  ['one process, a pod', 'aloneMs', 'ms'],
  ['the root, a pod', 'rootMs', 'ms'],
  ['the busiest shard, a pod', 'busiestShardMs', 'ms'],
  ['the busiest relay, a pod', 'relayMs', 'ms'],
  ['all processes, a pod', 'allMs', 'ms'],
  ['the busiest process, as part of one process', 'part', ''],
  ['octets from the root, a pod and child', 'bytesPerPodAndChild', ''],
  ['a decision by the clock, p50', 'p50Ms', 'ms'],
  ['a decision by the clock, p99', 'p99Ms', 'ms'],
  ['telling all shards of the cluster, by the clock', 'tellingMs', 'ms'],
  ['telling all shards of the cluster, the root', 'tellingRootMs', 'ms'],
];
process.stdout.write(`${harness.machine()}\n${process.execPath} ${args.join(' ')}\n\n`);
harness.printTable(
  ['what', 'median'],
  rows.map(([text, name, unit]) => [text, `${middle(name)} ${unit}`.trim()]),
);
harness.writeResults(values.output, { machine: harness.machine(), args, figures });
