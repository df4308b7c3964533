/**
 * Volumes of the storage that was once built in, as the CSI drivers that took it over know them
 * (KEP-625, upstream's csi-translation-lib). Only what counting needs: which driver, and a handle
 * that is the same for the same volume.
 */
import { ownMember } from '@megaplane/base/members';
import type { KubeObject, Labels } from './objects.ts';

/** A source of a pod's volume or of a PersistentVolume. */
export interface VolumeSources {
  readonly csi?: { readonly driver?: string; readonly volumeHandle?: string };
  readonly awsElasticBlockStore?: { readonly volumeID?: string };
  readonly gcePersistentDisk?: { readonly pdName?: string };
  readonly azureDisk?: { readonly diskURI?: string; readonly kind?: string };
  readonly cinder?: { readonly volumeID?: string };
  readonly portworxVolume?: { readonly volumeID?: string };
}

/** What a driver counts. */
export interface Attachable {
  readonly driver: string;
  readonly handle: string;
}

const PORTWORX = 'kubernetes.io/portworx-volume';
/** Drivers by the plugins that they took over; azure-file and vSphere never count. */
const DRIVERS: Readonly<Record<string, string>> = {
  'kubernetes.io/aws-ebs': 'ebs.csi.aws.com',
  'kubernetes.io/gce-pd': 'pd.csi.storage.gke.io',
  'kubernetes.io/azure-disk': 'disk.csi.azure.com',
  'kubernetes.io/cinder': 'cinder.csi.openstack.org',
  [PORTWORX]: 'pxd.portworx.com',
};
const NEVER_COUNTED = new Set(['kubernetes.io/azure-file', 'kubernetes.io/vsphere-volume']);
/** The old label outranks the new one. */
const ZONE_LABELS = ['failure-domain.beta.kubernetes.io/zone', 'topology.kubernetes.io/zone'];
const MIGRATED_ANNOTATION = 'storage.alpha.kubernetes.io/migrated-plugins';

/** Whether a node's kubelet leaves a plugin to its driver. */
export type Migration = (plugin: string) => boolean;

/** What the CSINode object of a node says that its kubelet leaves to drivers. */
export function saidMigration(csiNode: KubeObject | undefined): Migration {
  const said = csiNode?.metadata.annotations?.[MIGRATED_ANNOTATION] ?? '';
  const plugins = new Set(said === '' ? [] : said.split(','));
  return (plugin) => ownMember(DRIVERS, plugin) !== undefined && plugins.has(plugin);
}

/**
 * What is counted: every node with a CSINode object leaves all to drivers. Before 1.36 the object
 * had to say so of Portworx; `isAssumed` is about that.
 */
export function migrationOf(csiNode: KubeObject | undefined, isAssumed: boolean): Migration {
  if (csiNode === undefined) return () => false;
  const isSaid = saidMigration(csiNode);
  return (plugin) =>
    ownMember(DRIVERS, plugin) !== undefined &&
    (isAssumed || plugin !== PORTWORX || isSaid(plugin));
}

/** The same for nodes of the same migration. */
export function migrationKey(csiNode: KubeObject | undefined): string {
  if (csiNode === undefined) return '';
  return `on ${csiNode.metadata.annotations?.[MIGRATED_ANNOTATION] ?? ''}`;
}

/** Whether a volume of a pod is of storage that was once built in. */
export function isBuiltIn(sources: VolumeSources): boolean {
  return builtInOf(sources, {}) !== null;
}

/** The plugin that a volume was once left to; null for all others. */
export function builtInPlugin(sources: VolumeSources): string | null {
  return builtInOf(sources, {})?.plugin ?? null;
}

