/**
 * kube-scheduler's own performance tests, end to end: an API server and a scheduler, each a process
 * of its own, with pods that come over TLS while others are given nodes.
 *
 *     node bench/scheduler-perf.ts --only 'Basic$|Spreading'
 *     node bench/scheduler-perf.ts --only 'Live100000$'
 *     node bench/scheduler-perf.ts --only Live1000000
 *     node bench/scheduler-perf.ts --peer ./kube-scheduler --runs 3
 *
 * With `--peer` each workload is played with that program too, on the same API server; it looks at
 * some nodes only unless `--exact`. `--scale 0.1` makes every count a tenth. A threshold is what
 * kube-scheduler's project wants of a test on its machine.
 *
 * A run is over in a second, the first of two programs whose engine makes good code of what it has
 * done a thousand times. `--warm 4000` has 4,000 plain pods come, run and go before: what the same
 * programs do in a cluster that has been used.
 */
import { flagsOf } from './flags.ts';
import * as harness from './harness.ts';
import { play, type Outcome } from './scheduler-perf/play.ts';
import { startRig } from './scheduler-perf/rig.ts';
import { PODS } from './scheduler-perf/templates.ts';
import { WORKLOADS, type Step, type Workload } from './scheduler-perf/workloads.ts';

const values = flagsOf({
  only: { type: 'string', default: '' },
  runs: { type: 'string', default: '1' },
  peer: { type: 'string' },
  exact: { type: 'boolean', default: false },
  scale: { type: 'string', default: '1' },
  warm: { type: 'string', default: '0' },
  clients: { type: 'string', default: '4' },
  'in-flight': { type: 'string', default: '64' },
  /** A folder for processor profiles of server and scheduler. */
  profiles: { type: 'string' },
  output: { type: 'string' },
});
const SCALE = Number(values.scale);
const WARM = Number(values.warm);

interface Figures {
  readonly perSecond: number;
  readonly seconds: number;
  /** Microseconds of processor time per pod. */
  readonly serverMicros: number;
  readonly schedulerMicros: number;
  readonly driverMicros: number;
}

function scaled(step: Step): Step {
  if (!('count' in step) || SCALE === 1 || step.kind === 'namespaces') return step;
  const first = step.kind === 'pods' ? Math.ceil((step.first ?? 0) * SCALE) : 0;
  return { ...step, count: Math.ceil(step.count * SCALE), ...(first > 0 ? { first } : {}) };
}

/** The same, in a cluster that had pods once its nodes were there. */
function warmed(steps: readonly Step[]): readonly Step[] {
  if (WARM === 0) return steps;
  const at = steps.findLastIndex((step) => step.kind === 'nodes') + 1;
  const passing: Step = { kind: 'passing', count: WARM, pod: PODS.plain };
  return [...steps.slice(0, at), passing, ...steps.slice(at)];
}

function figuresOf(outcome: Outcome): Figures {
  const { pods, perSecond, seconds, serverCpu, schedulerCpu, driverCpu } = outcome;
  return {
    ...{ perSecond, seconds },
    serverMicros: (serverCpu / pods) * 1e6,
    schedulerMicros: (schedulerCpu / pods) * 1e6,
    driverMicros: (driverCpu / pods) * 1e6,
  };
}

async function measure(workload: Workload, foreign: string | null): Promise<Figures> {
  const found: Figures[] = [];
  for (let run = 0; run < Number(values.runs); run++) {
    const rig = await startRig({
      ...{ foreign, isExact: values.exact },
      clients: Number(values.clients),
      inFlight: Number(values['in-flight']),
      profiles: values.profiles ?? null,
    });
    try {
      const steps = warmed(workload.steps.map(scaled));
      found.push(figuresOf(await play(rig, { ...workload, steps })));
    } finally {
      await rig.stop();
    }
  }
  const middle = (read: (figures: Figures) => number): number => harness.median(found.map(read));
  return {
    perSecond: middle((one) => one.perSecond),
    seconds: middle((one) => one.seconds),
    serverMicros: middle((one) => one.serverMicros),
    schedulerMicros: middle((one) => one.schedulerMicros),
    driverMicros: middle((one) => one.driverMicros),
  };
}

function goalText({ threshold, times }: Workload, perSecond: number): string {
  if (threshold === 0) return '-';
  return `${(perSecond / threshold).toFixed(1)} of ${times} x ${threshold}`;
}

function cells(figures: Figures): string[] {
  const { perSecond, seconds, serverMicros, schedulerMicros, driverMicros } = figures;
  const micros = (value: number): string => `${value.toFixed(0)} us`;
  const clock = [`${perSecond.toFixed(0)}/s`, `${seconds.toFixed(1)} s`];
  return [...clock, micros(serverMicros), micros(schedulerMicros), micros(driverMicros)];
}

const ONLY = new RegExp(values.only);
const rows: string[][] = [];
const results: object[] = [];
for (const workload of WORKLOADS.filter(({ name }) => ONLY.test(name))) {
  process.stderr.write(`${workload.name} ...\n`);
  const ours = await measure(workload, null);
  const theirs = values.peer === undefined ? null : await measure(workload, values.peer);
  results.push({ name: workload.name, threshold: workload.threshold, ours, theirs });
  const ratio = theirs === null ? '' : (ours.perSecond / theirs.perSecond).toFixed(1);
  const row = [workload.name, ...cells(ours), goalText(workload, ours.perSecond)];
  rows.push(theirs === null ? row : [...row, ...cells(theirs), ratio]);
  // A long run that is ended has told what it found.
  process.stderr.write(`  ${rows.at(-1)?.slice(1).join('  ')}\n`);
}
const head = ['', 'pods', 'in', 'server each', 'scheduler', 'driver', 'times the threshold'];
const peerHead = ['peer', 'in', 'server', 'peer', 'driver', 'ratio'];
const before = WARM === 0 ? '' : `, after ${WARM} pods`;
process.stdout.write(`${harness.machine()}\nscale ${SCALE}, ${values.runs} runs${before}\n\n`);
harness.printTable(values.peer === undefined ? head : [...head, ...peerHead], rows);
harness.writeResults(values.output, { scale: SCALE, warm: WARM, results });
process.exit();
