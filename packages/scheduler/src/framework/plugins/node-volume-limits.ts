import type { NodeInfo } from '../node-info.ts';
import type { PodInfo } from '../pod-info.ts';
import { filterEach, SKIP, unresolvable, unschedulable, type Plugin } from '../plugin.ts';
import type { PreFilterOutcome, Rejection } from '../plugin.ts';
import type { Snapshot } from '../snapshot.ts';
import {
  attachableOfSources,
  driverOfProvisioner,
  isBuiltIn,
  migrationKey,
  migrationOf,
  type Attachable,
  type Migration,
} from '../../api/volume-migration.ts';
import type { ClaimObject, StorageClassObject, VolumeObject } from '../volumes.ts';
import { claimNameOf, claimOf, classNameOf, notFound, ownershipError } from '../volumes.ts';
import { volumesOf } from '../volumes.ts';
import { type CsiNodeObject, type AttachmentObject, limitsOf } from '../attach-limits.ts';

const EXCEEDED = unschedulable('node(s) exceed max volume count');

/** What a claim stands for, once it has a volume or will have one; empty driver: not counted. */
function attachableOf(
  snapshot: Snapshot,
  claim: ClaimObject,
  isMigrated: Migration,
): Attachable | null {
  const volume: VolumeObject | undefined = snapshot.object(
    'PersistentVolume',
    claim.spec?.volumeName ?? '',
  );
  if (volume !== undefined) {
    const labels = volume.metadata.labels ?? {};
    const found = attachableOfSources(volume.spec ?? {}, labels, isMigrated);
    return typeof found === 'string' ? null : found;
  }
  // What is not there yet will be made by the provisioner of the class, one volume per claim.
  const storageClass: StorageClassObject | undefined = snapshot.object(
    'StorageClass',
    classNameOf(claim),
  );
  const { namespace = '', name } = claim.metadata;
  const driver = driverOfProvisioner(storageClass?.provisioner ?? '', isMigrated);
  return { driver, handle: `unbound ${namespace}/${name}` };
}

/** Adds the volumes of a pod, by unique name, to `found`; a rejection says what is wrong. */
function collect(
  snapshot: Snapshot,
  pod: PodInfo,
  isNew: boolean,
  isMigrated: Migration,
  found: Map<string, string>,
): Rejection | null {
  const add = (attachable: Attachable | null): void => {
    const { driver, handle } = attachable ?? { driver: '', handle: '' };
    if (driver !== '' && handle !== '') found.set(`${driver}/${handle}`, driver);
  };
  for (const volume of volumesOf(pod)) {
    const name = claimNameOf(pod, volume);
    if (name === '') {
      if (!isBuiltIn(volume)) continue;
      const inline = attachableOfSources(volume, {}, isMigrated);
      if (typeof inline === 'string') {
        const text = `converting volume(${volume.name}) from inline to csi: ${inline}`;
        return { code: 'error', reasons: [text] };
      }
      add(inline);
      continue;
    }
    const claim = claimOf(snapshot, pod.namespace, name);
    if (claim === undefined) {
      if (isNew) return unresolvable(notFound('persistentvolumeclaim', name));
      continue;
    }
    if (volume.ephemeral !== undefined && ownershipError(pod, claim) !== '') {
      return { code: 'error', reasons: [ownershipError(pod, claim)] };
    }
    add(attachableOf(snapshot, claim, isMigrated));
  }
  return null;
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
    const attacher = spec?.attacher ?? '';
    if (csi !== undefined && attacher !== '') {
      found.set(`${attacher}/${csi.volumeHandle}`, attacher);
    }
  }
}

export class NodeVolumeLimits implements Plugin {
  readonly name = 'NodeVolumeLimits';
  readonly #isMigrationAssumed: boolean;

  /** `isMigrationAssumed`: see `migrationOf`. */
  constructor(isMigrationAssumed: boolean) {
    this.#isMigrationAssumed = isMigrationAssumed;
  }

  preFilter(pod: PodInfo, snapshot: Snapshot): PreFilterOutcome {
    const isCounted = volumesOf(pod).some(
      (volume) => claimNameOf(pod, volume) !== '' || isBuiltIn(volume),
    );
    if (!isCounted) return SKIP;
    const attachments = attachmentsOf(snapshot);
    const wanted = new WantedVolumes(pod, snapshot);
    return filterEach((node) => this.#limit(wanted, snapshot, attachments, node));
  }

  #limit(
    pod: WantedVolumes,
    snapshot: Snapshot,
    attachments: Attachments,
    node: NodeInfo,
  ): Rejection | null {
    const csiNode: CsiNodeObject | undefined = snapshot.object('CSINode', node.name);
    const isMigrated = migrationOf(csiNode, this.#isMigrationAssumed);
    const { wrong, volumes } = pod.under(migrationKey(csiNode), isMigrated);
    if (wrong !== null) return wrong;
    const limits = limitsOf(csiNode);
    if (volumes.size === 0 || limits.size === 0) return null;
    const attached = new Map<string, string>();
    for (const existing of node.pods) {
      const fault = collect(snapshot, existing, false, isMigrated, attached);
      if (fault !== null) return fault;
    }
    const wanted = new Map(volumes);
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
}

interface Wanted {
  readonly wrong: Rejection | null;
  readonly volumes: ReadonlyMap<string, string>;
}

/** The volumes of a pod: nodes differ in which of them are left to drivers, in two ways mostly. */
class WantedVolumes {
  readonly #pod: PodInfo;
  readonly #snapshot: Snapshot;
  readonly #byMigration = new Map<string, Wanted>();

  constructor(pod: PodInfo, snapshot: Snapshot) {
    this.#pod = pod;
    this.#snapshot = snapshot;
  }

  under(key: string, isMigrated: Migration): Wanted {
    let wanted = this.#byMigration.get(key);
    if (wanted === undefined) {
      const volumes = new Map<string, string>();
      const wrong = collect(this.#snapshot, this.#pod, true, isMigrated, volumes);
      this.#byMigration.set(key, (wanted = { wrong, volumes }));
    }
    return wanted;
  }
}
