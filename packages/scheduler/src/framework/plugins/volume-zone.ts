import { ownMember } from '@megaplane/base/members';
import type { Labels } from '../../api/objects.ts';
import type { PodInfo } from '../pod-info.ts';
import { filterEach, SKIP, unresolvable, type Plugin, type PreFilterOutcome } from '../plugin.ts';
import type { Snapshot } from '../snapshot.ts';
import type { StorageClassObject, VolumeObject } from '../volumes.ts';
import { claimOf, classNameOf, hasLabel, notFound, volumesOf } from '../volumes.ts';

const ZONE = 'topology.kubernetes.io/zone';
const REGION = 'topology.kubernetes.io/region';
const BETA_ZONE = 'failure-domain.beta.kubernetes.io/zone';
const BETA_REGION = 'failure-domain.beta.kubernetes.io/region';
const KEYS: readonly string[] = [BETA_ZONE, BETA_REGION, ZONE, REGION];
const SUCCESSOR: Readonly<Record<string, string>> = { [BETA_ZONE]: ZONE, [BETA_REGION]: REGION };
const CONFLICT = unresolvable('node(s) had no available volume zone');

export interface Topology {
  readonly key: string;
  readonly values: ReadonlySet<string>;
}

/** Where a volume says that it is. */
export function topologyLabelsOf(labels: Labels): Topology[] {
  return KEYS.flatMap((key) => {
    const zones = labels[key]?.split('__').map((zone) => zone.trim()) ?? [];
    // What does not read as a list of zones is not looked at.
    return zones.length === 0 || zones.includes('') ? [] : [{ key, values: new Set(zones) }];
  });
}

/** Whether a node with such labels is where volumes are. */
export function isWithin(topologies: readonly Topology[], labels: Labels): boolean {
  // A node that says nothing about zones is in a cluster without any.
  if (!hasLabel(labels, KEYS)) return true;
  return topologies.every(({ key, values }) => {
    const value = ownMember(labels, key) ?? ownMember(labels, ownMember(SUCCESSOR, key) ?? key);
    return value !== undefined && values.has(value);
  });
}

/** Where the volumes of a pod are, or why that cannot be known. */
function topologiesOf(pod: PodInfo, snapshot: Snapshot): Topology[] | string {
  const topologies: Topology[] = [];
  for (const { persistentVolumeClaim } of volumesOf(pod)) {
    if (persistentVolumeClaim === undefined) continue;
    const { claimName } = persistentVolumeClaim;
    const claim = claimOf(snapshot, pod.namespace, claimName);
    if (claim === undefined) return notFound('persistentvolumeclaim', claimName);
    const volumeName = claim.spec?.volumeName ?? '';
    if (volumeName === '') {
      const className = classNameOf(claim);
      if (className === '') return 'PersistentVolumeClaim had no pv name and storageClass name';
      const storageClass: StorageClassObject | undefined = snapshot.object(
        'StorageClass',
        className,
      );
      if (storageClass === undefined) return notFound('storageclass.storage.k8s.io', className);
      if (storageClass.volumeBindingMode === undefined) {
        return `VolumeBindingMode not set for StorageClass "${className}"`;
      }
      if (storageClass.volumeBindingMode === 'WaitForFirstConsumer') continue;
      return 'PersistentVolume had no name';
    }
    const volume: VolumeObject | undefined = snapshot.object('PersistentVolume', volumeName);
    if (volume === undefined) return notFound('persistentvolume', volumeName);
    topologies.push(...topologyLabelsOf(volume.metadata.labels ?? {}));
  }
  return topologies;
}

export const volumeZone: Plugin = {
  name: 'VolumeZone',
  preFilter(pod, snapshot): PreFilterOutcome {
    const topologies = topologiesOf(pod, snapshot);
    if (typeof topologies === 'string') {
      return { kind: 'rejected', rejection: unresolvable(topologies) };
    }
    if (topologies.length === 0) return SKIP;
    return filterEach(({ labels }) => (isWithin(topologies, labels) ? null : CONFLICT));
  },
};
