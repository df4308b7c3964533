/** KubeSchedulerConfiguration v1, checked; what is not supported is refused by name. */
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { PLUGIN_NAMES } from './registry.ts';
import type { ProfileConfiguration } from './profile.ts';

export interface SchedulerConfiguration {
  readonly profiles: readonly ProfileConfiguration[];
  readonly percentageOfNodesToScore: number;
  readonly initialBackoffMs: number;
  readonly maxBackoffMs: number;
  readonly leaderElection: {
    readonly leaderElect: boolean;
    readonly namespace: string;
    readonly name: string;
  };
}

export const DEFAULT_CONFIGURATION: SchedulerConfiguration = {
  profiles: [{}],
  percentageOfNodesToScore: 100,
  initialBackoffMs: 1000,
  maxBackoffMs: 10_000,
  leaderElection: { leaderElect: true, namespace: 'kube-system', name: 'kube-scheduler' },
};

const API_VERSION = 'kubescheduler.config.k8s.io/v1';
const KIND = 'KubeSchedulerConfiguration';
/** Members that are understood; those of no effect here are said so in the documentation. */
const MEMBERS = new Set([
  'apiVersion',
  'kind',
  'profiles',
  'percentageOfNodesToScore',
  'podInitialBackoffSeconds',
  'podMaxBackoffSeconds',
  'leaderElection',
  'parallelism',
  'clientConnection',
  'enableProfiling',
  'enableContentionProfiling',
]);
const POINTS = new Set([
  'preEnqueue',
  'queueSort',
  'preFilter',
  'filter',
  'postFilter',
  'preScore',
  'score',
  'reserve',
  'permit',
  'preBind',
  'bind',
  'postBind',
  'multiPoint',
]);
const REMOVED = new Set(['AzureDiskLimits', 'CinderLimits', 'EBSLimits', 'GCEPDLimits']);

/** The configuration, or all that is wrong with it. */
export type ParsedConfiguration =
  | { readonly ok: true; readonly configuration: SchedulerConfiguration }
  | { readonly ok: false; readonly errors: readonly string[] };

class Reader {
  readonly errors: string[] = [];

  whole(parent: JsonObject, member: string, fallback: number, max: number): number {
    const value = parent[member];
    if (value === undefined || value === null) return fallback;
    if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max) {
      return value;
    }
    const shown = JSON.stringify(value);
    this.errors.push(`${member}: Invalid value: ${shown}: must be a whole number of 0 to ${max}`);
    return fallback;
  }

  object(parent: JsonObject, member: string): JsonObject {
    const value = parent[member];
    if (value === undefined || value === null) return {};
    if (isObject(value)) return value;
    this.errors.push(`${member}: Invalid value: ${JSON.stringify(value)}: must be an object`);
    return {};
  }

  list(parent: JsonObject, member: string): JsonValue[] {
    const value = parent[member];
    if (value === undefined || value === null) return [];
    if (Array.isArray(value)) return value;
    this.errors.push(`${member}: Invalid value: ${JSON.stringify(value)}: must be a list`);
    return [];
  }
}

