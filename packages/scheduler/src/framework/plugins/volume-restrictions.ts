import type { NodeInfo } from '../node-info.ts';
import type { Volume } from '../../api/objects.ts';
import type { PodInfo } from '../pod-info.ts';
import type { Filter, Plugin, PreFilterOutcome, Rejection, Tally } from '../plugin.ts';
import { SKIP, unresolvable, unschedulable } from '../plugin.ts';
import type { Snapshot } from '../snapshot.ts';
import { claimOf, notFound, volumesOf, type ClaimObject } from '../volumes.ts';

const CONFLICT = unschedulable('node(s) had no available disk');
const IN_USE = unschedulable(
  'node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already ' +
    'in-use by another pod',
);

function areReadOnly(one: { readOnly?: boolean }, other: { readOnly?: boolean }): boolean {
  return one.readOnly === true && other.readOnly === true;
}

function isRestricted(volume: Volume): boolean {
  const { gcePersistentDisk, awsElasticBlockStore, iscsi, rbd } = volume;
  return [gcePersistentDisk, awsElasticBlockStore, iscsi, rbd].some((disk) => disk !== undefined);
}

/** Whether two volumes are one disk that only one pod of a node may use. */
function conflicts(one: Volume, other: Volume): boolean {
  const [gce, otherGce] = [one.gcePersistentDisk, other.gcePersistentDisk];
  if (gce !== undefined && otherGce !== undefined && gce.pdName === otherGce.pdName) {
    if (!areReadOnly(gce, otherGce)) return true;
  }
  const volumeId = one.awsElasticBlockStore?.volumeID;
  if (volumeId !== undefined && volumeId === other.awsElasticBlockStore?.volumeID) return true;
  const [iscsi, otherIscsi] = [one.iscsi, other.iscsi];
  if (iscsi !== undefined && otherIscsi !== undefined && iscsi.iqn === otherIscsi.iqn) {
    if (!areReadOnly(iscsi, otherIscsi)) return true;
  }
  const [rbd, otherRbd] = [one.rbd, other.rbd];
  if (rbd === undefined || otherRbd === undefined) return false;
  const sharesMonitor = rbd.monitors.some((monitor) => otherRbd.monitors.includes(monitor));
  const isSame = (rbd.pool ?? '') === (otherRbd.pool ?? '') && rbd.image === otherRbd.image;
  return sharesMonitor && isSame && !areReadOnly(rbd, otherRbd);
}

/** Whether two pods use one disk that only one pod of a node may use. */
export function sharesDisk(pod: PodInfo, other: PodInfo): boolean {
  const own = volumesOf(pod);
  return volumesOf(other).some((volume) => own.some((wanted) => conflicts(wanted, volume)));
}

export function usedClaims(pod: PodInfo): string[] {
  return volumesOf(pod).flatMap(({ persistentVolumeClaim }) =>
    persistentVolumeClaim === undefined ? [] : [persistentVolumeClaim.claimName],
  );
}

class DiskFilter implements Filter {
  readonly #pod: PodInfo;
  /** Claims of the pod that are for one pod only. */
  readonly #exclusive: ReadonlySet<string>;
  #users: number;

  constructor(pod: PodInfo, exclusive: ReadonlySet<string>, users: number) {
    this.#pod = pod;
    this.#exclusive = exclusive;
    this.#users = users;
  }

  filter(node: NodeInfo): Rejection | null {
    if (node.pods.some((pod) => sharesDisk(this.#pod, pod))) return CONFLICT;
    return this.#users > 0 ? IN_USE : null;
  }

  addPod(pod: PodInfo): void {
    this.#users += this.#uses(pod);
  }

  removePod(pod: PodInfo): void {
    this.#users -= this.#uses(pod);
  }

  clone(): DiskFilter {
    return new DiskFilter(this.#pod, this.#exclusive, this.#users);
  }

  #uses(pod: PodInfo): number {
    if (pod.namespace !== this.#pod.namespace) return 0;
    return usedClaims(pod).filter((name) => this.#exclusive.has(name)).length;
  }
}

/** Claims of a namespace, of those that are for one pod only, that pods on nodes use: a set. */
function tallyUsed(pod: PodInfo, exclusive: ReadonlySet<string>, snapshot: Snapshot): Tally {
  const taken = new Map<string, number>();
  for (const node of exclusive.size === 0 ? [] : snapshot.nodes) {
    for (const other of node.pods) {
      if (other.namespace !== pod.namespace) continue;
      for (const name of usedClaims(other)) if (exclusive.has(name)) taken.set(name, 1);
    }
  }
  return taken;
}

function isExclusive(claim: ClaimObject | undefined): boolean {
  return claim?.spec?.accessModes?.includes('ReadWriteOncePod') === true;
}

export const volumeRestrictions: Plugin = {
  name: 'VolumeRestrictions',

  tally(pod: PodInfo, snapshot: Snapshot): Tally | null {
    const names = usedClaims(pod).filter((name) =>
      isExclusive(claimOf(snapshot, pod.namespace, name)),
    );
    return names.length === 0 ? null : tallyUsed(pod, new Set(names), snapshot);
  },

  preFilter(pod: PodInfo, snapshot: Snapshot, tally?: Tally): PreFilterOutcome {
    const exclusive = new Set<string>();
    for (const name of usedClaims(pod)) {
      const claim = claimOf(snapshot, pod.namespace, name);
      if (claim === undefined) {
        const text = notFound('persistentvolumeclaim', name);
        return { kind: 'rejected', rejection: unresolvable(text) };
      }
      if (isExclusive(claim)) exclusive.add(name);
    }
    const taken = tally ?? tallyUsed(pod, exclusive, snapshot);
    if (taken.size === 0 && !volumesOf(pod).some(isRestricted)) return SKIP;
    return { kind: 'run', filter: new DiskFilter(pod, exclusive, taken.size) };
  },
};
