/** Claims, volumes and classes of storage, as far as placement looks at them. */
import { ownMember } from '@megaplane/base/members';
import { parseQuantity } from '@megaplane/machinery/quantity';
import type {
  KubeObject,
  LabelSelectorObject,
  Labels,
  NodeSelectorObject,
  PodObject,
  Quantities,
  Volume,
} from '../api/objects.ts';
import { matchesTerms, parseNodeSelector, type Term } from '../api/node-selector.ts';
import type { NodeInfo } from './node-info.ts';
import type { PodInfo } from './pod-info.ts';
import type { Snapshot } from './snapshot.ts';
import { isBuiltIn } from '../api/volume-migration.ts';

export interface ClaimObject extends KubeObject {
  readonly spec?: {
    readonly accessModes?: readonly string[];
    readonly storageClassName?: string;
    readonly volumeName?: string;
    readonly volumeMode?: string;
    readonly volumeAttributesClassName?: string;
    readonly selector?: LabelSelectorObject;
    readonly resources?: { readonly requests?: Quantities };
  };
  readonly status?: { readonly phase?: string };
}

export interface VolumeObject extends KubeObject {
  readonly spec?: {
    readonly capacity?: Quantities;
    readonly accessModes?: readonly string[];
    readonly storageClassName?: string;
    readonly volumeMode?: string;
    readonly volumeAttributesClassName?: string;
    readonly claimRef?: {
      readonly namespace?: string;
      readonly name?: string;
      readonly uid?: string;
    };
    readonly nodeAffinity?: { readonly required?: NodeSelectorObject };
    readonly csi?: { readonly driver: string; readonly volumeHandle: string };
  };
  readonly status?: { readonly phase?: string };
}

export interface StorageClassObject extends KubeObject {
  readonly provisioner?: string;
  readonly volumeBindingMode?: string;
  readonly allowedTopologies?: readonly {
    readonly matchLabelExpressions?: readonly {
      readonly key: string;
      readonly values: readonly string[];
    }[];
  }[];
}

const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';
const BOUND_ANNOTATION = 'pv.kubernetes.io/bind-completed';

/** The claim that a volume of a pod stands for; empty for other volumes. */
export function claimNameOf(pod: PodInfo, volume: Volume): string {
  if (volume.persistentVolumeClaim !== undefined) return volume.persistentVolumeClaim.claimName;
  return volume.ephemeral === undefined ? '' : `${pod.pod.metadata.name}-${volume.name}`;
}

/** Whether nodes take no more than so many of such volumes. */
export function isCounted(volume: Volume): boolean {
  const isClaim = volume.persistentVolumeClaim !== undefined || volume.ephemeral !== undefined;
  return isClaim || isBuiltIn(volume);
}

export function volumesOf({ pod }: { readonly pod: PodObject }): readonly Volume[] {
  return pod.spec.volumes ?? [];
}

export function claimOf(
  snapshot: Snapshot,
  namespace: string,
  name: string,
): ClaimObject | undefined {
  return snapshot.object('PersistentVolumeClaim', `${namespace}/${name}`);
}

export function classNameOf({ metadata, spec }: ClaimObject): string {
  return metadata.annotations?.[CLASS_ANNOTATION] ?? spec?.storageClassName ?? '';
}

/** Bound, and known to be on both sides. */
export function isBound({ metadata, spec }: ClaimObject): boolean {
  const isComplete = metadata.annotations?.[BOUND_ANNOTATION] !== undefined;
  return (spec?.volumeName ?? '') !== '' && isComplete;
}

export function isDelayed(snapshot: Snapshot, claim: ClaimObject): boolean {
  const name = classNameOf(claim);
  const storageClass: StorageClassObject | undefined = snapshot.object('StorageClass', name);
  return storageClass?.volumeBindingMode === 'WaitForFirstConsumer';
}

/** Whether a volume can be used on a node. */
export function isReachable({ spec }: VolumeObject, node: Pick<NodeInfo, 'labels'>): boolean {
  const required = spec?.nodeAffinity?.required;
  if (required === undefined) return true;
  let terms = parsed.get(required);
  if (terms === undefined) parsed.set(required, (terms = parseNodeSelector(required)));
  return matchesTerms(terms, { name: '', labels: node.labels });
}

/** Selectors are asked about for many nodes. */
const parsed = new WeakMap<NodeSelectorObject, readonly Term[]>();

export function bytesOf(quantity: string | number | undefined): bigint {
  const parsed = parseQuantity(String(quantity ?? '0'));
  return typeof parsed === 'string' ? 0n : parsed.scaled(0);
}

export function hasLabel(labels: Labels, keys: readonly string[]): boolean {
  return keys.some((key) => ownMember(labels, key) !== undefined);
}

/** A generic ephemeral volume's claim must have been made for the pod; the text says otherwise. */
export function ownershipError(pod: PodInfo, claim: ClaimObject): string {
  const { uid, name, namespace } = pod.pod.metadata;
  const owner = claim.metadata.ownerReferences?.find(({ controller }) => controller === true);
  const isOwned = owner?.kind === 'Pod' && owner.name === name && owner.uid === uid;
  if (isOwned) return '';
  const which = `${claim.metadata.namespace ?? ''}/${claim.metadata.name}`;
  return `PVC ${which} was not created for pod ${namespace ?? ''}/${name} (pod is not owner)`;
}

export function notFound(kind: string, name: string): string {
  return `${kind} "${name}" not found`;
}

/** What a claim asks for. */
export function claimBytes({ spec }: ClaimObject): bigint {
  return bytesOf(spec?.resources?.requests?.['storage']);
}
