/**
 * `--admission-control-config-file`: an AdmissionConfiguration names a plugin and says how it is to
 * work, in the file itself or in another one. Files of before that kind hold the settings of
 * ImagePolicyWebhook or of PodNodeSelector alone.
 */
import { dirname, resolve } from 'node:path';
import { listAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonValue } from '@megaplane/machinery/json-value';
import { parse } from 'yaml';
import type { FileReader } from '../webhook/webhook-kubeconfig.ts';

/** What the plugins were told, by their names. */
export interface PluginConfigurations {
  readonly of: ReadonlyMap<string, JsonValue>;
  /** For the files that a configuration names itself. */
  readonly readFile: FileReader;
}

const KIND = 'AdmissionConfiguration';
const VERSIONS: ReadonlySet<string> = new Set([
  'apiserver.config.k8s.io/v1',
  'apiserver.config.k8s.io/v1alpha1',
  'apiserver.k8s.io/v1alpha1',
]);
/** The one setting of such a file, and whose it is. */
const LEGACY = ['imagePolicy', 'podNodeSelectorPluginConfig'] as const;
const LEGACY_PLUGINS = ['ImagePolicyWebhook', 'PodNodeSelector'] as const;

export const NO_CONFIGURATIONS: PluginConfigurations = {
  of: new Map(),
  readFile: (path) => {
    throw new Error(`${path} cannot be read`);
  },
};

/** Throws an Error for people where the file is none of both kinds. */
export function readPluginConfigurations(file: string, readFile: FileReader): PluginConfigurations {
  let value: JsonValue;
  try {
    value = parse(readFile(file)) as JsonValue;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const text = `unable to read admission control configuration from ${JSON.stringify(file)}`;
    throw new Error(`${text} [${why}]`, { cause: error });
  }
  const version = stringAt(value, 'apiVersion');
  if (stringAt(value, 'kind') === KIND && VERSIONS.has(version)) {
    return { of: listedIn(value, dirname(file), readFile), readFile };
  }
  const isLegacy = isObject(value) && LEGACY.some((name) => name in value);
  if (!isLegacy) {
    throw new Error(
      `--admission-control-config-file: ${file} holds ${version || 'no apiVersion'}, ` +
        `${stringAt(value, 'kind') || 'no kind'}, not apiserver.config.k8s.io/v1, ${KIND}`,
    );
  }
  return { of: new Map(LEGACY_PLUGINS.map((name) => [name, value])), readFile };
}

function listedIn(value: JsonValue, folder: string, readFile: FileReader): Map<string, JsonValue> {
  const found = new Map<string, JsonValue>();
  for (const plugin of listAt(value, 'plugins')) {
    if (!isObject(plugin)) continue;
    const name = stringAt(plugin, 'name');
    // the first of a name counts
    if (found.has(name)) continue;
    const path = stringAt(plugin, 'path');
    const own = plugin['configuration'] ?? null;
    if (own !== null) found.set(name, own);
    else if (path !== '') found.set(name, parse(readFile(resolve(folder, path))) as JsonValue);
  }
  return found;
}
