/**
 * Where volumes of the storage that was once built in can be used. On a node whose kubelet leaves
 * them to a CSI driver, VolumeBinding takes the zones that the volume names for those of the driver
 * (upstream's csi-translation-lib, `translateTopologyFromInTreeToCSI`).
 */
import { ownMember } from '@megaplane/base/members';
import type { KubeObject, NodeSelectorObject, NodeSelectorTerm } from '../api/objects.ts';
import { isReachable, type VolumeObject } from './volumes.ts';
import { attachableOfSources, builtInPlugin, saidMigration } from '../api/volume-migration.ts';

const KEYS: Readonly<Record<string, string>> = {
  'kubernetes.io/aws-ebs': 'topology.ebs.csi.aws.com/zone',
  'kubernetes.io/gce-pd': 'topology.gke.io/zone',
  'kubernetes.io/cinder': 'topology.cinder.csi.openstack.org/zone',
};
const ZONE = 'topology.kubernetes.io/zone';
const OLD_ZONE = 'failure-domain.beta.kubernetes.io/zone';
const REGION = 'topology.kubernetes.io/region';
const OLD_REGION = 'failure-domain.beta.kubernetes.io/region';

/** What drivers made of volumes; a volume's object is never changed in place. */
const translated = new WeakMap<VolumeObject, VolumeObject>();

/** The volume in its driver's words; the very same one where a driver would change nothing. */
export function translatedVolume(volume: VolumeObject): VolumeObject {
  const plugin = builtInPlugin(volume.spec ?? {});
  const key = plugin === null ? undefined : ownMember(KEYS, plugin);
  if (key === undefined) return volume;
  let known = translated.get(volume);
  if (known === undefined) translated.set(volume, (known = translate(volume, key)));
  return known;
}

/** Why its driver cannot understand a volume; empty if it can, or need not. */
export function translationError({ spec, metadata }: VolumeObject): string {
  if (builtInPlugin(spec ?? {}) === null) return '';
  const attachable = attachableOfSources(spec ?? {}, metadata.labels ?? {}, () => true);
  return typeof attachable === 'string' ? attachable : '';
}

/** Whether a node leaves the volume to a driver that cannot understand it: the text says why. */
export function translationErrorOn(volume: VolumeObject, csiNode: KubeObject | undefined): string {
  const plugin = builtInPlugin(volume.spec ?? {});
  const isMigrated = plugin !== null && saidMigration(csiNode)(plugin);
  return isMigrated ? translationError(volume) : '';
}

/** Whether a volume can be used on a node, as the driver sees it that the node leaves it to. */
export function isReachableOn(
  volume: VolumeObject,
  node: Parameters<typeof isReachable>[1],
  csiNode: KubeObject | undefined,
): boolean {
  const other = translatedVolume(volume);
  if (other === volume) return isReachable(volume, node);
  const plugin = builtInPlugin(volume.spec ?? {});
  const isMigrated = plugin !== null && saidMigration(csiNode)(plugin);
  return isReachable(isMigrated ? other : volume, node);
}

function translate(volume: VolumeObject, key: string): VolumeObject {
  const required = volume.spec?.nodeAffinity?.required;
  const terms = required?.nodeSelectorTerms ?? [];
  const names = (wanted: string): boolean =>
    terms.some((term) => (term.matchExpressions ?? []).some((one) => one.key === wanted));
  const labels = volume.metadata.labels ?? {};
  const isOld =
    !names(ZONE) && (names(OLD_ZONE) || (labels[ZONE] === undefined && OLD_ZONE in labels));
  const zone = isOld ? OLD_ZONE : ZONE;
  let found: readonly NodeSelectorTerm[] = terms;
  if (hasValues(terms, zone)) found = renamed(found, zone, key);
  else if (labels[zone] !== undefined) found = added(found, key, labels[zone].split('__'));
  if (isOld && hasValues(found, OLD_REGION)) found = renamed(found, OLD_REGION, REGION);
  if (found === terms) return volume;
  const selector: NodeSelectorObject = { nodeSelectorTerms: found };
  return { ...volume, spec: { ...volume.spec, nodeAffinity: { required: selector } } };
}

function hasValues(terms: readonly NodeSelectorTerm[], key: string): boolean {
  return terms.some(({ matchExpressions }) =>
    (matchExpressions ?? []).some((one) => one.key === key && (one.values ?? []).length > 0),
  );
}

function renamed(
  terms: readonly NodeSelectorTerm[],
  from: string,
  key: string,
): readonly NodeSelectorTerm[] {
  return terms.map((term) => ({
    ...term,
    matchExpressions: (term.matchExpressions ?? []).map((one) =>
      one.key === from ? { ...one, key } : one,
    ),
  }));
}

function added(
  terms: readonly NodeSelectorTerm[],
  key: string,
  zones: readonly string[],
): readonly NodeSelectorTerm[] {
  const values = [...new Set(zones.map((zone) => zone.trim()))].filter((zone) => zone !== '');
  if (values.length === 0) return terms;
  const zone = { key, operator: 'In', values: values.toSorted() };
  return (terms.length === 0 ? [{}] : terms).map((term) => ({
    ...term,
    matchExpressions: [...(term.matchExpressions ?? []), zone],
  }));
}
