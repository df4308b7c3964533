import type { NodeInfo } from '../node-info.ts';
import type { KubeObject, LabelSelectorObject, Volume } from '../../api/objects.ts';
import { selectorOf, selects, type PodInfo } from '../pod-info.ts';
import { SKIP, unresolvable } from '../plugin.ts';
import type { Filter, Plugin, PreFilterOutcome, Rejection } from '../plugin.ts';
import type { KnownObjects, Reservation } from '../reservation.ts';
import type { Snapshot } from '../snapshot.ts';
import type { ClaimObject, StorageClassObject, VolumeObject } from '../volumes.ts';
import { MatchingVolumes } from '../volume-matching.ts';
import { SELECTED_NODE, volumeReservation, type VolumePlan } from './volume-reservation.ts';
import {
  bytesOf,
  claimBytes,
  claimNameOf,
  claimOf,
  classNameOf,
  isBound,
  isDelayed,
} from '../volumes.ts';
import { isReachableOn, translationErrorOn } from '../volume-topology.ts';
import { notFound, ownershipError, volumesOf } from '../volumes.ts';

export interface CsiDriverObject extends KubeObject {
  readonly spec?: { readonly storageCapacity?: boolean };
}

export interface CapacityObject extends KubeObject {
  readonly storageClassName?: string;
  readonly capacity?: string;
  readonly maximumVolumeSize?: string;
  readonly nodeTopology?: LabelSelectorObject;
}

const UNREACHABLE = "node(s) didn't match PersistentVolume's node affinity";
const NONE_AVAILABLE = "node(s) didn't find available persistent volumes to bind";
const NO_SPACE = 'node(s) did not have enough free storage';
const MISSING = 'node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)';
/** Of volumes that nobody makes. */
export const NO_PROVISIONER = 'kubernetes.io/no-provisioner';

interface Claims {
  readonly bound: ClaimObject[];
  readonly delayed: ClaimObject[];
}

/** Claims whose class does not say when to bind: the API server completes classes. */
function modeProblem(claim: ClaimObject, snapshot: Snapshot): Rejection | null {
  const name = classNameOf(claim);
  const storageClass: StorageClassObject | undefined = snapshot.object('StorageClass', name);
  if (storageClass === undefined || storageClass.volumeBindingMode !== undefined) return null;
  return { code: 'error', reasons: [`VolumeBindingMode not set for StorageClass "${name}"`] };
}

/** Why a pod cannot have one of its claims; empty if nothing is in the way. */
function claimProblem(pod: PodInfo, volume: Volume, snapshot: Snapshot): string {
  const name = claimNameOf(pod, volume);
  const claim = claimOf(snapshot, pod.namespace, name);
  const isEphemeral = volume.ephemeral !== undefined;
  if (claim === undefined) {
    if (!isEphemeral) return notFound('persistentvolumeclaim', name);
    const controller = 'waiting for ephemeral volume controller to create the';
    return `${controller} persistentvolumeclaim "${name}"`;
  }
  if (claim.status?.phase === 'Lost') {
    const volumeName = claim.spec?.volumeName ?? '';
    return `persistentvolumeclaim "${name}" bound to non-existent persistentvolume "${volumeName}"`;
  }
  if (claim.metadata.deletionTimestamp !== undefined) {
    return `persistentvolumeclaim "${name}" is being deleted`;
  }
  return isEphemeral ? ownershipError(pod, claim) : '';
}

