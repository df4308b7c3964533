/** The members of KubeSchedulerConfiguration v1 and of the arguments of plugins. */
import type { Schema, StructSchema } from './strict-decode.ts';

const INT32: Schema = { kind: 'int32' };
const INT64: Schema = { kind: 'int64' };
const FLOAT: Schema = { kind: 'float32' };
const STRING: Schema = { kind: 'string' };
const BOOL: Schema = { kind: 'bool' };
const DURATION: Schema = { kind: 'duration' };
const BYTES: Schema = { kind: 'bytes' };

/** Texts of a type of their own, which errors name. */
const text = (type: string): Schema => ({ kind: 'string', type });

function struct(type: string, members: Readonly<Record<string, Schema>>): StructSchema {
  return { kind: 'struct', type, members };
}

function list(of: Schema): Schema {
  return { kind: 'list', of };
}

const TYPE = { apiVersion: STRING, kind: STRING };

const PLUGIN = struct('v1.Plugin', { name: STRING, weight: INT32 });
const PLUGIN_SET = struct('v1.PluginSet', { enabled: list(PLUGIN), disabled: list(PLUGIN) });

/** Points of a profile at which plugins are enabled, in the order of the configuration. */
export const EXTENSION_POINTS = [
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
] as const;
export type ExtensionPoint = (typeof EXTENSION_POINTS)[number];

/** For the placement of groups, which 1.36 has by an alpha gate; taken, and without effect. */
export const GROUP_POINTS = ['placementGenerate', 'placementScore'] as const;
/** Any point that a plugin may extend. */
export type PluginPoint = ExtensionPoint | (typeof GROUP_POINTS)[number];

const PLUGINS = struct(
  'v1.Plugins',
  Object.fromEntries(
    [...EXTENSION_POINTS, ...GROUP_POINTS, 'multiPoint'].map((point) => [point, PLUGIN_SET]),
  ),
);

const PROFILE = struct('v1.KubeSchedulerProfile', {
  schedulerName: STRING,
  percentageOfNodesToScore: INT32,
  plugins: PLUGINS,
  pluginConfig: list(struct('v1.PluginConfig', { name: STRING, args: { kind: 'raw' } })),
});

const LEADER_ELECTION = struct('v1alpha1.LeaderElectionConfiguration', {
  leaderElect: BOOL,
  leaseDuration: DURATION,
  renewDeadline: DURATION,
  retryPeriod: DURATION,
  resourceLock: STRING,
  resourceName: STRING,
  resourceNamespace: STRING,
});

const CLIENT_CONNECTION = struct('v1alpha1.ClientConnectionConfiguration', {
  kubeconfig: STRING,
  acceptContentTypes: STRING,
  contentType: STRING,
  qps: FLOAT,
  burst: INT32,
});

const EXTENDER = struct('v1.Extender', {
  urlPrefix: STRING,
  filterVerb: STRING,
  preemptVerb: STRING,
  prioritizeVerb: STRING,
  weight: INT64,
  bindVerb: STRING,
  enableHTTPS: BOOL,
  tlsConfig: struct('v1.ExtenderTLSConfig', {
    insecure: BOOL,
    serverName: STRING,
    certFile: STRING,
    keyFile: STRING,
    caFile: STRING,
    certData: BYTES,
    keyData: BYTES,
    caData: BYTES,
  }),
  httpTimeout: DURATION,
  nodeCacheCapable: BOOL,
  managedResources: list(
    struct('v1.ExtenderManagedResource', { name: STRING, ignoredByScheduler: BOOL }),
  ),
  ignorable: BOOL,
});

const MEMBERS = struct('v1.KubeSchedulerConfiguration', {
  ...TYPE,
  parallelism: INT32,
  leaderElection: LEADER_ELECTION,
  clientConnection: CLIENT_CONNECTION,
  enableProfiling: BOOL,
  enableContentionProfiling: BOOL,
  percentageOfNodesToScore: INT32,
  podInitialBackoffSeconds: INT64,
  podMaxBackoffSeconds: INT64,
  profiles: list(PROFILE),
  extenders: list(EXTENDER),
  delayCacheUntilActive: BOOL,
});
const DEBUGGING = 'DebuggingConfiguration';

