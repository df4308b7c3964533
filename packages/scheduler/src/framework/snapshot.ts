/** The cluster as one cycle sees it. */
import type { AllocatedDevices } from '../devices/allocated-devices.ts';
import type { SliceIndex } from '../devices/device-pools.ts';
import type { KubeObject, Labels } from '../api/objects.ts';
import type { NodeInfo } from './node-info.ts';

export interface KnownDevices {
  readonly slices: SliceIndex;
  readonly allocated: AllocatedDevices;
}

export interface Snapshot {
  /** In the order in which they are examined. */
  readonly nodes: readonly NodeInfo[];
  node(name: string): NodeInfo | undefined;
  /** Labels of a namespace; undefined if it does not exist. */
  namespaceLabels(name: string): Labels | undefined;
  /** Names of all namespaces. */
  readonly namespaces: Iterable<string>;
  /** An object of another kind by `namespace/name`, or `name`. */
  object(kind: string, key: string): KubeObject | undefined;
  objects(kind: string): Iterable<KubeObject>;
  /** Where it is known without a look at all slices and claims. */
  readonly devices?: KnownDevices;
  /** Nodes of the whole cluster, where `nodes` are a share of them. */
  readonly nodeCount?: number;
  /** When the snapshot was taken, milliseconds since 1970. */
  readonly nowMs: number;
}
