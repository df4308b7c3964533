// shell: reads files and standard input
/** What the scheduler's subcommands read: configurations and scenarios. */
import { putMember } from '@megaplane/base/members';
import { parseNested } from '@megaplane/base/nested-json';
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { parseConfiguration } from '@megaplane/scheduler/configuration/configuration';
import type { SchedulerConfiguration } from '@megaplane/scheduler/configuration/configuration';
import { createKubeClient } from '@megaplane/client/kube-client';
import { DEFAULT_CONFIGURATION } from '@megaplane/scheduler/configuration/configuration';
import { reportOnLive } from '@megaplane/scheduler/explain/live-pod';
import { reportText } from '@megaplane/scheduler/explain/report-text';
import { explainScenario, explainSharded } from '@megaplane/scheduler/explain';
import type { Scenario } from '@megaplane/scheduler/explain';
import { createProfile } from '@megaplane/scheduler/profile';
import { userPluginError, type UserPlugin } from '@megaplane/scheduler/user-plugin';
import { stringify } from 'yaml';
import { readNamed } from './named-file.ts';
import { readStrictText } from './strict-text.ts';
import { COMPATIBILITY, type EmulatedVersion } from '@megaplane/scheduler/compatibility';

/** A KubeSchedulerConfiguration; throws with every fault of it, a line each. */
function readConfiguration(
  file: string,
  plugins: readonly UserPlugin[],
  election: JsonObject | null,
): SchedulerConfiguration {
  const faults = (errors: readonly string[]): Error =>
    new Error(`--config ${file}:\n  ${errors.join('\n  ')}`);
  const text = readNamed('--config', file).toString();
  const { value, fault, repeated, numbers } = readStrictText(text);
  if (fault !== '') throw faults([fault]);
  const source = { text, repeated, numbers };
  const parsed = parseConfiguration(withElection(value, election), plugins, source);
  if (!parsed.ok) throw faults(parsed.errors);
  return parsed.configuration;
}

/** Flags of the election outrank what a file says of it, member by member. */
function withElection(value: JsonValue, election: JsonObject | null): JsonValue {
  if (election === null || !isObject(value)) return value;
  const given = value['leaderElection'] ?? {};
  if (!isObject(given)) return value;
  putMember(value, 'leaderElection', { ...given, ...election });
  return value;
}

/** What a file says, or the defaults without one, and what flags say of the election. */
export function configurationOf(
  file: string | undefined,
  plugins: readonly UserPlugin[] = [],
  election: JsonObject | null = null,
): SchedulerConfiguration {
  if (file !== undefined) return readConfiguration(file, plugins, election);
  if (election === null) return DEFAULT_CONFIGURATION;
  const parsed = parseConfiguration(withElection({ ...NOTHING_SAID }, election), plugins);
  if (!parsed.ok) throw new Error(`--leader-elect: ${parsed.errors.join('\n  ')}`);
  return parsed.configuration;
}

const NOTHING_SAID: JsonObject = {
  apiVersion: 'kubescheduler.config.k8s.io/v1',
  kind: 'KubeSchedulerConfiguration',
};

/** Writes a configuration as kube-scheduler does: YAML, with everything spelled out. */
export function writeConfiguration(file: string, { complete }: SchedulerConfiguration): void {
  const style = { aliasDuplicateObjects: false, indentSeq: false, sortMapEntries: true };
  writeFileSync(file, stringify(complete, style));
}

/** Plugins of users, each the default export of a module (or a list of them). */
export async function readPlugins(files: readonly string[]): Promise<UserPlugin[]> {
  const plugins: UserPlugin[] = [];
  for (const file of files) {
    const loaded = await loadPlugin(file);
    for (const plugin of [loaded.default].flat()) {
      const fault = userPluginError(plugin);
      if (fault !== '') throw new Error(`--plugin ${file}: ${fault}`);
      plugins.push(plugin as UserPlugin);
    }
  }
  return plugins;
}

async function loadPlugin(file: string): Promise<{ readonly default?: unknown }> {
  try {
    return (await import(pathToFileURL(resolve(file)).href)) as { readonly default?: unknown };
  } catch (error) {
    throw new Error(`--plugin: cannot load ${file}: ${(error as Error).message}`, { cause: error });
  }
}

function jsonOf(name: string, text: string): unknown {
  try {
    return parseNested(text);
  } catch (error) {
    throw new Error(`${name}: is no JSON (${(error as Error).message})`, { cause: error });
  }
}

export interface ExplainFileFlags {
  /** The scenario; standard input where there is none. */
  readonly filename?: string;
  readonly emulatedVersion?: EmulatedVersion;
  /** That look at the nodes; 0: none. */
  readonly shards: number;
  readonly relayLevels: number;
  readonly relayFanOut: number;
}

/** Prints the answer to a scenario as one line of JSON. Returns the exit code. */
export async function explainFile({
  filename: file,
  // Scenarios were recorded from 1.35, and say nothing of versions.
  emulatedVersion: version = '1.35',
  ...tree
}: ExplainFileFlags): Promise<number> {
  const text = file === undefined ? readFileSync(0, 'utf8') : readNamed('-f', file).toString();
  const scenario = jsonOf(file ?? 'standard input', text);
  if (typeof scenario !== 'object' || scenario === null || !('steps' in scenario)) {
    throw new Error(`${file ?? 'standard input'}: a scenario has "objects" and "steps"`);
  }
  const { shards, relayLevels, relayFanOut: fanOut } = tree;
  const asked = [scenario as Scenario, COMPATIBILITY[version]] as const;
  const answer =
    shards === 0
      ? explainScenario(...asked)
      : await explainSharded(...asked, { shards, relayLevels, fanOut });
  process.stdout.write(`${JSON.stringify(answer)}\n`);
  return 0;
}

export interface ExplainFlags {
  readonly namespace: string;
  readonly kubeconfig?: string;
  readonly config?: string;
  readonly plugin: readonly string[];
  readonly nodes: number;
  /** Milliseconds. */
  readonly requestTimeout: number;
  readonly output: 'table' | 'json';
  readonly emulatedVersion?: EmulatedVersion;
}

/** Prints why a pod of a cluster goes where it goes, or nowhere. Returns the exit code. */
export async function explainPod(name: string, flags: ExplainFlags): Promise<number> {
  if (flags.kubeconfig === undefined) throw new Error('--kubeconfig: a file is needed');
  const plugins = await readPlugins(flags.plugin);
  const compatibility = COMPATIBILITY[flags.emulatedVersion ?? '1.36'];
  const { profiles } = configurationOf(flags.config, plugins);
  const client = await createKubeClient({
    kubeconfig: flags.kubeconfig,
    userAgent: 'megaplane-explain',
    limits: { requestTimeoutMs: flags.requestTimeout },
  });
  try {
    const report = await reportOnLive(
      client,
      flags.namespace,
      name,
      profiles.map((one) => createProfile(one, compatibility, plugins)),
    );
    const isTable = flags.output === 'table';
    process.stdout.write(isTable ? reportText(report, flags.nodes) : `${JSON.stringify(report)}\n`);
    return 0;
  } finally {
    client.close();
  }
}
