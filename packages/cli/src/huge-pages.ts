// shell: the environment that a process begins with
/**
 * Huge pages for the memory of a store.
 *
 * A store holds gigabytes in blocks of 64 MiB. Page by page, the first touch of a gigabyte takes
 * longer than reading it from the disk, and each look at an object misses the processor's table of
 * pages. Linux gives pages of 2 MiB where a program asks (`madvise`), which JavaScript cannot; but
 * the C library asks for it, for all that it maps, if it is told to before the program begins
 * (glibc 2.35, `glibc.malloc.hugetlb`). Other libraries take no notice.
 */
const VARIABLE = 'GLIBC_TUNABLES';
const TUNABLE = 'glibc.malloc.hugetlb';
/** Commands of `megaplane` that hold a store. */
const HOLDERS: ReadonlySet<string | undefined> = new Set(['apiserver', 'store']);

/** The environment for a `megaplane` with these arguments; what the user chose stays. */
export function withHugePages(args: readonly string[], env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const tunables = env[VARIABLE] ?? '';
  if (!HOLDERS.has(args[0]) || tunables.includes(TUNABLE)) return env;
  const chosen = tunables === '' ? '' : `${tunables}:`;
  return { ...env, [VARIABLE]: `${chosen}${TUNABLE}=1` };
}

/** Begins this process anew, as itself, if its arguments ask for another environment. */
export function beginWithHugePages(args: readonly string[]): void {
  if (process.platform !== 'linux' || typeof process.execve !== 'function') return;
  const env = withHugePages(args, process.env);
  if (env === process.env) return;
  const { execPath, execArgv, argv } = process;
  process.execve(execPath, [execPath, ...execArgv, ...argv.slice(1)], env);
}
