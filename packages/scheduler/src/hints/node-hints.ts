/** Nodes that come, go or change, by the plugin that rejected a pod. */
import { isDeepStrictEqual } from 'node:util';
import type { NodeInfo } from '../node-info.ts';
import { RequiredNodes } from '../node-selector.ts';
import type { PodInfo } from '../pod-info.ts';
import { hasUntolerated } from '../plugins/taint-toleration.ts';
import type { Resources } from '../resources.ts';
import type { Hints } from './hints.ts';

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
): Iterable<readonly [wanted: number, before: number, after: number]> {
  const had = before?.allocatable;
  const has = after.allocatable;
  yield [1, before?.allocatablePods ?? 0, after.allocatablePods];
  yield [requests.milliCpu, had?.milliCpu ?? 0, has.milliCpu];
  yield [requests.memory, had?.memory ?? 0, has.memory];
  yield [requests.ephemeral, had?.ephemeral ?? 0, has.ephemeral];
  for (const [name, amount] of requests.scalars) {
    yield [amount, had === undefined ? 0 : scalarOf(had, name), scalarOf(has, name)];
  }
}

/** Whether an empty node of that size would do. */
function wouldFit(pod: PodInfo, node: NodeInfo): boolean {
  for (const [wanted, , has] of sharesOf(pod, null, node)) if (wanted > has) return false;
  return true;
}

function hasMore(pod: PodInfo, before: NodeInfo, after: NodeInfo): boolean {
  for (const [wanted, had, has] of sharesOf(pod, before, after)) {
    if (wanted > 0 && has > had) return true;
  }
  return false;
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
  NodeResourcesFit: {
    nodeAdded: wouldFit,
    nodeChanged: (pod, before, after) => wouldFit(pod, after) && hasMore(pod, before, after),
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
      hasOtherLabels(before, after) ||
      !isDeepStrictEqual(before.node.status?.allocatable, after.node.status?.allocatable),
  },
};
