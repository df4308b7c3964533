/** All plugins, in the order in which they run by default. */
import type { PluginPoint } from '../../config/schema/configuration-schema.ts';
import type { Plugin } from '../plugin.ts';
import { BalancedAllocation, type BalancedAllocationArgs } from '../plugins/balanced-allocation.ts';
import { DefaultPreemption, type DefaultPreemptionArgs } from '../plugins/default-preemption.ts';
import { DynamicResources, type DynamicResourcesArgs } from '../plugins/dynamic-resources.ts';
import { ImageLocality } from '../plugins/image-locality.ts';
import { InterPodAffinity, type InterPodAffinityArgs } from '../plugins/inter-pod-affinity.ts';
import { NodeAffinity, type NodeAffinityArgs } from '../plugins/node-affinity.ts';
import { nodeDeclaredFeatures } from '../plugins/node-declared-features.ts';
import { nodeName } from '../plugins/node-name.ts';
import { nodePorts } from '../plugins/node-ports.ts';
import { NodeResourcesFit, type NodeResourcesFitArgs } from '../plugins/node-resources-fit.ts';
import { nodeUnschedulable } from '../plugins/node-unschedulable.ts';
import { PodTopologySpread, type PodTopologySpreadArgs } from '../plugins/pod-topology-spread.ts';
import { schedulingGates } from '../plugins/scheduling-gates.ts';
import { NodeVolumeLimits } from '../plugins/node-volume-limits.ts';
import { taintToleration } from '../plugins/taint-toleration.ts';
import { VolumeBinding, type VolumeBindingArgs } from '../plugins/volume-binding.ts';
import { volumeRestrictions } from '../plugins/volume-restrictions.ts';
import { volumeZone } from '../plugins/volume-zone.ts';
import type { Compatibility } from '../compatibility.ts';

export interface PluginArgs {
  readonly DefaultPreemption?: DefaultPreemptionArgs;
  readonly DynamicResources?: DynamicResourcesArgs;
  readonly InterPodAffinity?: InterPodAffinityArgs;
  readonly NodeAffinity?: NodeAffinityArgs;
  readonly NodeResourcesBalancedAllocation?: BalancedAllocationArgs;
  readonly NodeResourcesFit?: NodeResourcesFitArgs;
  readonly PodTopologySpread?: PodTopologySpreadArgs;
  readonly VolumeBinding?: VolumeBindingArgs;
}

/** The multiPoint list of the default profile. */
export const PLUGIN_NAMES: readonly string[] = [
  'SchedulingGates',
  'PrioritySort',
  'NodeUnschedulable',
  'NodeName',
  'TaintToleration',
  'NodeAffinity',
  'NodePorts',
  'NodeResourcesFit',
  'VolumeRestrictions',
  'NodeVolumeLimits',
  'VolumeBinding',
  'VolumeZone',
  'PodTopologySpread',
  'InterPodAffinity',
  'DynamicResources',
  'DefaultPreemption',
  'NodeResourcesBalancedAllocation',
  'ImageLocality',
  'DefaultBinder',
  'NodeDeclaredFeatures',
];

/** Of plugins that score; 1 where nothing is said. */
export const DEFAULT_WEIGHTS: Readonly<Record<string, number>> = {
  TaintToleration: 3,
  NodeAffinity: 2,
  PodTopologySpread: 2,
  InterPodAffinity: 2,
  DynamicResources: 2,
};

const FILTER = ['filter'] as const;
const FILTER_AFTER_PREPARATION = ['preFilter', 'filter'] as const;
const SCORE = ['preScore', 'score'] as const;

/** Where each plugin takes part, as upstream's implement the interfaces. */
export const PLUGIN_POINTS: Readonly<Record<string, readonly PluginPoint[]>> = {
  SchedulingGates: ['preEnqueue'],
  PrioritySort: ['queueSort'],
  NodeUnschedulable: FILTER,
  NodeName: FILTER,
  TaintToleration: [...FILTER, ...SCORE],
  NodeAffinity: [...FILTER_AFTER_PREPARATION, ...SCORE],
  NodePorts: FILTER_AFTER_PREPARATION,
  NodeResourcesFit: [...FILTER_AFTER_PREPARATION, ...SCORE],
  VolumeRestrictions: FILTER_AFTER_PREPARATION,
  NodeVolumeLimits: FILTER_AFTER_PREPARATION,
  VolumeBinding: [...FILTER_AFTER_PREPARATION, 'reserve', 'preBind', ...SCORE],
  VolumeZone: FILTER_AFTER_PREPARATION,
  PodTopologySpread: [...FILTER_AFTER_PREPARATION, ...SCORE],
  InterPodAffinity: [...FILTER_AFTER_PREPARATION, ...SCORE],
  DynamicResources: [
    'preEnqueue',
    ...FILTER_AFTER_PREPARATION,
    'postFilter',
    'score',
    'reserve',
    'preBind',
  ],
  DefaultPreemption: ['preEnqueue', 'postFilter'],
  NodeResourcesBalancedAllocation: SCORE,
  ImageLocality: ['score'],
  DefaultBinder: ['bind'],
  NodeDeclaredFeatures: FILTER_AFTER_PREPARATION,
  // Gangs are always looked at; topologies of groups are not there.
  GangScheduling: ['preEnqueue', 'permit'],
  TopologyPlacementGenerator: ['placementGenerate'],
  PodGroupPodsCount: ['placementScore'],
};

export function createPlugins(
  args: PluginArgs,
  compatibility: Compatibility,
): ReadonlyMap<string, Plugin> {
  const plugins: Plugin[] = [
    schedulingGates,
    nodeUnschedulable,
    nodeName,
    taintToleration,
    new NodeAffinity(args.NodeAffinity ?? {}),
    nodePorts,
    new NodeResourcesFit(args.NodeResourcesFit ?? {}),
    volumeRestrictions,
    new NodeVolumeLimits(compatibility.isMigrationAssumed),
    new VolumeBinding(args.VolumeBinding ?? {}),
    volumeZone,
    new PodTopologySpread(args.PodTopologySpread ?? {}),
    new InterPodAffinity(args.InterPodAffinity ?? {}, compatibility.keepsNamespaceSelector),
    new DynamicResources(args.DynamicResources ?? {}),
    new DefaultPreemption(args.DefaultPreemption ?? {}),
    new BalancedAllocation(
      args.NodeResourcesBalancedAllocation ?? {},
      compatibility.isBalanceChangeScored,
    ),
    new ImageLocality(compatibility.areImageVolumesScored),
    nodeDeclaredFeatures,
  ];
  return new Map(plugins.map((plugin) => [plugin.name, plugin]));
}