export function parseConfiguration(value: JsonValue): ParsedConfiguration {
  if (!isObject(value)) return { ok: false, errors: ['the configuration is no object'] };
  const reader = new Reader();
  const { errors } = reader;
  if (value['kind'] !== KIND || value['apiVersion'] !== API_VERSION) {
    const found = JSON.stringify([value['apiVersion'], value['kind']]);
    errors.push(`expected ${API_VERSION} ${KIND}, found ${found}`);
  }
  for (const member of Object.keys(value)) {
    if (!MEMBERS.has(member)) errors.push(`${member}: not supported`);
  }
  const initial = reader.whole(value, 'podInitialBackoffSeconds', 1, 86_400);
  const max = reader.whole(value, 'podMaxBackoffSeconds', 10, 86_400);
  if (value['podInitialBackoffSeconds'] !== undefined && initial === 0) {
    errors.push('podInitialBackoffSeconds: Invalid value: 0: must be greater than 0');
  }
  if (max < initial) {
    const why = 'must be greater than or equal to PodInitialBackoffSeconds';
    errors.push(`podMaxBackoffSeconds: Invalid value: ${max}: ${why}`);
  }
  const election = reader.object(value, 'leaderElection');
  const profiles = reader
    .list(value, 'profiles')
    .map((profile, index) => readProfile(profile, `profiles[${index}]`, errors));
  checkNames(profiles, errors);
  const configuration: SchedulerConfiguration = {
    profiles: profiles.length === 0 ? [{}] : profiles,
    percentageOfNodesToScore: reader.whole(value, 'percentageOfNodesToScore', 100, 100),
    initialBackoffMs: initial * 1000,
    maxBackoffMs: max * 1000,
    leaderElection: {
      leaderElect: election['leaderElect'] !== false,
      namespace: textOr(election['resourceNamespace'], 'kube-system'),
      name: textOr(election['resourceName'], 'kube-scheduler'),
    },
  };
  return errors.length === 0 ? { ok: true, configuration } : { ok: false, errors };
}

function textOr(value: JsonValue | undefined, fallback: string): string {
  return typeof value === 'string' && value !== '' ? value : fallback;
}

function checkNames(profiles: readonly ProfileConfiguration[], errors: string[]): void {
  const seen = new Set<string>();
  for (const [index, { schedulerName }] of profiles.entries()) {
    const path = `profiles[${index}].schedulerName`;
    if (schedulerName === undefined || schedulerName === '') {
      if (profiles.length > 1) errors.push(`${path}: Required value`);
    } else if (seen.has(schedulerName)) {
      errors.push(`${path}: Duplicate value: ${JSON.stringify(schedulerName)}`);
    } else {
      seen.add(schedulerName);
    }
  }
}

function readProfile(value: JsonValue, path: string, errors: string[]): ProfileConfiguration {
  if (!isObject(value)) {
    errors.push(`${path}: Invalid value: must be an object`);
    return {};
  }
  const sets = value['plugins'];
  if (isObject(sets)) {
    for (const [point, set] of Object.entries(sets)) {
      const where = `${path}.plugins.${point}`;
      if (!POINTS.has(point)) errors.push(`${where}: not supported`);
      else if (isObject(set)) checkSet(set, where, errors);
    }
  }
  const configs = value['pluginConfig'];
  for (const [index, config] of (Array.isArray(configs) ? configs : []).entries()) {
    const name = isObject(config) ? config['name'] : undefined;
    checkPlugin(name, `${path}.pluginConfig[${index}].name`, errors);
  }
  const percentage = value['percentageOfNodesToScore'];
  if (percentage !== undefined && !(Number(percentage) >= 0 && Number(percentage) <= 100)) {
    const shown = JSON.stringify(percentage);
    errors.push(`${path}.percentageOfNodesToScore: Invalid value: ${shown}: not in 0..100`);
  }
  return value;
}

function checkSet(set: JsonObject, path: string, errors: string[]): void {
  for (const part of ['enabled', 'disabled']) {
    const entries = set[part];
    const seen = new Set<string>();
    for (const [index, entry] of (Array.isArray(entries) ? entries : []).entries()) {
      const name = isObject(entry) ? entry['name'] : undefined;
      const where = `${path}.${part}[${index}].name`;
      if (part === 'disabled' && name === '*') continue;
      checkPlugin(name, where, errors);
      if (typeof name === 'string' && seen.has(name)) {
        errors.push(`${where}: Duplicate value: ${JSON.stringify(name)}`);
      }
      if (typeof name === 'string') seen.add(name);
    }
  }
}

function checkPlugin(name: JsonValue | undefined, path: string, errors: string[]): void {
  const shown = JSON.stringify(name);
  if (typeof name !== 'string') errors.push(`${path}: Required value`);
  else if (REMOVED.has(name)) errors.push(`${path}: Invalid value: ${shown}: was removed`);
  else if (!PLUGIN_NAMES.includes(name)) {
    errors.push(`${path}: Invalid value: ${shown}: there is no plugin of this name`);
  }
}
