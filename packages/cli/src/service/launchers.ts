// shell: files in the user's cache
/**
 * A directory for `KUBEBUILDER_ASSETS`: `etcd`, `kube-apiserver` and `kubectl`, if there is one.
 * Each of the first two is a script that becomes the command of this program. envtest starts them
 * thousands of times a day, and asks each for its help before: the scripts answer that themselves,
 * and run a pack of this program, of which nothing is looked for and nothing compiled at a start.
 * Many live side by side for some seconds, so they are small where a server of a cluster is quick:
 * no huge pages, few arenas, and a young generation that stays in the processor's cache.
 */
import { createHash } from 'node:crypto';
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { launchedWords, newestSource, PACK_FILES, writePackFiles } from './launched.ts';

/** Of the engine, and of the C library. */
const SMALL_FLAGS = ['--max-semi-space-size=1'];
/** What the API server sets by itself: compiled code is good for flags that it was kept under. */
const OWN_FLAGS: ReadonlyMap<string, readonly string[]> = new Map([
  ['apiserver', ['--no-allocation-site-pretenuring']],
]);
const SMALL_LIBRARY = 'glibc.malloc.arena_max=2:glibc.malloc.trim_threshold=1048576';

/** What is to be started. */
export interface LaunchedProgram {
  /** As envtest calls it. */
  readonly name: string;
  /** The command of this program. */
  readonly command: string;
  readonly help: string;
}

export interface LauncherOptions {
  readonly version: string;
  /** The directory of the packages whose programs these are. */
  readonly root: string;
  readonly programs: readonly LaunchedProgram[];
  /** Below which the directory is made. */
  readonly cacheDir: string;
  /** `PATH`, to look for kubectl. */
  readonly searchPath: string;
}

/** Where programs keep what they can make again. Throws where there is no such place. */
export function cacheDirectory(env: NodeJS.ProcessEnv, platform: string): string {
  const chosen = env['XDG_CACHE_HOME'] ?? '';
  if (chosen.startsWith('/')) return join(chosen, 'megaplane');
  const home = env['HOME'] ?? homedir();
  if (!home.startsWith('/')) {
    throw new Error('--cache-dir: there is no home directory; name a directory to write to');
  }
  return join(home, platform === 'darwin' ? 'Library/Caches' : '.cache', 'megaplane');
}

export interface Launchers {
  /** The directory. */
  readonly place: string;
  /** Whether it was made now: the first run of each program is yet to come. */
  readonly isNew: boolean;
}

/**
 * Makes the directory, or finds it made by the same version in the same place. Several may do so at
 * once. Throws an Error for people where it cannot be written.
 */
export function openLaunchers(options: LauncherOptions): Launchers {
  const kubectl = findProgram('kubectl', options.searchPath);
  const key = createHash('sha256');
  const { version, root, programs, cacheDir } = options;
  const { execPath } = process;
  key.update(JSON.stringify([version, execPath, root, programs, kubectl, newestSource(root)]));
  const place = join(cacheDir, `envtest-${version}-${key.digest('hex').slice(0, 12)}`);
  if (isWhole(place, programs)) return { place, isNew: false };
  let made = '';
  try {
    mkdirSync(cacheDir, { recursive: true, mode: 0o700 });
    made = mkdtempSync(join(cacheDir, 'making-'));
    writePackFiles(made, version, root);
    for (const program of programs) writeLauncher(made, place, program, options);
    if (kubectl !== '') symlinkSync(kubectl, join(made, 'kubectl'));
    publish(made, place, programs);
    return { place, isNew: true };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // of a program: what it said is in it
    if (code === undefined) throw error;
    const why = `cannot write ${cacheDir} (${code ?? message})`;
    throw new Error(`--cache-dir: ${why}; name a directory that you own`, { cause: error });
  } finally {
    if (made !== '') rmSync(made, { recursive: true, force: true });
  }
}

/** Who comes second finds it made, or takes away what is broken. */
function publish(made: string, place: string, programs: readonly LaunchedProgram[]): void {
  chmodSync(made, 0o755);
  try {
    renameSync(made, place);
  } catch (error) {
    if (isWhole(place, programs)) return;
    if (!existsSync(place)) throw error;
    rmSync(place, { recursive: true, force: true });
    renameSync(made, place);
  }
}

function isWhole(place: string, programs: readonly LaunchedProgram[]): boolean {
  try {
    for (const file of PACK_FILES) accessSync(join(place, file), constants.R_OK);
    return programs.every(({ name }) => {
      accessSync(join(place, name), constants.X_OK);
      return readFileSync(join(place, `${name}.help`)).length > 0;
    });
  } catch {
    return false;
  }
}

function writeLauncher(
  dir: string,
  place: string,
  { name, command, help }: LaunchedProgram,
  { version, root }: LauncherOptions,
): void {
  const flags = [...SMALL_FLAGS, ...(OWN_FLAGS.get(command) ?? [])];
  const words = launchedWords(place, flags, command, root);
  const lines = [
    '#!/bin/sh',
    `# Made by megaplane ${version}; "megaplane envtest" makes it anew.`,
    `if [ "$*" = --help ]; then exec cat ${quoted(join(place, `${name}.help`))}; fi`,
    `: "\${GLIBC_TUNABLES=${SMALL_LIBRARY}}"; export GLIBC_TUNABLES`,
    `exec ${words.map(quoted).join(' ')} "$@"`,
  ];
  writeFileSync(join(dir, `${name}.help`), help);
  writeFileSync(join(dir, name), `${lines.join('\n')}\n`, { mode: 0o755 });
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Its path; empty where there is none. */
function findProgram(name: string, searchPath: string): string {
  for (const dir of searchPath.split(delimiter)) {
    if (!dir.startsWith('/')) continue;
    const file = join(dir, name);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      continue;
    }
  }
  return '';
}
