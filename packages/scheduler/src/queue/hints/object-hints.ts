/** Volumes, devices and what describes them, by the plugin that rejected a pod. */
import { ownMember } from '@megaplane/base/members';
import { isDeepStrictEqual } from 'node:util';
import type { DeviceClassObject, ResourceClaimObject } from '../../devices/device-objects.ts';
import {
  MADE_CLAIM_ANNOTATION,
  resourcesBehind,
} from '../../dynamicresources/extended-resources.ts';
import type { KubeObject } from '../../api/objects.ts';
import { namespaceOf } from '../../api/objects.ts';
import type { PodInfo } from '../../framework/pod-info.ts';
import type { CapacityObject, CsiDriverObject } from '../../framework/plugins/volume-binding.ts';
import { topologyLabelsOf } from '../../framework/plugins/volume-zone.ts';
import {
  bytesOf,
  claimNameOf,
  isCounted,
  volumesOf,
  type StorageClassObject,
} from '../../framework/volumes.ts';
import { limitsOf, type CsiNodeObject } from '../../framework/attach-limits.ts';
import type { Hints, ObjectChange } from './hint.ts';

type Change<T extends KubeObject> = ObjectChange & {
  readonly before?: T | undefined;
  readonly after?: T | undefined;
};

/** A method's type, so that one that wants a certain kind of object will do. */
type KindHint = { of(pod: PodInfo, change: ObjectChange): boolean }['of'];

/** What gives something back when it goes. */
const FREED = new Set([
  ...['VolumeAttachment', 'ResourceClaim', 'ResourceSlice'],
  // Without one there is no limit, or nobody is asked for space.
  ...['CSINode', 'CSIDriver'],
]);
const MIGRATED_PLUGINS = 'storage.alpha.kubernetes.io/migrated-plugins';

const ALWAYS: KindHint = () => true;
const isNew: KindHint = (_pod, { before }) => before === undefined;
const isThere: KindHint = (_pod, { after }) => after !== undefined;

/** The object is a claim of the pod's, and is there. */
const isOwnClaim: KindHint = (pod, { after }) =>
  after !== undefined &&
  namespaceOf(after) === pod.namespace &&
  volumesOf(pod).some((volume) => claimNameOf(pod, volume) === after.metadata.name);

const isOwnNewClaim: KindHint = (pod, change) => isNew(pod, change) && isOwnClaim(pod, change);

function hasOtherTopologies(_pod: PodInfo, { before, after }: Change<StorageClassObject>): boolean {
  return (
    before === undefined || !isDeepStrictEqual(before.allowedTopologies, after?.allowedTopologies)
  );
}

function isNewDelayedClass(pod: PodInfo, change: Change<StorageClassObject>): boolean {
  return isNew(pod, change) && change.after?.volumeBindingMode === 'WaitForFirstConsumer';
}

function isMigratedOtherwise(_pod: PodInfo, { before, after }: ObjectChange): boolean {
  const of = (node: KubeObject | undefined): string | undefined =>
    node?.metadata.annotations?.[MIGRATED_PLUGINS];
  if (before === undefined || after === undefined) return after !== undefined;
  return (of(before) ?? '') !== (of(after) ?? '');
}

/** A limit has risen, or is gone. */
function hasMoreAttachments(_pod: PodInfo, { before, after }: Change<CsiNodeObject>): boolean {
  if (before === undefined) return true;
  const has = limitsOf(after);
  return limitsOf(before)
    .entries()
    .some(([name, count]) => (has.get(name) ?? Infinity) > count);
}

function asksNoMore(_pod: PodInfo, { before, after }: Change<CsiDriverObject>): boolean {
  return before?.spec?.storageCapacity === true && after?.spec?.storageCapacity !== true;
}

function hasMoreSpace(_pod: PodInfo, { before, after }: Change<CapacityObject>): boolean {
  if (before === undefined) return true;
  const limitOf = (space: CapacityObject | undefined): string | number | undefined =>
    space?.maximumVolumeSize ?? space?.capacity;
  const [had, has] = [limitOf(before), limitOf(after)];
  return has !== undefined && (had === undefined || bytesOf(has) > bytesOf(had));
}

