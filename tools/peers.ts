/**
 * The tests beside programs that are built first: `npm run test:peers [--minutes N]`.
 *
 * Files named `*.peer.test.ts` build programs in Go by themselves; files that compare with etcd 3.6
 * are run once it is built. What cannot be built skips with its reason. With `--minutes` the run
 * ends when they are over, and one line names what was not finished: that is no failure.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ENV, isPeerTest, TEST_FILES, testFlags } from './test-run.ts';

const ROOT = join(import.meta.dirname, '..');
const NEWER_ETCD = 'packages/etcd/src/testing/newer-etcd.sim.ts';
/** Builds from nothing are part of a test. */
const TEST_MS_MAX = 3_600_000;
/** A step that has less time than this is not begun. */
const STEP_MS_MIN = 10_000;

interface Step {
  readonly name: string;
  readonly args: readonly string[];
  /** False where a step that ends badly is no failure: what could not be built skips later. */
  readonly isJudged: boolean;
}

/** Quickest first, so that a short run says something. */
function steps(): Step[] {
  const files = globSync(TEST_FILES, { cwd: ROOT }).sort();
  const peers = files.filter(isPeerTest);
  const isSuite = (file: string): boolean => file.includes('envtest-suites');
  const newer = files.filter((file) =>
    /newer-etcd\.sim/.test(readFileSync(join(ROOT, file), 'utf8')),
  );
  const test = (file: string): Step => ({
    name: file,
    args: [...testFlags(TEST_MS_MAX), file],
    isJudged: true,
  });
  return [
    ...peers.filter((file) => !isSuite(file)).map(test),
    { name: 'building etcd 3.6', args: [join(ROOT, NEWER_ETCD)], isJudged: false },
    ...newer.map(test),
    ...peers.filter(isSuite).map(test),
  ];
}

/** How a step went; `cut` when its time was over first. */
async function play({ args }: Step, limitMs: number): Promise<'good' | 'bad' | 'cut'> {
  const options = { cwd: ROOT, env: ENV, stdio: 'inherit', detached: true } as const;
  const child = spawn(process.execPath, args, options);
  let isCut = false;
  const end = (): void => {
    isCut = true;
    // the step is a process group: builds and servers below it end with it
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  };
  const timer = Number.isFinite(limitMs) ? setTimeout(end, limitMs) : undefined;
  const [code] = await once(child, 'close');
  clearTimeout(timer);
  if (isCut) return 'cut';
  return code === 0 ? 'good' : 'bad';
}

/** Minutes from `--minutes N`, without end where there is none; throws on what is no number. */
function limitOf(args: readonly string[]): number {
  const at = args.indexOf('--minutes');
  if (at < 0) return Infinity;
  const minutes = Number(args[at + 1] ?? '');
  if (!(minutes > 0)) throw new Error('--minutes: a number above 0 is needed');
  return minutes * 60_000;
}

const limitMs = limitOf(process.argv.slice(2));
const startMs = performance.now();
const bad: string[] = [];
const unfinished: string[] = [];
for (const step of steps()) {
  const leftMs = limitMs - (performance.now() - startMs);
  process.stdout.write(`${step.name}\n`);
  const outcome = leftMs < STEP_MS_MIN ? 'cut' : await play(step, leftMs);
  if (outcome === 'cut') unfinished.push(step.name);
  if (outcome === 'bad' && step.isJudged) bad.push(step.name);
}
if (unfinished.length > 0) {
  const minutes = (limitMs / 60_000).toFixed(1);
  process.stdout.write(`not finished within ${minutes} min: ${unfinished.join(', ')}\n`);
}
if (bad.length > 0) process.stdout.write(`FAILED: ${bad.join(', ')}\n`);
process.exitCode = bad.length === 0 ? 0 : 1;
