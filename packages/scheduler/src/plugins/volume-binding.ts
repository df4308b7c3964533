import type { NodeInfo } from '../node-info.ts';
import type { KubeObject, LabelSelectorObject } from '../objects.ts';
import { selectorOf, selects, type PodInfo } from '../pod-info.ts';
import { filterEach, SKIP, unresolvable, type Plugin, type Rejection } from '../plugin.ts';
import type { Snapshot } from '../snapshot.ts';
import type { ClaimObject, StorageClassObject, VolumeObject } from '../volumes.ts';
import { bytesOf, claimNameOf, claimOf, classNameOf, isBound, isDelayed } from '../volumes.ts';
import { isReachable, notFound, ownershipError, volumesOf } from '../volumes.ts';

interface CsiDriverObject extends KubeObject {
  readonly spec?: { readonly storageCapacity?: boolean };
}

interface CapacityObject extends KubeObject {
  readonly storageClassName?: string;
  readonly capacity?: string;
  readonly maximumVolumeSize?: string;
  readonly nodeTopology?: LabelSelectorObject;
}

const UNREACHABLE = "node(s) didn't match PersistentVolume's node affinity";
const NONE_AVAILABLE = "node(s) didn't find available persistent volumes to bind";
const NO_SPACE = 'node(s) did not have enough free storage';
const MISSING = 'node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)';
const SELECTED_NODE = 'volume.kubernetes.io/selected-node';
const NO_PROVISIONER = 'kubernetes.io/no-provisioner';

interface Claims {
  readonly bound: ClaimObject[];
  readonly delayed: ClaimObject[];
}

/** The claims of a pod, or why it cannot have them. */
function claimsOf(pod: PodInfo, snapshot: Snapshot): Claims | string {
  const claims: Claims = { bound: [], delayed: [] };
  let isWaiting = false;
  for (const volume of volumesOf(pod)) {
    const name = claimNameOf(pod, volume);
    if (name === '') continue;
    const claim = claimOf(snapshot, pod.namespace, name);
    const isEphemeral = volume.ephemeral !== undefined;
    if (claim === undefined) {
      if (!isEphemeral) return notFound('persistentvolumeclaim', name);
      const controller = 'waiting for ephemeral volume controller to create the';
      return `${controller} persistentvolumeclaim "${name}"`;
    }
    if (claim.status?.phase === 'Lost') {
      const volumeName = claim.spec?.volumeName ?? '';
      const problem = `bound to non-existent persistentvolume "${volumeName}"`;
      return `persistentvolumeclaim "${name}" ${problem}`;
    }
    if (claim.metadata.deletionTimestamp !== undefined) {
      return `persistentvolumeclaim "${name}" is being deleted`;
    }
    const foreign = isEphemeral ? ownershipError(pod, claim) : '';
    if (foreign !== '') return foreign;
    const isFree = (claim.spec?.volumeName ?? '') === '' && isDelayed(snapshot, claim);
    if (isBound(claim)) claims.bound.push(claim);
    else if (isFree) claims.delayed.push(claim);
    else isWaiting = true;
  }
  return isWaiting ? 'pod has unbound immediate PersistentVolumeClaims' : claims;
}

function sizeOf({ spec }: ClaimObject): bigint {
  return bytesOf(spec?.resources?.requests?.['storage']);
}

function isFor(volume: VolumeObject, claim: ClaimObject): boolean {
  const reference = volume.spec?.claimRef;
  if (reference === undefined) return false;
  const { name, namespace = 'default', uid } = claim.metadata;
  if (reference.name !== name || (reference.namespace ?? 'default') !== namespace) return false;
  return reference.uid === undefined || reference.uid === '' || reference.uid === uid;
}