/** The claims of a pod, or why it cannot have them. */
function claimsOf(pod: PodInfo, snapshot: Snapshot): Claims | Rejection | string {
  const volumes = volumesOf(pod).filter((volume) => claimNameOf(pod, volume) !== '');
  for (const volume of volumes) {
    const problem = claimProblem(pod, volume, snapshot);
    if (problem !== '') return problem;
  }
  const claims: Claims = { bound: [], delayed: [] };
  let isWaiting = false;
  for (const volume of volumes) {
    const claim = claimOf(snapshot, pod.namespace, claimNameOf(pod, volume));
    if (claim === undefined) continue;
    const unclear = isBound(claim) ? null : modeProblem(claim, snapshot);
    if (unclear !== null) return unclear;
    const isFree = (claim.spec?.volumeName ?? '') === '' && isDelayed(snapshot, claim);
    if (isBound(claim)) claims.bound.push(claim);
    else if (isFree) claims.delayed.push(claim);
    else isWaiting = true;
  }
  return isWaiting ? 'pod has unbound immediate PersistentVolumeClaims' : claims;
}

type Labelled = Pick<NodeInfo, 'labels'>;

function isAllowed({ allowedTopologies = [] }: StorageClassObject, node: Labelled): boolean {
  if (allowedTopologies.length === 0) return true;
  return allowedTopologies.some(({ matchLabelExpressions = [] }) =>
    matchLabelExpressions.every(({ key, values }) => values.includes(node.labels[key] ?? '')),
  );
}

/** Whether it matters how much space the driver of a class tells of. */
export function tellsSpace(
  { provisioner = '' }: StorageClassObject,
  objects: Pick<Snapshot, 'object'>,
): boolean {
  const driver: CsiDriverObject | undefined = objects.object('CSIDriver', provisioner);
  return driver?.spec?.storageCapacity === true;
}

/** Whether a driver that tells its free space has enough of it for a claim. */
function hasSpace(
  claim: ClaimObject,
  storageClass: StorageClassObject,
  node: Labelled,
  snapshot: KnownObjects,
): boolean {
  if (!tellsSpace(storageClass, snapshot)) return true;
  const { metadata } = storageClass;
  for (const space of snapshot.objects('CSIStorageCapacity') as Iterable<CapacityObject>) {
    const limit = space.maximumVolumeSize ?? space.capacity;
    if (space.storageClassName !== metadata.name || limit === undefined) continue;
    if (space.nodeTopology === undefined || bytesOf(limit) < claimBytes(claim)) continue;
    if (selects(selectorOf(space.nodeTopology), node.labels)) return true;
  }
  return false;
}

/** What a node lacks, and what would be bound on one that lacks nothing. */
type Planned = VolumePlan | { readonly rejection: Rejection };

class VolumeFilter implements Filter {
  readonly #claims: Claims;
  readonly #snapshot: Snapshot;
  readonly #timeoutMs: number;
  readonly #matching: ReadonlyMap<ClaimObject, MatchingVolumes>;
  readonly #plans = new Map<string, VolumePlan>();