function isElsewhere(_pod: PodInfo, { before, after }: ObjectChange): boolean {
  if (before === undefined) return true;
  const of = (volume: KubeObject | undefined): object =>
    topologyLabelsOf(volume?.metadata.labels ?? {});
  return !isDeepStrictEqual(of(before), of(after));
}

const isDetached: KindHint = (pod, { after }) =>
  after === undefined && volumesOf(pod).some(isCounted);

/** One answer for each kind; of other kinds the plugin does not want to hear. */
function byKind(kinds: Readonly<Record<string, KindHint>>): NonNullable<Hints['object']> {
  return (pod, change) => {
    // That an object is gone helps only where it is said.
    const isGone = change.after === undefined && !FREED.has(change.kind);
    return !isGone && (ownMember(kinds, change.kind)?.(pod, change) ?? false);
  };
}

export const VOLUME_HINTS: Readonly<Record<string, Hints>> = {
  VolumeRestrictions: { object: byKind({ PersistentVolumeClaim: isOwnNewClaim }) },
  NodeVolumeLimits: {
    nodeAdded: () => true,
    object: byKind({
      CSINode: hasMoreAttachments,
      PersistentVolumeClaim: isOwnNewClaim,
      VolumeAttachment: isDetached,
    }),
  },
  VolumeBinding: {
    object: byKind({
      StorageClass: hasOtherTopologies,
      PersistentVolumeClaim: isOwnClaim,
      PersistentVolume: isThere,
      CSINode: isMigratedOtherwise,
      CSIDriver: asksNoMore,
      CSIStorageCapacity: hasMoreSpace,
    }),
  },
  VolumeZone: {
    object: byKind({
      StorageClass: isNewDelayedClass,
      PersistentVolumeClaim: isOwnClaim,
      PersistentVolume: isElsewhere,
    }),
  },
};

/** Other pods are meant by the pod's terms, or the pod by theirs. Upstream waits for a flush. */
function isMeantOtherwise(pod: PodInfo, { before, after }: ObjectChange): boolean {
  if (isDeepStrictEqual(before?.metadata.labels ?? {}, after?.metadata.labels ?? {})) return false;
  const terms = [...pod.requiredAffinity, ...pod.requiredAntiAffinity];
  const selects = terms.some(({ namespaceSelector }) => namespaceSelector !== null);
  return selects || after?.metadata.name === pod.namespace;
}

export const NAMESPACE_HINTS: Readonly<Record<string, Hints>> = {
  InterPodAffinity: { object: byKind({ Namespace: isMeantOtherwise }) },
};

/** The class stands for a resource that the pod asks for, and did not before. */
function standsForMore(pod: PodInfo, { before, after }: Change<DeviceClassObject>): boolean {
  const had = before === undefined ? [] : resourcesBehind(before);
  const has = after === undefined ? [] : resourcesBehind(after);
  return has.some((name) => !had.includes(name) && (pod.requests.scalars.get(name) ?? 0) > 0);
}

/**
 * Devices are there again for everybody, or a claim is gone that an earlier try left behind, for
 * which a pod of its namespace may wait; those who name a claim hear of it anyhow.
 */
function isFreed(pod: PodInfo, { before, after }: Change<ResourceClaimObject>): boolean {
  const isMade = before?.metadata.annotations?.[MADE_CLAIM_ANNOTATION] === 'true';
  if (after === undefined && isMade) return namespaceOf(before) === pod.namespace;
  return before?.status?.allocation !== undefined && after?.status?.allocation === undefined;
}

export const DEVICE_HINTS: Readonly<Record<string, Hints>> = {
  NodeResourcesFit: { object: byKind({ DeviceClass: standsForMore }) },
  DynamicResources: {
    object: byKind({ ResourceClaim: isFreed, DeviceClass: isThere, ResourceSlice: ALWAYS }),
  },
};
