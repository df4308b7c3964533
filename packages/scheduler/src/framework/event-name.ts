/** What upstream's metrics call the kinds whose events wake pods. */
import { ownMember } from '@megaplane/base/members';

const GROUPS: Readonly<Record<string, string>> = {
  CSINode: 'storage.k8s.io',
  CSIDriver: 'storage.k8s.io',
  CSIStorageCapacity: 'storage.k8s.io',
  StorageClass: 'storage.k8s.io',
  VolumeAttachment: 'storage.k8s.io',
  ResourceClaim: 'resource.k8s.io',
  ResourceSlice: 'resource.k8s.io',
  DeviceClass: 'resource.k8s.io',
  PodGroup: 'scheduling.k8s.io',
};

/** `Node`, `storage.k8s.io/CSINode`; the action follows. */
export function eventName(kind: string): string {
  const group = ownMember(GROUPS, kind);
  return group === undefined ? kind : `${group}/${kind}`;
}
