/**
 * Groups of three stores on a journal of three engines, beside three members of etcd: the same
 * puts of 1 KB, and the processor time of all processes, engines included. The load is left out.
 *
 *     node bench/journal.ts --seconds 4 --runs 3
 *     node bench/journal.ts --modes failover,hand-over --kinds memory --times 10
 *
 * `put`: `--in-flight` puts at once on 10 connections, at the member that leads. `latency`: one put
 * at a time. `failover`: kill -9 of the leader, to the next put that another member answers.
 * `hand-over`: the longest pause of puts at a standby while the leader hands over. `catch-up`: a
 * member that starts with nothing, beside puts. `watch`: what events cost API servers that follow,
 * one and three. Kinds: `memory`, `file` and `flushed` of JetStream, `etcd` as a journal, `alone`
 * (one member on a file), `peer` (etcd itself). `--nats-server FILE` names another one than that of
 * PATH; `flushed` needs 2.10 or newer.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { flagsOf } from './flags.ts';
import * as harness from './harness.ts';
import {
  type Cluster,
  engineOf,
  type Engine,
  Programs,
  startAlone,
  startEtcds,
  startGroup,
  startNats,
  versionOf,
} from './journal/clusters.ts';
import { catchUp } from './journal/catch-up.ts';
import { failover, handOver, latencies, putCost } from './journal/measures.ts';
import { watchCost } from './journal/watches.ts';

const values = flagsOf({
  kinds: { type: 'string', default: 'peer,memory,file,etcd,alone' },
  modes: { type: 'string', default: 'put,latency' },
  keys: { type: 'string', default: '100000' },
  seconds: { type: 'string', default: '4' },
  runs: { type: 'string', default: '3' },
  times: { type: 'string', default: '5' },
  'in-flight': { type: 'string', default: '1000' },
  lease: { type: 'string', default: '3000' },
  'nats-server': { type: 'string', default: 'nats-server' },
  output: { type: 'string' },
});

type Figures = Readonly<Record<string, number>>;

interface Run {
  readonly kind: string;
  readonly name: string;
  readonly mode: string;
  readonly figures: Figures;
}

interface Started {
  readonly cluster: Cluster;
  /** `--journal` of others; '' where there is none. */
  readonly journal: string;
  stop(): Promise<void>;
}

const leaseMs = Number(values.lease);

async function onNats(
  dir: string,
  storage: 'memory' | 'file',
  isFlushed: boolean,
): Promise<Started> {
  const engine = await startNats(dir, values['nats-server'], storage, isFlushed);
  return await onEngine(
    engine,
    () => engine.programs.pids,
    () => engine.programs.stop(),
  );
}

async function onEngine(
  engine: Engine,
  pids: () => readonly number[],
  stop: () => Promise<void>,
): Promise<Started> {
  const cluster = await startGroup(engine, pids, leaseMs).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return {
    cluster,
    journal: engine.url,
    stop: async () => {
      await cluster.stop();
      await stop();
    },
  };
}

const plain = (cluster: Cluster): Started => ({
  cluster,
  journal: '',
  stop: () => cluster.stop(),
});

const KINDS: Readonly<Record<string, (dir: string) => Promise<Started>>> = {
  peer: async (dir) => plain(await startEtcds(dir)),
  memory: (dir) => onNats(dir, 'memory', false),
  file: (dir) => onNats(dir, 'file', false),
  flushed: (dir) => onNats(dir, 'file', true),
  etcd: async (dir) => {
    const etcd = await startEtcds(dir);
    return await onEngine(
      engineOf(etcd, new Programs()),
      () => etcd.pids(),
      () => etcd.stop(),
    );
  },
  alone: async (dir) => plain(await startAlone(dir, 'fsync')),
};

type Mode = (started: Started, dir: string) => Promise<Figures>;

const part = (sorted: readonly number[], share: number): number => harness.quantile(sorted, share);
const spread = (sorted: readonly number[]): Figures => ({
  'p50 ms': part(sorted, 0.5),
  'p99 ms': part(sorted, 0.99),
  'max ms': sorted.at(-1) ?? NaN,
  n: sorted.length,
});

const MODES: Readonly<Record<string, Mode>> = {
  put: async ({ cluster }) => {
    const { keys, seconds } = values;
    const inFlight = Number(values['in-flight']);
    const cost = await putCost(cluster, Number(keys), Number(seconds), inFlight);
    return {
      'per second': cost.perSecond,
      'all us/put': cost.allUs,
      'leader us': cost.leaderUs,
      'standby us': cost.standbyUs,
      'engine us': cost.engineUs,
      'leader MiB': cost.leaderMib,
      'standby MiB': cost.standbyMib,
    };
  },
  latency: async ({ cluster }) => spread(await latencies(cluster, Number(values.seconds))),
  failover: async ({ cluster }) => spread(await failover(cluster, Number(values.times))),
  'hand-over': async ({ cluster }) => spread(await handOver(cluster, Number(values.times))),
  'catch-up': async ({ cluster, journal }) => await catchUp(cluster, journal, Number(values.keys)),
  watch: async ({ journal }, dir) => await watchCost(journal, dir, Number(values.seconds)),
};

/** Modes that a kind has none of. */
function isMeant(kind: string, mode: string): boolean {
  if (kind === 'alone') return mode === 'put' || mode === 'latency';
  return kind !== 'peer' || (mode !== 'watch' && mode !== 'catch-up');
}

async function run(kind: string, mode: string): Promise<Run> {
  const [start, measure] = [KINDS[kind], MODES[mode]];
  if (start === undefined) throw new Error(`--kinds: no "${kind}"; there are ${list(KINDS)}`);
  if (measure === undefined) throw new Error(`--modes: no "${mode}"; there are ${list(MODES)}`);
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-bench-journal-'));
  try {
    const started = await start(dir);
    try {
      const figures = await measure(started, dir);
      return { kind, name: started.cluster.name, mode, figures };
    } finally {
      await started.stop();
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function list(table: object): string {
  return Object.keys(table).join(', ');
}

function show(mode: string, all: readonly Run[]): void {
  const of = all.filter((one) => one.mode === mode);
  const names = Object.keys(of[0]?.figures ?? {});
  const kinds = [...new Set(of.map(({ kind }) => kind))];
  const rows = kinds.map((kind) => {
    const own = of.filter((one) => one.kind === kind);
    const shown = names.map((name) => {
      const value = harness.median(own.map(({ figures }) => figures[name] ?? NaN));
      return value < 100 ? value.toFixed(2) : value.toFixed(0);
    });
    return [mode, own[0]?.name ?? kind, ...shown];
  });
  harness.printTable(['mode', 'group', ...names], rows);
}

async function main(): Promise<void> {
  const versions = ['etcd', values['nats-server']].map((name) => `${name} ${versionOf(name)}`);
  process.stdout.write(`${harness.machine()}, ${versions.join(', ')}\n`);
  const all: Run[] = [];
  for (const mode of values.modes.split(',')) {
    const kinds = values.kinds.split(',').filter((kind) => isMeant(kind, mode));
    for (let i = 0; i < Number(values.runs); i++) {
      for (const kind of kinds) all.push(await run(kind, mode));
    }
    show(mode, all);
  }
  harness.writeResults(values.output, { runs: all });
}

await main();
process.exit(0);
