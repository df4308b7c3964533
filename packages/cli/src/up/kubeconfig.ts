// shell: reads and writes kubeconfig files
/** Where the kubeconfig of a cluster goes, without ever destroying one of another cluster. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { parse, stringify } from 'yaml';

/** The name of the cluster's context in kubeconfig files. */
export const CONTEXT = 'megaplane';

interface Named {
  readonly name: string;
}

interface Kubeconfig {
  readonly clusters?: readonly Named[];
  readonly users?: readonly Named[];
  readonly contexts?: readonly Named[];
  readonly 'current-context'?: string;
}

const LISTS = ['clusters', 'users', 'contexts'] as const;

/** Throws unless `file` is absent, or a kubeconfig that an earlier `up` wrote. */
export function assertReplaceable(file: string): void {
  if (!existsSync(file)) return;
  const found = read(file);
  const names = found.clusters?.map(({ name }) => name) ?? [];
  if (names.length === 1 && names[0] === CONTEXT) return;
  const what = names.length === 0 ? 'is no kubeconfig' : `holds the clusters ${names.join(', ')}`;
  throw new Error(
    `--kubeconfig: ${file} exists already and ${what}; choose another file, ` +
      'or add this cluster to ~/.kube/config with --merge-kubeconfig',
  );
}

/**
 * Copies the administrator's kubeconfig, which the API server wrote to `source`, to `target` where
 * one is asked for. Returns the path to tell people.
 */
export function publishKubeconfig(source: string, target: string | undefined): string {
  if (target === undefined || target === source) return source;
  assertReplaceable(target);
  write(target, readFileSync(source, 'utf8'));
  return target;
}

/** Adds cluster, user and context of `source` to `target`, replacing those of the same names. */
export function mergeKubeconfig(
  source: string,
  target: string = join(homedir(), '.kube', 'config'),
): void {
  const added = read(source);
  const merged: Record<string, unknown> = existsSync(target)
    ? { ...read(target) }
    : { apiVersion: 'v1', kind: 'Config' };
  for (const list of LISTS) {
    const names = new Set(added[list]?.map(({ name }) => name));
    const kept = ((merged[list] ?? []) as readonly Named[]).filter(({ name }) => !names.has(name));
    merged[list] = [...kept, ...(added[list] ?? [])];
  }
  merged['current-context'] = added['current-context'];
  write(target, stringify(merged));
}

function read(file: string): Kubeconfig {
  const found: unknown = parse(readFileSync(file, 'utf8'));
  return typeof found === 'object' && found !== null ? found : {};
}

/** In one step, so that a reader never sees half a file, and readable by the owner alone. */
function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const partial = `${file}.partial`;
  writeFileSync(partial, text, { mode: 0o600 });
  renameSync(partial, file);
}
