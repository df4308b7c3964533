/** Who makes and removes the storage behind a volume: plug-ins of old, and programs outside. */
import { ownMember } from '@megaplane/base/members';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt, stringAt } from '@megaplane/machinery/json';

export const BOUND_BY_CONTROLLER = 'pv.kubernetes.io/bound-by-controller';
export const BIND_COMPLETED = 'pv.kubernetes.io/bind-completed';
export const PROVISIONED_BY = 'pv.kubernetes.io/provisioned-by';
const MIGRATED_TO = 'pv.kubernetes.io/migrated-to';
/** The scheduler's choice: provisioning of a class that waits for its first consumer begins. */
export const SELECTED_NODE = 'volume.kubernetes.io/selected-node';
export const PROVISIONER = 'volume.kubernetes.io/storage-provisioner';
export const PROVISIONER_BETA = 'volume.beta.kubernetes.io/storage-provisioner';

/** Plug-ins that upstream has moved to drivers outside, and the names of those. */
const MIGRATED: Readonly<Record<string, string>> = {
  'kubernetes.io/aws-ebs': 'ebs.csi.aws.com',
  'kubernetes.io/gce-pd': 'pd.csi.storage.gke.io',
  'kubernetes.io/azure-disk': 'disk.csi.azure.com',
  'kubernetes.io/azure-file': 'file.csi.azure.com',
  'kubernetes.io/cinder': 'cinder.csi.openstack.org',
  'kubernetes.io/vsphere-volume': 'csi.vsphere.vmware.com',
  'kubernetes.io/portworx-volume': 'pxd.portworx.com',
};

/** Fields of a volume's source whose plug-ins were moved, and what those were called. */
const MIGRATED_SOURCES: Readonly<Record<string, string>> = {
  awsElasticBlockStore: 'kubernetes.io/aws-ebs',
  gcePersistentDisk: 'kubernetes.io/gce-pd',
  azureDisk: 'kubernetes.io/azure-disk',
  azureFile: 'kubernetes.io/azure-file',
  cinder: 'kubernetes.io/cinder',
  vsphereVolume: 'kubernetes.io/vsphere-volume',
  portworxVolume: 'kubernetes.io/portworx-volume',
};

/** The plug-in that a volume's source named once, and the driver that does its work now. */
export interface MigratedPlugin {
  readonly plugin: string;
  readonly driver: string;
}

/** Undefined for volumes of drivers, and of plug-ins that are still what they were. */
export function migratedPluginOf(volume: JsonObject): MigratedPlugin | undefined {
  for (const [field, plugin] of Object.entries(MIGRATED_SOURCES)) {
    const driver = ownMember(MIGRATED, plugin);
    if (driver !== undefined && objectAt(volume, 'spec', field) !== undefined) {
      return { plugin, driver };
    }
  }
  return undefined;
}

/** The program that provisions for a class, or why there is none. */
export type Provisioner =
  | { readonly kind: 'external'; readonly name: string }
  | { readonly kind: 'none'; readonly text: string };

export function provisionerOf(storageClass: JsonObject): Provisioner {
  const name = stringAt(storageClass, 'provisioner');
  const driver = ownMember(MIGRATED, name);
  if (driver !== undefined) return { kind: 'external', name: driver };
  if (!name.startsWith('kubernetes.io/')) return { kind: 'external', name };
  return { kind: 'none', text: `no volume plugin matched name: ${name}` };
}

/**
 * What keeps a released volume with the policy Delete from being deleted: '' where a program
 * outside does it, else the text of its failure. No storage is ever touched here.
 */
export function deletionFailure(volume: JsonObject): string {
  const annotations = objectAt(volume, 'metadata', 'annotations');
  const provisionedBy = stringAt(annotations, PROVISIONED_BY);
  if (stringAt(annotations, MIGRATED_TO) !== '' || ownMember(MIGRATED, provisionedBy) !== undefined)
    return '';
  if (provisionedBy !== '' && !provisionedBy.startsWith('kubernetes.io/')) return '';
  // Volumes of CSI drivers are their provisioners', however they came to be.
  if (objectAt(volume, 'spec', 'csi') !== undefined) return '';
  const name = stringAt(volume, 'metadata', 'name');
  const path = stringAt(volume, 'spec', 'hostPath', 'path');
  if (path !== '') {
    return /^\/tmp\/.+/.test(path)
      ? `host_path deleter is not run here: remove ${path} on its node and delete the volume`
      : `host_path deleter only supports /tmp/.+ but received provided ${path}`;
  }
  // The one source beside it that upstream's controller of volumes has a plug-in for.
  const why =
    objectAt(volume, 'spec', 'nfs') !== undefined
      ? 'no deletable volume plugin matched'
      : 'no volume plugin matched';
  return `error getting deleter volume plugin for volume "${name}": ${why}`;
}

/** Name of the class for claims that name none: the youngest of those marked; '' for none. */
export function defaultClassOf(classes: Iterable<JsonObject>): string {
  let chosen: JsonObject | undefined;
  for (const one of classes) {
    const annotations = objectAt(one, 'metadata', 'annotations');
    const isDefault = ['storageclass', 'storageclass.beta'].some(
      (prefix) => stringAt(annotations, `${prefix}.kubernetes.io/is-default-class`) === 'true',
    );
    if (isDefault && (chosen === undefined || isPreferred(one, chosen))) chosen = one;
  }
  return chosen === undefined ? '' : stringAt(chosen, 'metadata', 'name');
}

function isPreferred(left: JsonObject, right: JsonObject): boolean {
  const [created, other] = [left, right].map((one) =>
    stringAt(one, 'metadata', 'creationTimestamp'),
  );
  if (created !== other) return (created ?? '') > (other ?? '');
  return stringAt(left, 'metadata', 'name') < stringAt(right, 'metadata', 'name');
}
