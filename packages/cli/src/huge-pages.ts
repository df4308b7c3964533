// shell: the environment that a process begins with
/**
 * How the C library is to deal with the memory of a store, told before the program begins.
 *
 * Huge pages: page by page, the first touch of a gigabyte takes longer than reading it from the
 * disk, and each look at an object misses the processor's table of pages. Linux gives pages of
 * 2 MiB where a program asks (`madvise`), which JavaScript cannot; but the C library asks for it,
 * for all that it maps, if it is told to (glibc 2.35). Other libraries take no notice.
 *
 * Memory given back: left alone, glibc takes blocks of up to 32 MiB from its heap once one of
 * that size was freed, where holes between them stay resident: 60 MiB beside a million records.
 * Its heap is cut from 128 MiB of free room at its end on, as it would be by then: cut from 1 MiB
 * on, and one heap for all threads, took 2 % of a core at 10,000 renewals a second.
 */
const VARIABLE = 'GLIBC_TUNABLES';
const TUNABLES: readonly (readonly [name: string, value: number])[] = [
  ['glibc.malloc.hugetlb', 1],
  ['glibc.malloc.mmap_threshold', 2 ** 20],
  ['glibc.malloc.trim_threshold', 2 ** 27],
];
/** Commands of `megaplane` that hold a store. */
const HOLDERS: ReadonlySet<string | undefined> = new Set(['apiserver', 'store']);

/** The environment for a `megaplane` with these arguments; what the user chose stays. */
export function withHugePages(args: readonly string[], env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const chosen = (env[VARIABLE] ?? '').split(':').filter((one) => one !== '');
  const names = new Set(chosen.map((one) => one.split('=')[0]));
  const added = TUNABLES.filter(([name]) => !names.has(name));
  if (!HOLDERS.has(args[0]) || added.length === 0) return env;
  const all = [...chosen, ...added.map(([name, value]) => `${name}=${value}`)];
  return { ...env, [VARIABLE]: all.join(':') };
}

/** Begins this process anew, as itself, if its arguments ask for another environment. */
export function beginWithHugePages(args: readonly string[]): void {
  if (process.platform !== 'linux' || typeof process.execve !== 'function') return;
  const env = withHugePages(args, process.env);
  if (env === process.env) return;
  const { execPath, execArgv, argv } = process;
  process.execve(execPath, [execPath, ...execArgv, ...argv.slice(1)], env);
}
