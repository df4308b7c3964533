// shell: reads and writes kubeconfig files
/** Where the kubeconfig of a cluster goes, without ever destroying one of another cluster. */
import { accessSync, constants, existsSync, readFileSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { makeDirectory } from '@megaplane/base/directory';
import { replacePrivately } from '@megaplane/base/private-file';
import { parse, stringify } from 'yaml';

/** The name of the cluster's context in kubeconfig files. */
export const CONTEXT = 'megaplane';

interface Named {
  readonly name: string;
}

interface Kubeconfig {
  readonly clusters?: readonly Named[] | null;
  readonly users?: readonly Named[] | null;
  readonly contexts?: readonly Named[] | null;
  readonly 'current-context'?: string;
}

const LISTS = ['clusters', 'users', 'contexts'] as const;

/** Throws unless `file` can be written and is absent, or one that an earlier `up` wrote. */
export function assertReplaceable(file: string): void {
  if (!existsSync(file)) return assertPlace('--kubeconfig', file);
  const found = read(file);
  const names = typeof found === 'string' ? [] : namesOf(found.clusters);
  if (names.length === 1 && names[0] === CONTEXT) return assertPlace('--kubeconfig', file);
  const text = typeof found === 'string' ? found : 'is no kubeconfig';
  const what = names.length === 0 ? text : `holds the clusters ${names.join(', ')}`;
  throw new Error(
    `--kubeconfig: ${file} exists already and ${what}; choose another file, ` +
      'or add this cluster to ~/.kube/config with --merge-kubeconfig',
  );
}

/** The user's kubeconfig, as kubectl finds it without a flag or variable. */
function usersFile(): string {
  return join(homedir(), '.kube', 'config');
}

/** Throws where `target` cannot be written, or not be added to without loss. */
export function assertMergeable(target: string = usersFile()): void {
  const found = existsSync(target) ? read(target) : {};
  if (typeof found === 'string') {
    throw new Error(
      `--merge-kubeconfig: ${target} ${found}; mend it or move it away, or leave out the flag`,
    );
  }
  assertPlace('--merge-kubeconfig', target);
}

/** Makes the directory of a file that will be written later; throws where that could not be. */
function assertPlace(flag: string, file: string): void {
  try {
    makeDirectory(dirname(file));
    accessSync(dirname(placeOf(file)), constants.W_OK);
  } catch (error) {
    throw unwritable(flag, file, error);
  }
}

function placeOf(file: string): string {
  return existsSync(file) ? realpathSync(file) : file;
}

function unwritable(flag: string, file: string, error: unknown): Error {
  return new Error(`${flag}: cannot write ${file} (${(error as Error).message})`, { cause: error });
}

/**
 * Copies the administrator's kubeconfig, which the API server wrote to `source`, to `target` where
 * one is asked for. Returns the path to tell people.
 */
export function publishKubeconfig(source: string, target: string | undefined): string {
  if (target === undefined || target === source) return source;
  assertReplaceable(target);
  write('--kubeconfig', target, readFileSync(source, 'utf8'));
  return target;
}

/** Adds cluster, user and context of `source` to `target`, replacing those of the same names. */
export function mergeKubeconfig(source: string, target: string = usersFile()): void {
  assertMergeable(target);
  const added = existing(source);
  const merged: Record<string, unknown> = existsSync(target)
    ? { ...existing(target) }
    : { apiVersion: 'v1', kind: 'Config' };
  for (const list of LISTS) {
    const names = new Set(namesOf(added[list]));
    const kept = ((merged[list] ?? []) as readonly Named[]).filter(({ name }) => !names.has(name));
    merged[list] = [...kept, ...(added[list] ?? [])];
  }
  merged['current-context'] = added['current-context'];
  write('--merge-kubeconfig', target, stringify(merged));
}

function namesOf(list: readonly Named[] | null | undefined): string[] {
  return (list ?? []).map(({ name }) => name);
}

function existing(file: string): Kubeconfig {
  const found = read(file);
  if (typeof found === 'string') throw new Error(`${file} ${found}`);
  return found;
}

/** What a file holds (an empty one: nothing), or why it is no kubeconfig. */
function read(file: string): Kubeconfig | string {
  let found: unknown;
  try {
    found = parse(readFileSync(file, 'utf8')) ?? {};
  } catch (error) {
    const isSystem = error instanceof Error && 'syscall' in error;
    const [why = ''] = (error as Error).message.split('\n');
    return isSystem ? `cannot be read (${why})` : `is no YAML (${why})`;
  }
  const isObject = typeof found === 'object' && found !== null && !Array.isArray(found);
  const isKubeconfig =
    isObject && LISTS.every((list) => isListOfNamed((found as Record<string, unknown>)[list]));
  return isKubeconfig ? (found as Kubeconfig) : 'is no kubeconfig';
}

function isListOfNamed(list: unknown): boolean {
  if (list === undefined || list === null) return true;
  return Array.isArray(list) && list.every((one) => typeof one === 'object' && one !== null);
}

/**
 * In one step, so that a reader never sees half a file, and readable by the owner alone. Where the
 * file is a link, what it points at is replaced, as kubectl does.
 */
function write(flag: string, file: string, text: string): void {
  try {
    makeDirectory(dirname(file));
    replacePrivately(placeOf(file), text);
  } catch (error) {
    throw unwritable(flag, file, error);
  }
}
