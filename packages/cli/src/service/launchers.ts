// shell: files in the user's cache
/**
 * A directory for `KUBEBUILDER_ASSETS`: `etcd`, `kube-apiserver` and `kubectl`, if there is one.
 * Each of the first two is a script that becomes the command of this program. envtest starts them
 * thousands of times a day, and asks each for its help before, so the scripts answer that
 * themselves and start the runtime with what `huge-pages.ts` would begin it anew for.
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
import { ENGINE_FLAGS, withHugePages } from './huge-pages.ts';

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
  /** The runtime and the entry file. */
  readonly runtime: string;
  readonly entry: string;
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

/**
 * Makes the directory, or finds it made by the same version in the same place, and returns its
 * path. Several may do so at once. Throws an Error for people where it cannot be written.
 */
export function openLaunchers(options: LauncherOptions): string {
  const kubectl = findProgram('kubectl', options.searchPath);
  const key = createHash('sha256');
  const { version, runtime, entry, programs, cacheDir } = options;
  key.update(JSON.stringify([version, runtime, entry, programs, kubectl]));
  const place = join(cacheDir, `envtest-${version}-${key.digest('hex').slice(0, 12)}`);
  if (isWhole(place, programs)) return place;
  let made = '';
  try {
    mkdirSync(cacheDir, { recursive: true, mode: 0o700 });
    made = mkdtempSync(join(cacheDir, 'making-'));
    for (const program of programs) writeLauncher(made, place, program, options);
    if (kubectl !== '') symlinkSync(kubectl, join(made, 'kubectl'));
    publish(made, place, programs);
    return place;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
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
  return programs.every(({ name }) => {
    try {
      accessSync(join(place, name), constants.X_OK);
      return readFileSync(join(place, `${name}.help`)).length > 0;
    } catch {
      return false;
    }
  });
}

function writeLauncher(
  dir: string,
  place: string,
  { name, command, help }: LaunchedProgram,
  { version, runtime, entry }: LauncherOptions,
): void {
  const env = Object.entries(withHugePages([command], {}));
  const words = [runtime, ...(ENGINE_FLAGS.get(command) ?? []), entry, command];
  const lines = [
    '#!/bin/sh',
    `# Made by megaplane ${version}; "megaplane envtest" makes it anew.`,
    `if [ "$*" = --help ]; then exec cat ${quoted(join(place, `${name}.help`))}; fi`,
    ...env.map(([key, value]) => `: "\${${key}=${value}}"; export ${key}`),
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
