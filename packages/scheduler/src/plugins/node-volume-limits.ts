import type { NodeInfo } from '../node-info.ts';
import type { KubeObject } from '../objects.ts';
import type { PodInfo } from '../pod-info.ts';
import { filterEach, SKIP, unresolvable, unschedulable, type Plugin } from '../plugin.ts';
import type { Rejection } from '../plugin.ts';
import type { Snapshot } from '../snapshot.ts';
import type { ClaimObject, StorageClassObject, VolumeObject } from '../volumes.ts';
import { claimNameOf, claimOf, classNameOf, notFound, ownershipError } from '../volumes.ts';
import { volumesOf } from '../volumes.ts';

interface CsiNodeObject extends KubeObject {
  readonly spec?: {
    readonly drivers?: readonly {
      readonly name: string;
      readonly allocatable?: { readonly count?: number };
    }[];
  };
}

interface AttachmentObject extends KubeObject {
  readonly spec?: {
    readonly attacher?: string;
    readonly nodeName?: string;
    readonly source?: { readonly persistentVolumeName?: string };
  };
}

const EXCEEDED = unschedulable('node(s) exceed max volume count');

/** The driver of a claim, and what names its volume for counting; empty driver: not counted. */
function attachableOf(snapshot: Snapshot, claim: ClaimObject): [driver: string, handle: string] {
  const volume: VolumeObject | undefined = snapshot.object(
    'PersistentVolume',
    claim.spec?.volumeName ?? '',
  );
  if (volume !== undefined) {
    const { driver = '', volumeHandle = '' } = volume.spec?.csi ?? {};
    return [driver, volumeHandle];
  }
  // What is not there yet will be made by the provisioner of the class, one volume per claim.
  const storageClass: StorageClassObject | undefined = snapshot.object(
    'StorageClass',
    classNameOf(claim),
  );
  const { namespace = '', name } = claim.metadata;
  return [storageClass?.provisioner ?? '', `unbound ${namespace}/${name}`];
}

/** Adds the volumes of a pod, by unique name, to `found`; the text says what is missing. */
function collect(
  snapshot: Snapshot,
  pod: PodInfo,
  isNew: boolean,
  found: Map<string, string>,
): string {
  for (const volume of volumesOf(pod)) {
    const name = claimNameOf(pod, volume);
    if (name === '') continue;
    const claim = claimOf(snapshot, pod.namespace, name);
    if (claim === undefined) {
      if (isNew) return notFound('persistentvolumeclaim', name);
      continue;
    }
    if (volume.ephemeral !== undefined && ownershipError(pod, claim) !== '') {
      if (isNew) return ownershipError(pod, claim);
      continue;
    }
    const [driver, handle] = attachableOf(snapshot, claim);
    if (driver !== '') found.set(`${driver}/${handle}`, driver);
  }
  return '';
}

function limitsOf(snapshot: Snapshot, node: string): Map<string, number> {
  const csiNode: CsiNodeObject | undefined = snapshot.object('CSINode', node);
  const limits = new Map<string, number>();
  for (const { name, allocatable } of csiNode?.spec?.drivers ?? []) {
    if (allocatable?.count !== undefined) limits.set(name, allocatable.count);
  }
  return limits;
}

function countsByDriver(volumes: ReadonlyMap<string, string>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const driver of volumes.values()) counts.set(driver, (counts.get(driver) ?? 0) + 1);
  return counts;
}

type Attachments = ReadonlyMap<string, readonly AttachmentObject[]>;

function attachmentsOf(snapshot: Snapshot): Attachments {
  const all = snapshot.objects('VolumeAttachment') as Iterable<AttachmentObject>;
  return Map.groupBy(all, ({ spec }) => spec?.nodeName ?? '');
}

/** Volumes that are attached to a node without a pod on it that uses them. */
function collectAttached(
  snapshot: Snapshot,
  attachments: readonly AttachmentObject[],
  found: Map<string, string>,
): void {
  for (const { spec } of attachments) {
    const volume: VolumeObject | undefined = snapshot.object(
      'PersistentVolume',
      spec?.source?.persistentVolumeName ?? '',
    );
    const csi = volume?.spec?.csi;
    if (csi !== undefined) found.set(`${csi.driver}/${csi.volumeHandle}`, csi.driver);
  }
}

function limit(
  pod: PodInfo,
  snapshot: Snapshot,
  attachments: Attachments,
  node: NodeInfo,
): Rejection | null {
  const wanted = new Map<string, string>();
  const error = collect(snapshot, pod, true, wanted);
  if (error !== '') return unresolvable(error);
  const limits = limitsOf(snapshot, node.name);
  if (wanted.size === 0 || limits.size === 0) return null;
  const attached = new Map<string, string>();
  for (const existing of node.pods) collect(snapshot, existing, false, attached);
  for (const name of attached.keys()) wanted.delete(name);
  // A volume that is still attached without a pod counts, also when it is one that is wanted.
  collectAttached(snapshot, attachments.get(node.name) ?? [], attached);
  const used = countsByDriver(attached);
  for (const [driver, count] of countsByDriver(wanted)) {
    const max = limits.get(driver);
    if (max !== undefined && (used.get(driver) ?? 0) + count > max) return EXCEEDED;
  }
  return null;
}

export const nodeVolumeLimits: Plugin = {
  name: 'NodeVolumeLimits',
  preFilter(pod, snapshot) {
    if (!volumesOf(pod).some((volume) => claimNameOf(pod, volume) !== '')) return SKIP;
    const attachments = attachmentsOf(snapshot);
    return filterEach((node) => limit(pod, snapshot, attachments, node));
  },
};
