// data plane: the leases of a million nodes on one timer wheel
/**
 * A million timers of ten seconds each, armed anew as they fire, in steps of one millisecond:
 * 100,000 fire each second. Then another million far away, whose slots move down all at once.
 *
 *     node packages/base/src/time/wheel.bench.ts [timers] [simulated seconds]
 */
import { LatencyHistogram } from '../metrics/histogram.ts';
import { Random } from '../random/random.ts';
import { TimerWheel } from './wheel.ts';

const TIMERS = Number(process.argv[2] ?? 1_000_000);
const SECONDS = Number(process.argv[3] ?? 30);
const PERIOD_MS = 10_000;
const FAR_MS = 300_000;

const random = new Random(1);
const wheel = new TimerWheel({ startMs: 0 });

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

function run(what: string, fromMs: number, toMs: number, periodMs: number): void {
  const turns = new LatencyHistogram();
  const startMs = cpuMs();
  let fired = 0;
  for (let nowMs = fromMs; nowMs < toMs; nowMs++) {
    const beforeMs = performance.now();
    fired += wheel.advance(nowMs, (id) =>
      wheel.arm(id, nowMs + periodMs * (0.9 + id / TIMERS / 5)),
    );
    turns.record(performance.now() - beforeMs);
  }
  const spentMs = cpuMs() - startMs;
  process.stdout.write(
    `${what}: ${fired} fired, ${Math.round((spentMs * 1e6) / Math.max(1, fired))} ns each,` +
      ` ${Math.round((spentMs * 100) / (toMs - fromMs))} % of a core\n` +
      `  one step: p50 ${turns.quantile(0.5).toFixed(3)}` +
      ` p99.9 ${turns.quantile(0.999).toFixed(3)} max ${turns.max.toFixed(3)} ms\n`,
  );
}

let startMs = cpuMs();
for (let id = 0; id < TIMERS; id++) wheel.arm(id, random.below(PERIOD_MS));
const armedNs = Math.round(((cpuMs() - startMs) * 1e6) / TIMERS);
process.stdout.write(`${TIMERS} timers armed, ${armedNs} ns each, node ${process.version}\n`);
run('renewals every 10 s', 0, SECONDS * 1000, PERIOD_MS);
startMs = cpuMs();
for (let id = 0; id < TIMERS; id++) wheel.arm(id, SECONDS * 1000 + FAR_MS + random.below(1000));
const rearmedNs = Math.round(((cpuMs() - startMs) * 1e6) / TIMERS);
process.stdout.write(`all armed anew, ${rearmedNs} ns each\n`);
run('all due in one second, 300 s away', SECONDS * 1000, SECONDS * 1000 + FAR_MS - 1, PERIOD_MS);
const bytes = wheel.memoryBytes / TIMERS;
process.stdout.write(`${bytes.toFixed(1)} bytes a timer\n`);
