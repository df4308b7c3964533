/** What a queueing hint is, and what it is told of a change. */
import type { NodeInfo } from '../../framework/node-info.ts';
import type { KubeObject } from '../../api/objects.ts';
import type { PodInfo } from '../../framework/pod-info.ts';
import type { Siblings } from '../../framework/plugins/spread-rules.ts';
import type { Snapshot } from '../../framework/snapshot.ts';

/** What hints look up. */
export type HintContext = Siblings & Pick<Snapshot, 'namespaceLabels'>;

/** Of one plugin, about a pod that it rejected. */
export interface Hints {
  nodeAdded?(pod: PodInfo, node: NodeInfo, context: HintContext): boolean;
  nodeRemoved?(pod: PodInfo, node: NodeInfo, context: HintContext): boolean;
  nodeChanged?(pod: PodInfo, before: NodeInfo, after: NodeInfo, context: HintContext): boolean;
  podAdded?(pod: PodInfo, other: PodInfo, context: HintContext): boolean;
  podRemoved?(pod: PodInfo, other: PodInfo, context: HintContext): boolean;
  podChanged?(pod: PodInfo, before: PodInfo, after: PodInfo, context: HintContext): boolean;
  object?(pod: PodInfo, change: ObjectChange): boolean;
}

/** `after` is absent where the object is gone, `before` where it is new. */
export interface ObjectChange {
  readonly event: 'object';
  readonly kind: string;
  readonly before?: KubeObject | undefined;
  readonly after?: KubeObject | undefined;
}
