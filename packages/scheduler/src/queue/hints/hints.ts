/**
 * Which changes of the cluster may help a pod that a plugin rejected: kube-scheduler's queueing
 * hints. What a plugin does not mention does not help; where upstream's hint would leave a pod
 * waiting that fits now, the pod is tried.
 */
import { ownMember, putMember } from '@megaplane/base/members';
import type { NodeInfo } from '../../framework/node-info.ts';
import type { PodInfo } from '../../framework/pod-info.ts';
import { DEVICE_HINTS, NAMESPACE_HINTS, VOLUME_HINTS } from './object-hints.ts';
import { NODE_HINTS } from './node-hints.ts';
import { POD_HINTS } from './pod-hints.ts';
import type { HintContext, Hints, ObjectChange } from './hint.ts';

export type ClusterChange =
  | { readonly event: 'nodeAdded' | 'nodeRemoved'; readonly node: NodeInfo }
  | { readonly event: 'nodeChanged'; readonly before: NodeInfo; readonly after: NodeInfo }
  | { readonly event: 'podAdded' | 'podRemoved'; readonly pod: PodInfo }
  | { readonly event: 'podChanged'; readonly before: PodInfo; readonly after: PodInfo }
  | ObjectChange;

export type ClusterEvent = ClusterChange['event'];

const HINTS: Readonly<Record<string, Hints>> = merged([
  NODE_HINTS,
  POD_HINTS,
  VOLUME_HINTS,
  DEVICE_HINTS,
  NAMESPACE_HINTS,
]);

function merged(tables: readonly Readonly<Record<string, Hints>>[]): Record<string, Hints> {
  const all: Record<string, Hints> = {};
  for (const table of tables) {
    for (const [plugin, hints] of Object.entries(table))
      putMember(all, plugin, { ...ownMember(all, plugin), ...hints });
  }
  return all;
}

/** Whether an event of that sort can matter to a plugin at all; of others' nothing is known. */
export function hopesFor(event: ClusterEvent, plugin: string): boolean {
  const hints = ownMember(HINTS, plugin);
  return hints === undefined || hints[event] !== undefined;
}

/** Whether a pod that the plugin rejected should be tried again. */
export function mayHelp(
  change: ClusterChange,
  plugin: string,
  pod: PodInfo,
  context: HintContext,
): boolean {
  const hints = ownMember(HINTS, plugin);
  if (hints === undefined) return true;
  switch (change.event) {
    case 'nodeAdded':
    case 'nodeRemoved':
      return hints[change.event]?.(pod, change.node, context) ?? false;
    case 'nodeChanged':
      return hints.nodeChanged?.(pod, change.before, change.after, context) ?? false;
    case 'podAdded':
    case 'podRemoved':
      return hints[change.event]?.(pod, change.pod, context) ?? false;
    case 'podChanged':
      return hints.podChanged?.(pod, change.before, change.after, context) ?? false;
    case 'object':
      return hints.object?.(pod, change) ?? false;
  }
}