/** Null: not counted; a text: the volume is named in a way that no driver understands. */
export function attachableOfSources(
  sources: VolumeSources,
  labels: Labels,
  isMigrated: Migration,
): Attachable | string | null {
  if (sources.csi !== undefined) {
    return { driver: sources.csi.driver ?? '', handle: sources.csi.volumeHandle ?? '' };
  }
  const found = builtInOf(sources, labels);
  if (found === null || !isMigrated(found.plugin)) return null;
  if (found.error !== '') return found.error;
  return { driver: ownMember(DRIVERS, found.plugin) ?? '', handle: found.handle };
}

/** The driver that makes volumes of a class; empty: they are not counted. */
export function driverOfProvisioner(provisioner: string, isMigrated: Migration): string {
  if (NEVER_COUNTED.has(provisioner)) return '';
  const driver = ownMember(DRIVERS, provisioner);
  if (driver === undefined) return provisioner;
  return isMigrated(provisioner) ? driver : '';
}

interface BuiltIn {
  readonly plugin: string;
  readonly handle: string;
  readonly error: string;
}

function builtInOf(sources: VolumeSources, labels: Labels): BuiltIn | null {
  const named = (plugin: string, handle = ''): BuiltIn => ({
    plugin: `kubernetes.io/${plugin}`,
    handle,
    error: '',
  });
  const { awsElasticBlockStore, gcePersistentDisk, azureDisk, cinder, portworxVolume } = sources;
  if (awsElasticBlockStore !== undefined) {
    const { volumeID = '' } = awsElasticBlockStore;
    const handle = blockStoreHandle(volumeID);
    const text = 'failed to translate Kubernetes ID to EBS Volume ID';
    const error = handle === null ? `${text} Invalid format for AWS volume (${volumeID})` : '';
    return { ...named('aws-ebs', handle ?? ''), error };
  }
  if (gcePersistentDisk !== undefined) {
    const zones = ZONE_LABELS.map((key) => labels[key] ?? '').find((value) => value !== '');
    const { place, error } = persistentDiskPlace((zones ?? 'UNSPECIFIED').split('__'));
    const handle = `projects/UNSPECIFIED/${place}/disks/${gcePersistentDisk.pdName ?? ''}`;
    return { ...named('gce-pd', handle), error };
  }
  if (azureDisk !== undefined) {
    const { diskURI, kind = 'Managed' } = azureDisk;
    const isManaged = kind.toLowerCase() === 'managed';
    const error = isManaged ? '' : `kind(${kind}) is not supported in csi migration`;
    return { ...named('azure-disk', diskURI), error };
  }
  if (cinder !== undefined) return named('cinder', cinder.volumeID);
  return portworxVolume === undefined ? null : named('portworx-volume', portworxVolume.volumeID);
}

/** `aws://zone/vol-1` and `vol-1` are the same volume. */
function blockStoreHandle(volumeID: string): string | null {
  if (!volumeID.startsWith('aws://')) return volumeID;
  const path = volumeID.slice('aws://'.length).replace(/^[^/]*/, '');
  const handle = path.replaceAll(/^\/+|(?<!\/)\/+$/g, '');
  return /^vol-[^/]*$/.test(handle) ? handle : null;
}

/** Disks of several zones belong to their region; an error if the zones name none, or several. */
function persistentDiskPlace(zones: readonly string[]): { place: string; error: string } {
  if (zones.length === 1) return { place: `zones/${zones.join('')}`, error: '' };
  const failed = (why: string): { place: string; error: string } => ({
    place: '',
    error: `failed to get region from zones: ${why}`,
  });
  const odd = zones.find((zone) => zone.split('-').length !== 3);
  if (odd !== undefined) {
    const form = 'zone in unexpected format, expected: {locale}-{region}-{zone}';
    return failed(`${form}, got: ${odd}`);
  }
  const regions = [...new Set(zones.map((zone) => zone.split('-').slice(0, 2).join('-')))];
  if (regions.length === 1) return { place: `regions/${regions.join('')}`, error: '' };
  const names = regions.toSorted().map((region) => `${region}:{}`);
  return failed(`multiple or no regions gotten from zones, got: map[${names.join(' ')}]`);
}
