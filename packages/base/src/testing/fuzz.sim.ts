// shell: processor time, memory, the seed of a long run
/**
 * For fuzzers: inputs are tried on a reader, which may refuse them and may do nothing else. What is
 * looked for: an error that is thrown, more than a turn's share of processor, more memory than the
 * input and a fixed room explain, memory that does not come back.
 *
 * Processor time is that of this thread, in shares of what a fixed piece of work takes beside it:
 * the same on slow machines and beside others. What is over the bound is tried again, so that a
 * collection of garbage or a compilation is nobody's.
 */
import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Random } from '../random/random.ts';
import { mutated } from './mutation.sim.ts';
import { FUZZ_SECONDS } from './trials.sim.ts';

export interface Fuzzed {
  /** Inputs to begin with; each of them is tried as it is, too. */
  readonly corpus: readonly Buffer[];
  /** More than that is refused before the reader sees it. */
  readonly bytesMax: number;
  /** Inputs, where no seconds are given. */
  readonly trials: number;
  /** Reads an input; throws where something is wrong with the reader. */
  readonly read: (input: Buffer) => void | Promise<void>;
  /** Processor time of one input: 1 is a turn of 100 ms on the machine of docs/figures.md. */
  readonly turnsMax?: number;
}

const SEED = 20_261_129;
/** What the fixed piece of work takes on the machine of docs/figures.md. */
const WORK_MS = 100;
const WORK_ROUNDS = 200;
const TURN_MS_MAX = 100;
/** In the check others are at work on the same processor and its caches. */
const CHECK_SLACK = 4;
const GROWTH_BYTES_MAX: number = 64 * 1024 * 1024;
/** Bytes that may live while one byte is read. */
const GROWTH_FACTOR_MAX = 64;
const LEAK_BYTES_MAX: number = 48 * 1024 * 1024;
const TRIES = 4;
/** Long runs go on after a fault, to this many. */
const FAULTS_MAX = 20;
const isLong = FUZZ_SECONDS > 0 || process.env['MEGAPLANE_LONG'] === '1';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const SAMPLE = JSON.stringify(
  Array.from({ length: 1500 }, (_, at) => ({ name: `n${at}`, at, list: [at, 'x'] })),
);

/** Milliseconds of processor that the fixed piece of work takes now; clocks tell some ten. */
function workMs(): number {
  for (let times = 0; times < WORK_ROUNDS / 4; times++) JSON.stringify(JSON.parse(SAMPLE));
  const before = process.threadCpuUsage();
  for (let times = 0; times < WORK_ROUNDS; times++) JSON.stringify(JSON.parse(SAMPLE));
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

/** An input as a line of a corpus; the middle of a long one is left out. */
function shownInput(input: Buffer): string {
  const text = input.toString('latin1');
  if (text.length < 1000) return JSON.stringify(text);
  const [start, end] = [text.slice(0, 200), text.slice(-100)].map((part) => JSON.stringify(part));
  return `${start} .. ${text.length} bytes .. ${end}`;
}

async function processorMs({ read }: Fuzzed, input: Buffer): Promise<number> {
  const before = process.threadCpuUsage();
  await read(input);
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

async function judge(fuzzed: Fuzzed, input: Buffer, msMax: number): Promise<void> {
  const bytesBefore = process.memoryUsage().rss;
  let ms = await processorMs(fuzzed, input);
  const grown = process.memoryUsage().rss - bytesBefore;
  for (let tries = 1; tries < TRIES && ms > msMax; tries++) {
    ms = Math.min(ms, await processorMs(fuzzed, input));
  }
  assert(ms <= msMax, `${ms.toFixed(0)} ms of processor, at most ${msMax.toFixed(0)} may be`);
  const bytesMax = GROWTH_BYTES_MAX + GROWTH_FACTOR_MAX * input.length;
  assert(grown <= bytesMax, `${(grown / 2 ** 20).toFixed(0)} MiB more memory`);
}

/** Tries inputs until the trials or the seconds (MEGAPLANE_FUZZ_SECONDS) are over. */
export async function fuzz(fuzzed: Fuzzed): Promise<void> {
  const { corpus, bytesMax, trials, turnsMax = 1 } = fuzzed;
  const seed = isLong ? Number(process.env['MEGAPLANE_FUZZ_SEED'] ?? Date.now() % 2 ** 31) : SEED;
  const random = new Random(seed);
  for (const input of corpus) await fuzzed.read(input);
  collect();
  const heapBefore = process.memoryUsage().heapUsed;
  const msMax = (TURN_MS_MAX * turnsMax * (isLong ? 1 : CHECK_SLACK) * workMs()) / WORK_MS;
  const endMs = performance.now() + FUZZ_SECONDS * 1000;
  const faults: string[] = [];
  let at = 0;
  for (; FUZZ_SECONDS > 0 ? performance.now() < endMs : at < trials; at++) {
    const input = mutated(corpus, random, bytesMax);
    try {
      await judge(fuzzed, input, msMax);
    } catch (error) {
      const why = error instanceof assert.AssertionError ? error.message : inspect(error);
      faults.push(`input ${at}: ${why}\n  ${shownInput(input)}`);
      if (!isLong || faults.length === FAULTS_MAX) break;
    }
  }
  assert(faults.length === 0, `seed ${seed}\n${faults.join('\n')}`);
  collect();
  const left = process.memoryUsage().heapUsed - heapBefore;
  assert(left <= LEAK_BYTES_MAX, `${left} bytes are left after ${at} inputs of seed ${seed}`);
}
