/** Nodes that come, go or change, by the plugin that rejected a pod. */
import { isDeepStrictEqual } from 'node:util';
import { backedResources, isDelegated } from '../../dynamicresources/extended-resources.ts';
import type { NodeInfo } from '../../framework/node-info.ts';
import { RequiredNodes } from '../../api/node-selector.ts';
import type { PodInfo } from '../../framework/pod-info.ts';
import { hasUntolerated } from '../../framework/plugins/taint-toleration.ts';
import type { Resources } from '../../api/resources.ts';
import type { HintContext, Hints } from './hint.ts';

const ALWAYS = (): boolean => true;

function isTolerable({ pod }: PodInfo, { node }: NodeInfo): boolean {
  return !hasUntolerated(node.spec?.taints, pod.spec.tolerations);
}

function isCordoned({ node }: NodeInfo): boolean {
  return node.spec?.unschedulable === true;
}

function hasOtherLabels(before: NodeInfo, after: NodeInfo): boolean {
  return !isDeepStrictEqual(before.labels, after.labels);
}

function scalarOf({ scalars }: Resources, name: string): number {
  return scalars.get(name) ?? 0;
}

/** What the pod asks for, and what two nodes have of it; a pod always asks for one place. */
function* sharesOf(
  { requests }: PodInfo,
  before: NodeInfo | null,
  after: NodeInfo,
): Generator<readonly [name: string, wanted: number, before: number, after: number]> {
  const had = before?.allocatable;
  const has = after.allocatable;
  yield ['pods', 1, before?.allocatablePods ?? 0, after.allocatablePods];
  yield ['cpu', requests.milliCpu, had?.milliCpu ?? 0, has.milliCpu];
  yield ['memory', requests.memory, had?.memory ?? 0, has.memory];
  yield ['ephemeral-storage', requests.ephemeral, had?.ephemeral ?? 0, has.ephemeral];
  for (const [name, amount] of requests.scalars) {
    yield [name, amount, had === undefined ? 0 : scalarOf(had, name), scalarOf(has, name)];
  }
}

/** Whether an empty node of that size would do, as far as it is not devices that are asked for. */
function wouldFit(pod: PodInfo, node: NodeInfo, context: HintContext): boolean {
  const backed = backedResources(pod, context);
  const isShort = sharesOf(pod, null, node).some(
    ([name, wanted, , has]) => wanted > has && !isDelegated(name, node, backed),
  );
  return !isShort;
}

function hasOtherSize(before: NodeInfo, after: NodeInfo): boolean {
  return !isDeepStrictEqual(before.node.status?.allocatable, after.node.status?.allocatable);
}

function hasMore(pod: PodInfo, before: NodeInfo, after: NodeInfo, context: HintContext): boolean {
  if (!hasOtherSize(before, after)) return false;
  const backed = backedResources(pod, context);
  if (backed.keys().some((name) => isDelegated(name, after, backed))) return true;
  for (const [, wanted, had, has] of sharesOf(pod, before, after)) {
    if (wanted > 0 && has > had) return true;
  }
  return false;
}

/** Of what kubelets tell that they can do. */
export function hasSameFeatures(before: NodeInfo, after: NodeInfo): boolean {
  const featuresOf = ({ node }: NodeInfo): readonly string[] => node.status?.declaredFeatures ?? [];
  return isDeepStrictEqual(featuresOf(before), featuresOf(after));
}

export const NODE_HINTS: Readonly<Record<string, Hints>> = {
  NodeUnschedulable: {
    nodeAdded: (_pod, node) => !isCordoned(node),
    nodeChanged: (_pod, before, after) => isCordoned(before) && !isCordoned(after),
  },
  NodeName: { nodeAdded: ALWAYS },
  TaintToleration: {
    nodeAdded: isTolerable,
    nodeChanged: (pod, before, after) => !isTolerable(pod, before) && isTolerable(pod, after),
  },
  NodeAffinity: {
    nodeAdded: ({ pod }, node) => new RequiredNodes(pod).matches(node),
    nodeChanged({ pod }, before, after) {
      const nodes = new RequiredNodes(pod);
      return !nodes.matches(before) && nodes.matches(after);
    },
  },
  NodePorts: { nodeAdded: ALWAYS },
  NodeDeclaredFeatures: {
    nodeAdded: ALWAYS,
    nodeChanged: (_pod, before, after) => !hasSameFeatures(before, after),
  },
  NodeResourcesFit: {
    nodeAdded: wouldFit,
    nodeChanged: (pod, before, after, context) =>
      wouldFit(pod, after, context) && hasMore(pod, before, after, context),
  },
  VolumeRestrictions: { nodeAdded: ALWAYS },
  VolumeBinding: {
    nodeAdded: ALWAYS,
    nodeChanged: (_pod, before, after) => hasOtherLabels(before, after),
  },
  VolumeZone: {
    nodeAdded: ALWAYS,
    nodeChanged: (_pod, before, after) => hasOtherLabels(before, after),
  },
  DynamicResources: {
    nodeAdded: ALWAYS,
    nodeChanged: (_pod, before, after) =>
      hasOtherLabels(before, after) || hasOtherSize(before, after),
  },
};
