// shell: network namespaces
/**
 * What the network of a node costs: the plan of a million nodes, our CNI plugin beyond those of
 * Debian, entries of the kernel's proxy, and the first packet to a new pod over a shared segment.
 *
 *     node bench/network.ts --pods 50 --entries 10000
 *
 * As root on Linux, in network namespaces that it makes and removes. Each plugin is run as runtimes
 * run it; what it takes to enter a namespace is counted by itself and taken off. The first packet
 * is the time that a connection from outside takes to a pod that nobody has asked for yet.
 */
import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { makePlan } from '@megaplane/network/plan';
import { planLines } from '@megaplane/network/plan/plan-text';
import { SHARED } from '@megaplane/network/plan/providers';
import { Segment, segmentSkip } from '../packages/network/test/segment.ts';
import { flagsOf, wholeNumbers } from './flags.ts';
import * as harness from './harness.ts';

const values = flagsOf({
  pods: { type: 'string', default: '50' },
  /** Entries of the proxy that are made again after a restart of the uplink. */
  entries: { type: 'string', default: '10000' },
  nodes: { type: 'string', default: '1000000' },
  output: { type: 'string' },
});
const { pods, entries, nodes } = wholeNumbers(values, { pods: 1, entries: 1, nodes: 1 });
const PREFIX = '2001:db8:1::a:0:0/96';
const PLUGIN = 'megaplane-ndp';
const BATCH = 1000;

function timed(work: () => void): number {
  const startMs = performance.now();
  work();
  return performance.now() - startMs;
}

/** Processor time of every prefix of the plan as text; what is printed is not kept. */
function planMs(): { readonly ms: number; readonly mib: number } {
  const plan = makePlan({ base: 'fd00:10::/72', nodes, provider: SHARED });
  if (!('base' in plan)) throw new Error(plan.join('; '));
  const before = process.memoryUsage().rss;
  let lines = 0;
  const start = process.cpuUsage();
  for (const chunk of planLines(plan)) lines += chunk.split('\n').length - 1;
  const { user, system } = process.cpuUsage(start);
  const ms = (user + system) / 1000;
  if (lines !== nodes) throw new Error(`${lines} lines of ${nodes}`);
  return { ms, mib: (process.memoryUsage().rss - before) / 2 ** 20 };
}

/** Listens in a pod for as long as the segment lives. */
const SERVER = `const server = require('net').createServer((s) => s.end('x'));
server.listen(8080, '::', () => console.log('up'))`;
/** Connects to each address that it reads, and tells how long the first octet took. */
const CLIENT = `require('readline').createInterface({ input: process.stdin }).on('line', (host) => {
  const start = performance.now();
  require('net').connect(8080, host).on('data', () => console.log(performance.now() - start))
    .on('error', (error) => console.log(error.code));
}); console.log('up');`;

class Asker {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor(child: ChildProcess) {
    this.#child = child;
    if (child.stdout === null) throw new Error('it has no output');
    this.#lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  }

  async line(): Promise<string> {
    return String((await this.#lines.next()).value);
  }

  async firstMs(address: string): Promise<number> {
    this.#child.stdin?.write(`${address}\n`);
    const text = await this.line();
    if (!/^[\d.]+$/.test(text)) throw new Error(`${address}: ${text}`);
    return Number(text);
  }
}

/** Times of each plugin for one pod after another, and of the first packets to some of them. */
async function measurePods(segment: Segment): Promise<{
  readonly plugins: ReadonlyMap<string, readonly number[]>;
  readonly first: readonly number[];
}> {
  const plugins = new Map<string, number[]>();
  const first: number[] = [];
  const asker = new Asker(segment.start('sw', [process.execPath, '-e', CLIENT], 'pipe'));
  await asker.line();
  segment.onPlugin = (type, ms) => {
    const found = plugins.get(type) ?? [];
    plugins.set(type, [...found, ms]);
  };
  for (let at = 0; at < pods; at++) {
    const [address = ''] = segment.addPod('a', `q${at}`);
    const server = segment.start(`q${at}`, [process.execPath, '-e', SERVER]);
    await new Promise((resolve) => server.stdout?.once('data', resolve));
    first.push(await asker.firstMs(address));
    server.kill('SIGKILL');
  }
  return { plugins, first };
}

/** So many entries of pods in the state directory, entered by one run of the command. */
function enterMs(segment: Segment): number {
  segment.fillEntries('a', entries, BATCH);
  return timed(() => {
    const { code, err } = segment.network('a', '--uplink', 'eth0', '--pod-cidr', PREFIX);
    if (code !== 0) throw new Error(err);
  });
}

const skip = segmentSkip();
if (skip !== false) {
  process.stderr.write(`bench network ${skip}\n`);
  process.exit(1);
}
const made = planMs();
const segment = new Segment();
try {
  segment.addNode('a', '2001:db8:1::a:0:5');
  const up = segment.network('a', '--uplink', 'eth0', '--pod-cidr', PREFIX);
  if (up.code !== 0) throw new Error(up.err);
  const bare = timed(() => segment.run('a', ['true']));
  const { plugins, first } = await measurePods(segment);
  const enteredMs = enterMs(segment);
  const held = segment.proxied('a').length;
  if (held < entries) throw new Error(`${held} entries of ${entries}`);
  process.stdout.write(`${harness.machine()}\n`);
  const rows = [...plugins].map(([type, all]) => [
    `ADD of ${type}`,
    `${(harness.median(all) - bare).toFixed(1)} ms`,
  ]);
  const own = harness.median(plugins.get(PLUGIN) ?? []) - bare;
  harness.printTable(
    ['what', 'median'],
    [
      ...rows,
      ['first packet to a new pod', `${harness.median(first).toFixed(1)} ms`],
      [`${entries} entries made again`, `${enteredMs.toFixed(0)} ms`],
      [
        `plan of ${nodes} nodes, processor`,
        `${made.ms.toFixed(0)} ms, ${made.mib.toFixed(0)} MiB more`,
      ],
    ],
  );
  const all = { bare, own, first, enteredMs, plan: made, plugins: Object.fromEntries(plugins) };
  harness.writeResults(values.output, all);
} finally {
  segment.remove();
}
