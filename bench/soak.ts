/**
 * A cluster of constant size at work, for minutes or hours: rollouts with images and requests that
 * are new, namespaces, definitions, jobs and others that come and go, events, and watches, of which
 * a quarter never reads. What does a process hold, and does it grow?
 *
 *     node bench/soak.ts --minutes 10 --plot soak.svg
 *     node bench/soak.ts --minutes 240 --sample-seconds 60 --output soak.json
 *
 * Samples are taken between two cycles, once the store's history is compacted and garbage is
 * collected: memory that is live and resident, descriptors, timers, handles of each process. After
 * the first `--window` minutes a line is laid through them. It ends with 1 where live memory surely
 * grows by more than `--growth-kib` a cycle, or what is counted by more than one in twenty cycles.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '@megaplane/base/free-port.sim';
import { createKubeClient } from '@megaplane/client/kube-client';
import { lineSvg, writePicture } from 'megaplane/plot';
import { PARTS, startInspected, type Held, type Inspected, type Part } from './cost/inspected.ts';
import { Life } from './cost/life.ts';
import { grows, slopeOf, type Slope } from './cost/slopes.ts';
import { compactNow } from './cost/store.ts';
import { flagsOf, wholeNumbers } from './flags.ts';
import { machine, printTable, writeResults } from './harness.ts';

const values = flagsOf({
  minutes: { type: 'string', default: '10' },
  /** Of them, before the line begins: code is compiled, tables find their size. */
  window: { type: 'string', default: '3' },
  nodes: { type: 'string', default: '20' },
  'cycle-ms': { type: 'string', default: '2000' },
  'sample-seconds': { type: 'string', default: '15' },
  'growth-kib': { type: 'string', default: '4' },
  /** Each process's heap after the window and at the end, into this folder. */
  snapshots: { type: 'string' },
  plot: { type: 'string' },
  output: { type: 'string' },
});
const numbers = wholeNumbers(values, {
  ...{ minutes: 1, window: 0, nodes: 1, 'cycle-ms': 100, 'sample-seconds': 1, 'growth-kib': 0 },
});
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const COUNT_GROWTH_MAX = 0.05;
/** What is looked at, and how much of it may grow a cycle. */
const MEASURES = [
  ['liveKib', numbers['growth-kib']],
  ['residentKib', Infinity],
  ['descriptors', COUNT_GROWTH_MAX],
  ['timers', COUNT_GROWTH_MAX],
  ['handles', COUNT_GROWTH_MAX],
] as const satisfies readonly (readonly [keyof Held, number])[];

interface Sample {
  readonly atMs: number;
  readonly cycles: number;
  readonly held: ReadonlyMap<Part, Held>;
}

interface Finding {
  readonly part: Part;
  readonly measure: keyof Held;
  readonly last: number;
  readonly perCycle: Slope;
  readonly perHour: number;
  readonly isGrowing: boolean;
}

async function live(cluster: Inspected, store: string): Promise<readonly Sample[]> {
  const client = await createKubeClient({ kubeconfig: cluster.kubeconfig });
  const life = new Life(client);
  const samples: Sample[] = [];
  await life.begin();
  const startMs = performance.now();
  const passedMs = (): number => performance.now() - startMs;
  let cycles = 0;
  let isKept = false;
  for (let sampleMs = 0; passedMs() < numbers.minutes * MINUTE_MS; cycles++) {
    const cycleMs = passedMs();
    if (cycleMs >= sampleMs) {
      sampleMs = cycleMs + numbers['sample-seconds'] * 1000;
      await compactNow(store);
      samples.push({ atMs: cycleMs, cycles, held: await cluster.held() });
      if (!isKept && cycleMs > numbers.window * MINUTE_MS) {
        isKept = true;
        await keepHeaps(cluster, 'window');
      }
    }
    await life.cycle();
    await sleep(Math.max(0, numbers['cycle-ms'] - (passedMs() - cycleMs)));
  }
  await compactNow(store);
  samples.push({ atMs: passedMs(), cycles, held: await cluster.held() });
  await keepHeaps(cluster, 'end');
  life.watchers.close();
  client.close();
  return samples;
}

async function keepHeaps(cluster: Inspected, name: string): Promise<void> {
  const { snapshots } = values;
  if (snapshots === undefined) return;
  mkdirSync(snapshots, { recursive: true });
  for (const part of PARTS) {
    await cluster.snapshot(part, join(snapshots, `${part}-${name}.heapsnapshot`));
  }
}

function findingsOf(samples: readonly Sample[]): Finding[] {
  const kept = samples.filter(({ atMs }) => atMs >= numbers.window * MINUTE_MS);
  return PARTS.flatMap((part) =>
    MEASURES.map(([measure, most]): Finding => {
      const at = (one: Sample): number => one.held.get(part)?.[measure] ?? NaN;
      const perCycle = slopeOf(kept.map((one) => [one.cycles, at(one)]));
      const perHour = slopeOf(kept.map((one) => [one.atMs / HOUR_MS, at(one)])).slope;
      const last = kept.at(-1);
      return {
        ...{ part, measure, perCycle, perHour, isGrowing: grows(perCycle, most) },
        last: last === undefined ? NaN : at(last),
      };
    }),
  );
}

async function draw(file: string, samples: readonly Sample[]): Promise<void> {
  const svg = await lineSvg({
    title: `live memory, ${numbers.nodes} nodes, a cycle each ${numbers['cycle-ms']} ms`,
    ...{ xTitle: 'minutes', yTitle: 'MiB', yFormat: '~s' },
    marks: [{ x: numbers.window, label: 'the line begins' }],
    lines: PARTS.map((part) => ({
      label: part,
      points: samples.map(({ atMs, held }): [number, number] => {
        return [atMs / MINUTE_MS, (held.get(part)?.liveKib ?? 0) / 1024];
      }),
    })),
  });
  await writePicture(file, svg);
}

const store = `http://127.0.0.1:${await freePort()}`;
const cluster = await startInspected(numbers.nodes, ['--listen-client-urls', store]);
let samples: readonly Sample[] = [];
try {
  samples = await live(cluster, store);
} finally {
  await cluster.stop();
}
const findings = findingsOf(samples);
process.stdout.write(`${machine()}; ${samples.at(-1)?.cycles} cycles, ${numbers.nodes} nodes\n`);
printTable(
  ['process', 'what', 'at the end', 'a cycle', '+-', 'an hour', ''],
  findings.map(({ part, measure, last, perCycle, perHour, isGrowing }) => [
    ...[part, measure, last.toFixed(0), perCycle.slope.toFixed(3), perCycle.error.toFixed(3)],
    ...[perHour.toFixed(0), isGrowing ? 'GROWS' : ''],
  ]),
);
const told = samples.map(({ held, ...rest }) => ({ ...rest, held: Object.fromEntries(held) }));
writeResults(values.output, { ...numbers, findings, samples: told });
if (values.plot !== undefined) await draw(values.plot, samples);
process.exit(findings.some(({ isGrowing }) => isGrowing) ? 1 : 0);
