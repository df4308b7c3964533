/** What upstream fills in where a configuration says nothing. */
import { ownMember } from '@megaplane/base/members';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { DEFAULT_WEIGHTS } from '../framework/runtime/registry.ts';
import { multiPointEntries, type PluginSet } from '../framework/runtime/profile.ts';
import { EXTENSION_POINTS, GROUP_POINTS } from './schema/configuration-schema.ts';
import { listAt, objectAt, objectsAt } from './schema/members.ts';

export const API_VERSION = 'kubescheduler.config.k8s.io/v1';
export const KIND = 'KubeSchedulerConfiguration';

const RESOURCES: JsonValue = [
  { name: 'cpu', weight: 1 },
  { name: 'memory', weight: 1 },
];

/** A weight of 0 is none. */
function weighted(resources: readonly JsonValue[]): JsonValue {
  if (resources.length === 0) return RESOURCES;
  return resources.map((one) =>
    isObject(one) && (one['weight'] ?? 0) === 0 ? { ...one, weight: 1 } : one,
  );
}

/** The arguments of a plugin, completed; `args` has been decoded. */
export function defaultedArguments(plugin: string, args: JsonObject): JsonObject {
  switch (plugin) {
    case 'DefaultPreemption':
      return { minCandidateNodesPercentage: 10, minCandidateNodesAbsolute: 100, ...args };
    case 'DynamicResources':
      return { filterTimeout: '10s', bindingTimeout: '10m0s', ...args };
    case 'InterPodAffinity':
      return { hardPodAffinityWeight: 1, ignorePreferredTermsOfExistingPods: false, ...args };
    case 'NodeResourcesBalancedAllocation':
      return { ...args, resources: weighted(listAt(args, 'resources')) };
    case 'NodeResourcesFit': {
      const given = args['scoringStrategy'];
      const strategy = isObject(given) ? given : { type: 'LeastAllocated' };
      const resources = weighted(listAt(strategy, 'resources'));
      return { ...args, scoringStrategy: { ...strategy, resources } };
    }
    case 'PodTopologySpread': {
      const { defaultConstraints: listed, ...rest } = args;
      const isGiven = Array.isArray(listed) && listed.length > 0;
      const defaultConstraints = isGiven ? { defaultConstraints: listed } : {};
      const defaultingType = orElse(args['defaultingType'], 'System');
      return { ...rest, ...defaultConstraints, defaultingType };
    }
    case 'VolumeBinding':
      return { bindTimeoutSeconds: 600, ...args };
    default:
      return args;
  }
}

/** The multiPoint set with the default plugins in it. */
function withDefaultPlugins(set: JsonObject): JsonObject {
  const enabled = multiPointEntries(set);
  const complete = enabled.map((entry) => ({
    weight: ownMember(SCORE_WEIGHTS, entry.name) ?? 0,
    ...entry,
  }));
  return { ...set, enabled: complete };
}

/** Weights that upstream's default profile spells out. */
const SCORE_WEIGHTS: Readonly<Record<string, number>> = {
  ...DEFAULT_WEIGHTS,
  NodeResourcesFit: 1,
  NodeResourcesBalancedAllocation: 1,
  ImageLocality: 1,
};

/** A set with a name and a weight in each entry; what is disabled has no weight of its own. */
function spelledOut(set: JsonObject): JsonObject {
  const named = (member: string): readonly JsonObject[] =>
    objectsAt(set, member).map((entry) => ({ name: '', weight: 0, ...entry }));
  const enabled = named('enabled');
  const disabled = named('disabled').map((entry) => ({ ...entry, weight: 0 }));
  return {
    ...(enabled.length === 0 ? {} : { enabled: [...enabled] }),
    ...(disabled.length === 0 ? {} : { disabled }),
  };
}

/** The sets of a profile as given, spelled out. */
export function givenSets(profile: JsonObject): Record<string, PluginSet> {
  const plugins = objectAt(profile, 'plugins');
  const sets = [...EXTENSION_POINTS, ...GROUP_POINTS, 'multiPoint'].map((point) => [
    point,
    spelledOut(objectAt(plugins, point)),
  ]);
  return Object.fromEntries(sets) as Record<string, PluginSet>;
}

function defaultedProfile(profile: JsonObject, isAlone: boolean): JsonObject {
  const { multiPoint = {}, ...sets } = givenSets(profile);
  const all = withDefaultPlugins(multiPoint as JsonObject);
  return {
    ...(isAlone ? { schedulerName: 'default-scheduler' } : {}),
    ...profile,
    plugins: { ...(sets as JsonObject), multiPoint: all },
  };
}

/** A configuration whose members have been decoded, completed. */
export function defaultedConfiguration(given: JsonObject): JsonObject {
  const profiles = listAt(given, 'profiles').filter(isObject);
  const list = profiles.length === 0 ? [{}] : profiles;
  const election = objectAt(given, 'leaderElection');
  const connection = objectAt(given, 'clientConnection');
  return {
    kind: KIND,
    apiVersion: API_VERSION,
    parallelism: given['parallelism'] ?? 16,
    leaderElection: {
      leaderElect: election['leaderElect'] ?? true,
      leaseDuration: nonZero(election['leaseDuration'], '15s'),
      renewDeadline: nonZero(election['renewDeadline'], '10s'),
      retryPeriod: nonZero(election['retryPeriod'], '2s'),
      resourceLock: orElse(election['resourceLock'], 'leases'),
      resourceName: orElse(election['resourceName'], 'kube-scheduler'),
      resourceNamespace: orElse(election['resourceNamespace'], 'kube-system'),
    },
    clientConnection: {
      kubeconfig: connection['kubeconfig'] ?? '',
      acceptContentTypes: connection['acceptContentTypes'] ?? '',
      contentType: orElse(connection['contentType'], 'application/vnd.kubernetes.protobuf'),
      qps: orElse(connection['qps'], 50),
      burst: orElse(connection['burst'], 100),
    },
    enableProfiling: given['enableProfiling'] ?? true,
    enableContentionProfiling:
      given['enableContentionProfiling'] ?? given['enableProfiling'] ?? true,
    percentageOfNodesToScore: given['percentageOfNodesToScore'] ?? 0,
    podInitialBackoffSeconds: given['podInitialBackoffSeconds'] ?? 1,
    podMaxBackoffSeconds: given['podMaxBackoffSeconds'] ?? 10,
    profiles: list.map((profile) => defaultedProfile(profile, list.length === 1)),
    ...(given['extenders'] === undefined
      ? {}
      : { extenders: listAt(given, 'extenders').map(timed) }),
    ...(given['delayCacheUntilActive'] === true ? { delayCacheUntilActive: true } : {}),
  };
}

function orElse(value: JsonValue | undefined, fallback: JsonValue): JsonValue {
  return value === undefined || value === '' || value === 0 ? fallback : value;
}

/** As upstream shows them when it has made them. */
function timed(extender: JsonValue): JsonValue {
  if (!isObject(extender)) return extender;
  return { ...extender, httpTimeout: nonZero(extender['httpTimeout'], '5s') };
}

function nonZero(value: JsonValue | undefined, fallback: string): JsonValue {
  return value === undefined || value === '0' || value === '0s' ? fallback : value;
}
