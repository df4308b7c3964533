/**
 * What is said of a node, split by how many nodes have it in common: its kind (labels, taints,
 * cordon) and its size (allocatable). A cluster of a million nodes has a handful of each, because
 * the one label that is unique by design, the host name, is kept apart.
 */
import { ownMember } from '@megaplane/base/members';
import type { Matchable } from '../api/node-selector.ts';
import { labelsOf, type BareLabels, type NodeObject } from '../api/objects.ts';
import type { Quantities, Taint } from '../api/objects.ts';
import { allocatableOf, type Resources } from '../api/resources.ts';

export const HOSTNAME_KEY = 'kubernetes.io/hostname';

export interface NodeKind {
  /** Without the host name where that equals the node's name. */
  readonly labels: BareLabels;
  readonly hasOwnHostname: boolean;
  readonly taints: readonly Taint[];
  readonly isCordoned: boolean;
  /** What its kubelet tells that it can do. */
  readonly features: readonly string[];
}

export interface NodeSize {
  /** As it was written. */
  readonly allocatable: Quantities;
  readonly resources: Resources;
  readonly pods: number;
}

export interface NodeImage {
  readonly name: string;
  readonly sizeBytes: number;
}

export interface NodeFacts {
  readonly name: string;
  readonly kindKey: string;
  readonly kind: NodeKind;
  readonly sizeKey: string;
  readonly images: readonly NodeImage[];
  readonly object: NodeObject;
}

/** `[["a","1"],["b","2"]]`: the same text for the same map in any order. */
function sortedText(map: Readonly<Record<string, unknown>>): string {
  const keys = Object.keys(map).toSorted();
  return JSON.stringify(keys.map((key) => [key, ownMember(map, key)]));
}

export function factsOf(object: NodeObject): NodeFacts {
  const { name, labels = {} } = object.metadata;
  const hasOwnHostname = labels[HOSTNAME_KEY] === name;
  const { [HOSTNAME_KEY]: _, ...common } = labels;
  const kind: NodeKind = {
    labels: labelsOf(hasOwnHostname ? common : labels),
    hasOwnHostname,
    taints: object.spec?.taints ?? [],
    isCordoned: object.spec?.unschedulable === true,
    features: object.status?.declaredFeatures ?? [],
  };
  // An image that is listed twice is there once, as it is told of first.
  const sizes = new Map<string, number>();
  for (const { names = [], sizeBytes = 0 } of object.status?.images ?? []) {
    for (const image of names) if (!sizes.has(image)) sizes.set(image, sizeBytes);
  }
  const images = [...sizes].map(([image, sizeBytes]) => ({ name: image, sizeBytes }));
  const taints = kind.taints.map(({ key, value = '', effect }) => [key, value, effect]);
  const rest = JSON.stringify([hasOwnHostname, kind.isCordoned, taints, kind.features]);
  return {
    name,
    kindKey: `${sortedText(kind.labels)} ${rest}`,
    kind,
    sizeKey: sortedText(object.status?.allocatable ?? {}),
    images,
    object,
  };
}

export function sizeOf(object: NodeObject): NodeSize {
  const allocatable = object.status?.allocatable ?? {};
  return { allocatable, ...allocatableOf(allocatable) };
}

/** A node of this kind and name, for selectors. */
export function matchableOf({ labels, hasOwnHostname }: NodeKind, name: string): Matchable {
  return { name, labels: hasOwnHostname ? { ...labels, [HOSTNAME_KEY]: name } : labels };
}