/** The smallest free volume that a claim can have on a node. */
function matchVolume(
  claim: ClaimObject,
  node: NodeInfo,
  snapshot: Snapshot,
  chosen: ReadonlySet<string>,
): VolumeObject | null {
  const wanted = sizeOf(claim);
  const modes = claim.spec?.accessModes ?? [];
  const selector = claim.spec?.selector;
  const mode = claim.spec?.volumeMode ?? 'Filesystem';
  let smallest: VolumeObject | null = null;
  let smallestBytes = 0n;
  for (const volume of snapshot.objects('PersistentVolume') as Iterable<VolumeObject>) {
    const { metadata, spec, status } = volume;
    const bytes = bytesOf(spec?.capacity?.['storage']);
    const isMine = isFor(volume, claim);
    if ((spec?.storageClassName ?? '') !== classNameOf(claim) || chosen.has(metadata.name))
      continue;
    if (spec?.claimRef !== undefined && !isMine) continue;
    if (bytes < wanted || (spec?.volumeMode ?? 'Filesystem') !== mode) continue;
    if (metadata.deletionTimestamp !== undefined) continue;
    if (isMine) return isReachable(volume, node) ? volume : null;
    if (status?.phase !== 'Available' || !isReachable(volume, node)) continue;
    if (selector !== undefined && !selects(selectorOf(selector), metadata.labels)) continue;
    if (!modes.every((wantedMode) => spec?.accessModes?.includes(wantedMode) === true)) continue;
    if (smallest !== null && smallestBytes <= bytes) continue;
    smallest = volume;
    smallestBytes = bytes;
  }
  return smallest;
}

function isAllowed({ allowedTopologies = [] }: StorageClassObject, node: NodeInfo): boolean {
  if (allowedTopologies.length === 0) return true;
  return allowedTopologies.some(({ matchLabelExpressions = [] }) =>
    matchLabelExpressions.every(({ key, values }) => values.includes(node.labels[key] ?? '')),
  );
}

/** Whether a driver that tells its free space has enough of it for a claim. */
function hasSpace(
  claim: ClaimObject,
  { metadata, provisioner = '' }: StorageClassObject,
  node: NodeInfo,
  snapshot: Snapshot,
): boolean {
  const driver: CsiDriverObject | undefined = snapshot.object('CSIDriver', provisioner);
  if (driver?.spec?.storageCapacity !== true) return true;
  for (const space of snapshot.objects('CSIStorageCapacity') as Iterable<CapacityObject>) {
    const limit = space.maximumVolumeSize ?? space.capacity;
    if (space.storageClassName !== metadata.name || limit === undefined) continue;
    if (space.nodeTopology === undefined || bytesOf(limit) < sizeOf(claim)) continue;
    if (selects(selectorOf(space.nodeTopology), node.labels)) return true;
  }
  return false;
}

/** Why the claims that wait for their consumer cannot be had on a node. */
function delayedProblem(claims: Claims, node: NodeInfo, snapshot: Snapshot): string {
  const chosen = new Set<string>();
  const toProvision: ClaimObject[] = [];
  const toMatch: ClaimObject[] = [];
  for (const claim of claims.delayed) {
    const selected = claim.metadata.annotations?.[SELECTED_NODE];
    if (selected === undefined) toMatch.push(claim);
    else if (selected === node.name) toProvision.push(claim);
    else return NONE_AVAILABLE;
  }
  const bySize = toMatch.toSorted((left, right) => Number(sizeOf(left) - sizeOf(right)));
  for (const claim of bySize) {
    const volume = matchVolume(claim, node, snapshot, chosen);
    if (volume === null) toProvision.push(claim);
    else chosen.add(volume.metadata.name);
  }
  for (const claim of toProvision) {
    const name = classNameOf(claim);
    const storageClass: StorageClassObject | undefined = snapshot.object('StorageClass', name);
    const provisioner = storageClass?.provisioner ?? '';
    if (storageClass === undefined || provisioner === '' || provisioner === NO_PROVISIONER) {
      return NONE_AVAILABLE;
    }
    if (!isAllowed(storageClass, node)) return NONE_AVAILABLE;
    if (!hasSpace(claim, storageClass, node, snapshot)) return NO_SPACE;
  }
  return '';
}

function bind(claims: Claims, node: NodeInfo, snapshot: Snapshot): Rejection | null {
  const reasons = new Set<string>();
  for (const { spec } of claims.bound) {
    const volume: VolumeObject | undefined = snapshot.object(
      'PersistentVolume',
      spec?.volumeName ?? '',
    );
    if (volume === undefined) reasons.add(MISSING);
    else if (!isReachable(volume, node)) reasons.add(UNREACHABLE);
  }
  const problem = delayedProblem(claims, node, snapshot);
  if (problem !== '') reasons.add(problem);
  return reasons.size === 0 ? null : unresolvable(...reasons);
}

export const volumeBinding: Plugin = {
  name: 'VolumeBinding',
  preFilter(pod, snapshot) {
    const claims = claimsOf(pod, snapshot);
    if (typeof claims === 'string') return { kind: 'rejected', rejection: unresolvable(claims) };
    if (claims.bound.length + claims.delayed.length === 0) return SKIP;
    return filterEach((node) => bind(claims, node, snapshot));
  },
};
