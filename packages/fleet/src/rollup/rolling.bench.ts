/**
 * Requests of one cluster into a roll-up from nothing, and then changes of single requests.
 *
 *     node packages/fleet/src/rollup/rolling.bench.ts [requests] [workloads] [--json]
 */
import { cpus } from 'node:os';
import { Random } from '@megaplane/base/random';
import { rollUp } from './full.ts';
import { RollingRollUp } from './rolling.ts';

const [requests = '25000', workloads = '400'] = process.argv
  .slice(2)
  .filter((word) => word !== '--json');
const REQUESTS = Number(requests);
const WORKLOADS = Number(workloads);
const CHANGES = 200_000;
const RUNS = 7;

const random = new Random(1);

function requestText(index: number): string {
  const workload = index % WORKLOADS;
  const gang = workload % 4 === 0;
  const uid = `5f0c3a8e-7d0b-4a60-9d39-${String(index).padStart(12, '0')}`;
  return JSON.stringify({
    apiVersion: 'bigfleet.lucy.sh/v1alpha1',
    kind: 'CapacityRequest',
    metadata: {
      name: `cr-pod-web-${workload}-7d9c5b8f6-${index}-x7k2p`,
      generateName: `cr-pod-web-${workload}-7d9c5b8f6-${index}-`,
      namespace: `team-${workload % 20}`,
      uid,
      resourceVersion: String(1_000_000 + index),
      generation: 1,
      creationTimestamp: '2026-06-28T10:00:00Z',
      labels: { 'bigfleet.lucy.sh/owned-by-pod': uid },
      ownerReferences: [
        { apiVersion: 'v1', kind: 'Pod', name: `web-${workload}-${index}`, uid, controller: true },
      ],
    },
    spec: {
      priority: workload % 5 === 0 ? 1000 : 100,
      requirements: [
        {
          key: 'node.kubernetes.io/instance-type',
          operator: 'In',
          values: [`m6i.${workload % 30}xlarge`, 'm6i.2xlarge'],
        },
      ],
      resources: { cpu: `${100 + workload}m`, memory: `${256 + workload}Mi` },
      interruptionPenalty: '32',
      reclamationPenalty: '64',
      ...(gang
        ? {
            coLocation: {
              topologyKey: 'topology.bigfleet/rack',
              labelSelector: { matchLabels: { app: `web-${workload}` } },
            },
          }
        : {}),
    },
    status: { phase: 'Acknowledged', acknowledgedAt: '2026-06-28T10:00:10Z' },
  });
}

let present = 0;

function namespaceOf(): string {
  return `team-${(present % WORKLOADS) % 20}`;
}

const texts = Array.from({ length: REQUESTS }, (_, index) => requestText(index));
const bytes = Buffer.from(texts.join('\n'));
const starts = [0];
for (const text of texts) starts.push((starts.at(-1) ?? 0) + Buffer.byteLength(text) + 1);

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}

function upsert(roll: RollingRollUp, row: number, index: number): void {
  present = index;
  roll.upsert(row, bytes, starts[index] ?? 0, (starts[index + 1] ?? 0) - 1);
}

const made: number[] = [];
const changed: number[] = [];
const built: number[] = [];
let rows = 0;
for (let run = 0; run < RUNS; run++) {
  const roll = new RollingRollUp({ clusterId: 'c1', groupsByNamespace: true, namespaceOf });
  let startMs = cpuMs();
  for (let row = 0; row < REQUESTS; row++) upsert(roll, row, row);
  roll.build(BigInt(run));
  made.push(cpuMs() - startMs);
  rows = roll.rows().length;
  startMs = cpuMs();
  // as a watch brings them: bytes one after the other, rows from everywhere
  for (let i = 0; i < CHANGES; i++) {
    upsert(roll, random.below(REQUESTS), i % REQUESTS);
    if (i % 10_000 === 0) roll.build(BigInt(i));
  }
  changed.push(((cpuMs() - startMs) * 1e6) / CHANGES);
  startMs = cpuMs();
  for (let i = 0; i < 100; i++) {
    upsert(roll, i, (i * 7) % REQUESTS);
    roll.build(BigInt(i));
  }
  built.push((cpuMs() - startMs) / 100);
}
const startMs = cpuMs();
rollUp(
  texts.map((text) => JSON.parse(text)),
  { groupsByNamespace: true },
);
const fullMs = cpuMs() - startMs;
process.stdout.write(
  `${cpus()[0]?.model}, node ${process.version}; medians of ${RUNS}, processor time\n` +
    `${REQUESTS} requests of ${WORKLOADS} workloads, ` +
    `${Math.round(bytes.length / REQUESTS)} bytes each, ${rows} rows\n` +
    `from nothing:     ${median(made).toFixed(1)} ms ` +
    `(by the plain rule ${fullMs.toFixed(0)} ms)\n` +
    `a changed one:    ${median(changed).toFixed(0)} ns\n` +
    `change and build: ${median(built).toFixed(3)} ms\n`,
);
if (process.argv.includes('--json')) {
  const figures = { nothingMs: median(made), changeNs: median(changed), buildMs: median(built) };
  process.stdout.write(`${JSON.stringify(figures)}\n`);
}