  constructor(claims: Claims, snapshot: Snapshot, timeoutMs: number) {
    this.#claims = claims;
    this.#snapshot = snapshot;
    this.#timeoutMs = timeoutMs;
    this.#matching = new Map(
      claims.delayed
        .filter(({ metadata }) => metadata.annotations?.[SELECTED_NODE] === undefined)
        .toSorted(bySize)
        .map((claim) => [claim, new MatchingVolumes(claim, snapshot)]),
    );
  }

  filter(node: NodeInfo): Rejection | null {
    const bound = this.#boundProblem(node);
    if (typeof bound !== 'string') return bound;
    const plan = this.#plan(node);
    const problems = 'rejection' in plan ? plan.rejection : null;
    if (problems?.code === 'error') return problems;
    const reasons = [...(bound === '' ? [] : [bound]), ...(problems?.reasons ?? [])];
    if (reasons.length > 0) return unresolvable(...reasons);
    if ('matches' in plan && plan.matches.length + plan.provisions.length > 0) {
      this.#plans.set(node.name, plan);
    }
    return null;
  }

  reserve(node: NodeInfo): Reservation | Rejection | null {
    if (this.#claims.delayed.length === 0) return null;
    const plan = this.#plans.get(node.name);
    if (plan !== undefined) return volumeReservation(plan, node, this.#timeoutMs);
    return { code: 'error', reasons: [`no pod volume found for node "${node.name}"`] };
  }

  /** The first of the bound claims whose volume is not for this node. */
  #boundProblem(node: NodeInfo): Rejection | string {
    const csiNode: KubeObject | undefined = this.#snapshot.object('CSINode', node.name);
    for (const { spec } of this.#claims.bound) {
      const name = spec?.volumeName ?? '';
      const volume: VolumeObject | undefined = this.#snapshot.object('PersistentVolume', name);
      if (volume === undefined) return MISSING;
      const error = translationErrorOn(volume, csiNode);
      if (error !== '') return { code: 'error', reasons: [`could not translate pv: ${error}`] };
      if (!isReachableOn(volume, node, csiNode)) return UNREACHABLE;
    }
    return '';
  }

  #plan(node: NodeInfo): Planned {
    const toProvision: ClaimObject[] = [];
    for (const claim of this.#claims.delayed) {
      const selected = claim.metadata.annotations?.[SELECTED_NODE];
      if (selected === undefined) continue;
      if (selected !== node.name) return { rejection: unresolvable(NONE_AVAILABLE) };
      toProvision.push(claim);
    }
    const matches: { claim: ClaimObject; volume: VolumeObject }[] = [];
    const taken = new Set<string>();
    for (const [claim, matching] of this.#matching) {
      const volume = matching.find(node, taken);
      if (volume === null) {
        toProvision.push(claim);
        continue;
      }
      taken.add(volume.metadata.name);
      matches.push({ claim, volume });
    }
    for (const claim of toProvision) {
      const rejection = provisioningProblem(claim, node, this.#snapshot);
      if (rejection !== null) return { rejection };
    }
    return { matches, provisions: toProvision };
  }
}

function bySize(left: ClaimObject, right: ClaimObject): number {
  const [one, other] = [claimBytes(left), claimBytes(right)];
  return one < other ? -1 : one > other ? 1 : 0;
}

/** Why a volume for a claim cannot be made for a node; null if it can be. */
export function provisioningProblem(
  claim: ClaimObject,
  node: Labelled,
  snapshot: KnownObjects,
): Rejection | null {
  const name = classNameOf(claim);
  const storageClass: StorageClassObject | undefined = snapshot.object('StorageClass', name);
  if (storageClass === undefined) {
    return { code: 'error', reasons: [`failed to find storage class "${name}"`] };
  }
  const { provisioner = '' } = storageClass;
  if (provisioner === '' || provisioner === NO_PROVISIONER || !isAllowed(storageClass, node)) {
    return unresolvable(NONE_AVAILABLE);
  }
  return hasSpace(claim, storageClass, node, snapshot) ? null : unresolvable(NO_SPACE);
}

export interface VolumeBindingArgs {
  /** Longest wait for claims to be bound. */
  readonly bindTimeoutSeconds?: number | bigint;
}

const BIND_TIMEOUT_SECONDS = 600;

export class VolumeBinding implements Plugin {
  readonly name = 'VolumeBinding';
  readonly #timeoutMs: number;

  constructor(args: VolumeBindingArgs) {
    this.#timeoutMs = Number(args.bindTimeoutSeconds ?? BIND_TIMEOUT_SECONDS) * 1000;
  }

  /** What is to be done for a pod whose claims all get new volumes. */
  provision(claims: readonly ClaimObject[], node: NodeInfo): Reservation | null {
    const provisions = claims.toSorted(bySize);
    return volumeReservation({ matches: [], provisions }, node, this.#timeoutMs);
  }

  preFilter(pod: PodInfo, snapshot: Snapshot): PreFilterOutcome {
    const claims = claimsOf(pod, snapshot);
    if (typeof claims === 'string') return { kind: 'rejected', rejection: unresolvable(claims) };
    if ('code' in claims) return { kind: 'rejected', rejection: claims };
    if (claims.bound.length + claims.delayed.length === 0) return SKIP;
    return { kind: 'run', filter: new VolumeFilter(claims, snapshot, this.#timeoutMs) };
  }
}