export const CONFIGURATION: StructSchema = {
  ...MEMBERS,
  embedded: { enableProfiling: DEBUGGING, enableContentionProfiling: DEBUGGING },
};

const REQUIREMENTS = list(
  struct('v1.NodeSelectorRequirement', {
    ...{ key: STRING, values: list(STRING) },
    operator: text('v1.NodeSelectorOperator'),
  }),
);
const TERM = struct('v1.NodeSelectorTerm', {
  matchExpressions: REQUIREMENTS,
  matchFields: REQUIREMENTS,
});
const LABEL_SELECTOR = struct('v1.LabelSelector', {
  matchLabels: { kind: 'map', of: STRING },
  matchExpressions: list(
    struct('v1.LabelSelectorRequirement', {
      ...{ key: STRING, values: list(STRING) },
      operator: text('v1.LabelSelectorOperator'),
    }),
  ),
});
const RESOURCES = list(struct('v1.ResourceSpec', { name: STRING, weight: INT64 }));
const SHAPE = list(struct('v1.UtilizationShapePoint', { utilization: INT32, score: INT32 }));

/** By plugin. Plugins without an entry have no arguments. */
export const ARGUMENTS: Readonly<Record<string, StructSchema>> = {
  DefaultPreemption: struct('v1.DefaultPreemptionArgs', {
    ...TYPE,
    minCandidateNodesPercentage: INT32,
    minCandidateNodesAbsolute: INT32,
  }),
  DynamicResources: struct('v1.DynamicResourcesArgs', {
    ...TYPE,
    filterTimeout: DURATION,
    bindingTimeout: DURATION,
  }),
  InterPodAffinity: struct('v1.InterPodAffinityArgs', {
    ...TYPE,
    hardPodAffinityWeight: INT32,
    ignorePreferredTermsOfExistingPods: BOOL,
  }),
  NodeAffinity: struct('v1.NodeAffinityArgs', {
    ...TYPE,
    addedAffinity: struct('v1.NodeAffinity', {
      requiredDuringSchedulingIgnoredDuringExecution: struct('v1.NodeSelector', {
        nodeSelectorTerms: list(TERM),
      }),
      preferredDuringSchedulingIgnoredDuringExecution: list(
        struct('v1.PreferredSchedulingTerm', { weight: INT32, preference: TERM }),
      ),
    }),
  }),
  NodeResourcesBalancedAllocation: struct('v1.NodeResourcesBalancedAllocationArgs', {
    ...TYPE,
    resources: RESOURCES,
  }),
  NodeResourcesFit: struct('v1.NodeResourcesFitArgs', {
    ...TYPE,
    ignoredResources: list(STRING),
    ignoredResourceGroups: list(STRING),
    scoringStrategy: struct('v1.ScoringStrategy', {
      type: text('v1.ScoringStrategyType'),
      resources: RESOURCES,
      requestedToCapacityRatio: struct('v1.RequestedToCapacityRatioParam', { shape: SHAPE }),
    }),
  }),
  PodTopologySpread: struct('v1.PodTopologySpreadArgs', {
    ...TYPE,
    defaultConstraints: list(
      struct('v1.TopologySpreadConstraint', {
        maxSkew: INT32,
        topologyKey: STRING,
        whenUnsatisfiable: text('v1.UnsatisfiableConstraintAction'),
        labelSelector: LABEL_SELECTOR,
        minDomains: INT32,
        nodeAffinityPolicy: text('v1.NodeInclusionPolicy'),
        nodeTaintsPolicy: text('v1.NodeInclusionPolicy'),
        matchLabelKeys: list(STRING),
      }),
    ),
    defaultingType: text('v1.PodTopologySpreadConstraintsDefaulting'),
  }),
  VolumeBinding: struct('v1.VolumeBindingArgs', {
    ...TYPE,
    bindTimeoutSeconds: INT64,
    shape: SHAPE,
  }),
};
