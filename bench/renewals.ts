/**
 * What a renewal costs the simulator: renewals per second of its processor time, over TLS, against
 * an API server of its own.
 *
 *     node bench/renewals.ts --nodes 20000 --lease-seconds 4 --seconds 10 --runs 3
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { flagsOf, wholeNumbers } from './flags.ts';
import * as harness from './harness.ts';

const values = flagsOf({
  nodes: { type: 'string', default: '20000' },
  /** A renewal comes each quarter of it. */
  'lease-seconds': { type: 'string', default: '4' },
  seconds: { type: 'string', default: '10' },
  settle: { type: 'string', default: '10' },
  runs: { type: 'string', default: '3' },
  output: { type: 'string' },
  /** Arguments of Node for the simulator, such as --prof. */
  exec: { type: 'string', default: '' },
});
const least = { nodes: 1, 'lease-seconds': 1, seconds: 1, settle: 0, runs: 1 };
const given = wholeNumbers(values, least);
type Figures = Record<string, number>;

async function metric(url: string, name: string): Promise<number> {
  const text = await (await fetch(url)).text();
  const line = text.split('\n').find((one) => one.startsWith(`${name} `));
  return Number(line?.split(' ')[1] ?? NaN);
}

async function measure(kubeconfig: string): Promise<Figures> {
  const flags = ['--create', String(given.nodes), '--node-lease-duration-seconds'];
  const listens = ['--server-address', '127.0.0.1:0', '--kubeconfig', kubeconfig];
  const args = ['nodes', ...flags, String(given['lease-seconds']), ...listens];
  const own = values.exec === '' ? [] : values.exec.split(' ');
  const nodes = await harness.startMegaplane(args, 1, own);
  try {
    const url = /http:\/\/\S+\/metrics/.exec(nodes.listens)?.[0] ?? '';
    while ((await metric(url, 'megaplane_nodes_ready')) < given.nodes) await sleep(200);
    await sleep(given.settle * 1000);
    const first = await metric(url, 'megaplane_lease_renewals_total');
    const cpu = harness.cpuSecondsExact(nodes.pid);
    const startMs = performance.now();
    await sleep(given.seconds * 1000);
    const used = harness.cpuSecondsExact(nodes.pid) - cpu;
    const renewals = (await metric(url, 'megaplane_lease_renewals_total')) - first;
    return {
      'renewals per CPU second': renewals / used,
      'renewals/s': (renewals * 1000) / (performance.now() - startMs),
      'lateness p99 s': await metric(url, 'megaplane_lease_lateness_seconds{quantile="0.99"}'),
      'simulator MiB': harness.rssMib(nodes.pid),
    };
  } finally {
    await nodes.stop();
  }
}

const runs: Figures[] = [];
for (let run = 0; run < given.runs; run++) {
  const dataDir = mkdtempSync(join(tmpdir(), 'megaplane-bench-'));
  const args = ['apiserver', '--data-dir', dataDir, '--secure-port', '0'];
  const server = await harness.startMegaplane(args, 0);
  try {
    runs.push(await measure(join(dataDir, 'kubeconfig')));
  } finally {
    await server.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}
const of = `${given.nodes} nodes, leases of ${given['lease-seconds']} s`;
process.stdout.write(`${harness.machine()}\n${of}\n\n`);
harness.printTable(
  ['', 'median', ...runs.map((_, index) => `run ${index + 1}`)],
  Object.keys(runs[0] ?? {}).map((name) => {
    const all = runs.map((figures) => figures[name] ?? NaN);
    return [name, ...[harness.median(all), ...all].map((figure) => figure.toFixed(2))];
  }),
);
harness.writeResults(values.output, { nodes: given.nodes, runs });
