/** The configuration as `/configz` of kube-scheduler shows it: under the names of Go's fields. */
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { EXTENSION_POINTS } from './configuration-schema.ts';

/** Where Go's name is more than the first letter in capitals. */
const NAMES: Readonly<Record<string, string>> = {
  qps: 'QPS',
  urlPrefix: 'URLPrefix',
  enableHTTPS: 'EnableHTTPS',
  tlsConfig: 'TLSConfig',
  httpTimeout: 'HTTPTimeout',
  caFile: 'CAFile',
  caData: 'CAData',
};
/** These have JSON names in Go, too. */
const JSON_NAMED = new Set(['apiVersion', 'kind']);

function goName(name: string): string {
  if (JSON_NAMED.has(name)) return name;
  return NAMES[name] ?? `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
}

function shown(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(shown);
  if (!isObject(value)) return value;
  const members = Object.entries(value).map(([name, inner]): [string, JsonValue] => [
    goName(name),
    shown(inner ?? null),
  ]);
  return Object.fromEntries(members);
}

function setShown(set: JsonValue | undefined): JsonValue {
  const { enabled = null, disabled = null } = isObject(set) ? set : {};
  return { Enabled: shown(enabled), Disabled: shown(disabled) };
}

/** `complete`: a v1 configuration with all defaults. */
export function configz(complete: JsonObject): JsonObject {
  const { kind: _, profiles, ...rest } = complete;
  const list = Array.isArray(profiles) ? profiles.filter(isObject) : [];
  const all = list.map((profile): JsonObject => {
    const { plugins, pluginConfig = null, percentageOfNodesToScore = null } = profile;
    const sets = isObject(plugins) ? plugins : {};
    const points = [...EXTENSION_POINTS, 'multiPoint'].map((point): [string, JsonValue] => [
      goName(point),
      setShown(sets[point]),
    ]);
    return {
      SchedulerName: profile['schedulerName'] ?? '',
      PercentageOfNodesToScore: percentageOfNodesToScore,
      Plugins: Object.fromEntries(points),
      PluginConfig: shown(pluginConfig),
    };
  });
  const { extenders = null, delayCacheUntilActive = false, ...others } = rest;
  return {
    componentconfig: {
      ...(shown(others) as JsonObject),
      Profiles: all,
      Extenders: shown(extenders),
      DelayCacheUntilActive: delayCacheUntilActive,
    },
  };
}
