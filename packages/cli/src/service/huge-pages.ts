// shell: the environment that a process begins with
import { ownCommand } from './self.ts';

/**
 * How the C library is to deal with memory, told before the program begins.
 *
 * Huge pages: page by page, the first touch of a gigabyte takes longer than reading it from the
 * disk, and each look at an object misses the processor's table of pages. Linux gives pages of
 * 2 MiB where a program asks (`madvise`), which JavaScript cannot; but the C library asks for it,
 * for all that it maps, if it is told to (glibc 2.35). Other libraries take no notice.
 *
 * Memory given back: left alone, glibc takes blocks of up to 32 MiB from its heap once one of
 * that size was freed, where holes between them stay resident: 60 MiB beside a million records.
 * A store's heap is cut from 1 MiB of free room at its end on, and its threads share two: 40 MiB of
 * a million versions. An API server keeps both as they are: they took 2 % of a core of it at 10,000
 * renewals a second.
 */
const VARIABLE = 'GLIBC_TUNABLES';
type Tunables = readonly (readonly [name: string, value: number])[];
const HUGE: Tunables = [['glibc.malloc.hugetlb', 1]];
const STORED: Tunables = [...HUGE, ['glibc.malloc.mmap_threshold', 2 ** 20]];
/**
 * By the commands of `megaplane` that hold a store, or columns of a million rows: renewals of a
 * million nodes take the simulator a tenth less.
 */
const TUNABLES: ReadonlyMap<string | undefined, Tunables> = new Map<string, Tunables>([
  ['apiserver', [...STORED, ['glibc.malloc.trim_threshold', 2 ** 27]]],
  ['store', [...STORED, ['glibc.malloc.trim_threshold', 2 ** 20], ['glibc.malloc.arena_max', 2]]],
  ['controllers', HUGE],
  ['scheduler', HUGE],
  ['nodes', HUGE],
]);

/**
 * Flags of the engine by command. A store makes hardly any objects: a young generation of 1 MiB
 * stays in the processor's cache, where it would else grow and be resident. What the requests of a
 * turn leave behind fits into 16 MiB: with 32 the engine collects half as often, twice as long, and
 * 40 MiB more are resident.
 *
 * The best code of a function is made after 3,000 calls, beside the work. An API server calls the
 * same few hundred for each request: made after 1,000, it is there when a burst of requests comes.
 * A scheduler has much more code for a pod, all of it made in the same second, which then takes
 * more than the slower code did: it waits for 30,000 calls. 10,000 pods on 5,000 nodes are placed
 * a quarter faster for both, by two cores that are full.
 */
export const ENGINE_FLAGS: ReadonlyMap<string | undefined, readonly string[]> = new Map([
  ['apiserver', ['--max-semi-space-size=16', '--invocation-count-for-turbofan=1000']],
  ['store', ['--max-semi-space-size=1']],
  ['controllers', ['--max-semi-space-size=8']],
  ['scheduler', ['--max-semi-space-size=8', '--invocation-count-for-turbofan=30000']],
  ['nodes', ['--max-semi-space-size=8']],
]);

/** The environment for a `megaplane` with these arguments; what the user chose stays. */
export function withHugePages(args: readonly string[], env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const chosen = (env[VARIABLE] ?? '').split(':').filter((one) => one !== '');
  const names = new Set(chosen.map((one) => one.split('=')[0]));
  const added = (TUNABLES.get(args[0]) ?? []).filter(([name]) => !names.has(name));
  if (added.length === 0) return env;
  const all = [...chosen, ...added.map(([name, value]) => `${name}=${value}`)];
  return { ...env, [VARIABLE]: all.join(':') };
}

/** Begins this process anew, as itself, if its arguments ask for another environment. */
export function beginWithHugePages(args: readonly string[]): void {
  if (process.platform !== 'linux' || typeof process.execve !== 'function') return;
  const env = withHugePages(args, process.env);
  if (env === process.env) return;
  // What was given on the command line comes last, and counts.
  const flags = [...(ENGINE_FLAGS.get(args[0]) ?? []), ...process.execArgv];
  const own = ownCommand(flags, args, env);
  process.execve(own.command[0], own.command, own.env);
}
