/** Writes that bind the claims of a pod to volumes, or ask for volumes to be made near its node. */
import { isObject, type JsonObject } from '@megaplane/machinery/json-value';
import type { NodeInfo } from '../node-info.ts';
import { keyOf } from '../../api/objects.ts';
import type { KnownObjects, ObjectWrite, Reservation } from '../reservation.ts';
import { isFor } from '../volume-matching.ts';
import type { KubeObject } from '../../api/objects.ts';
import { isReachableOn } from '../volume-topology.ts';
import { isBound, type ClaimObject, type VolumeObject } from '../volumes.ts';

/** The node near which a provisioner is to make the volume of a claim. */
export const SELECTED_NODE = 'volume.kubernetes.io/selected-node';
const BOUND_BY_CONTROLLER = 'pv.kubernetes.io/bound-by-controller';
const VOLUME = 'PersistentVolume';
const CLAIM = 'PersistentVolumeClaim';

/** What a pod needs on one node. */
export interface VolumePlan {
  readonly matches: readonly { readonly claim: ClaimObject; readonly volume: VolumeObject }[];
  readonly provisions: readonly ClaimObject[];
}

function annotated(object: JsonObject, key: string, value: string): JsonObject {
  const metadata = isObject(object['metadata']) ? object['metadata'] : {};
  const annotations = isObject(metadata['annotations']) ? metadata['annotations'] : {};
  return { ...object, metadata: { ...metadata, annotations: { ...annotations, [key]: value } } };
}

function withClaim(volume: JsonObject, { metadata }: ClaimObject): JsonObject {
  const { namespace = 'default', name, uid, resourceVersion } = metadata;
  const spec = isObject(volume['spec']) ? volume['spec'] : {};
  const before = isObject(spec['claimRef']) ? spec['claimRef'] : null;
  const claimRef: JsonObject = {
    kind: CLAIM,
    namespace,
    name,
    ...(uid === undefined ? {} : { uid }),
    apiVersion: 'v1',
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  };
  const bound = { ...volume, spec: { ...spec, claimRef } };
  // Who prepared the volume for the claim keeps it after the claim is gone.
  return before === null ? annotated(bound, BOUND_BY_CONTROLLER, 'yes') : bound;
}

function isDone(volume: VolumeObject, claim: ClaimObject): boolean {
  const uid = volume.spec?.claimRef?.uid ?? '';
  return isFor(volume, claim) && uid !== '' && uid === claim.metadata.uid;
}

function matchWrite(claim: ClaimObject, { metadata }: VolumeObject): ObjectWrite {
  return {
    kind: VOLUME,
    key: metadata.name,
    path: `/api/v1/persistentvolumes/${metadata.name}`,
    subresource: '',
    about: '',
    change: (object) => {
      const volume = object as unknown as VolumeObject;
      if (isDone(volume, claim)) return null;
      if (volume.spec?.claimRef === undefined || isFor(volume, claim)) {
        return withClaim(object, claim);
      }
      const { namespace = '', name = '' } = volume.spec.claimRef;
      return `pv "${metadata.name}" was bound to claim ${namespace}/${name} in the meantime`;
    },
  };
}

function provisionWrite(claim: ClaimObject, node: string): ObjectWrite {
  const { namespace = 'default', name } = claim.metadata;
  return {
    kind: CLAIM,
    key: keyOf(claim),
    path: `/api/v1/namespaces/${namespace}/persistentvolumeclaims/${name}`,
    subresource: '',
    about: '',
    change: (object) => {
      const { metadata, spec } = object as unknown as ClaimObject;
      const isTold = metadata.annotations?.[SELECTED_NODE] === node;
      if (isTold || (spec?.volumeName ?? '') !== '') return null;
      return annotated(object, SELECTED_NODE, node);
    },
  };
}

/** Null where nothing is to be bound. */
export function volumeReservation(
  { matches, provisions }: VolumePlan,
  node: NodeInfo,
  timeoutMs: number,
): Reservation | null {
  if (matches.length + provisions.length === 0) return null;
  const assumed = [
    ...matches.map(({ volume, claim }) => {
      const bound = withClaim(volume as unknown as JsonObject, claim);
      return { ...bound, kind: VOLUME } as unknown as VolumeObject;
    }),
    ...provisions.map((claim) => {
      const told = annotated(claim as unknown as JsonObject, SELECTED_NODE, node.name);
      return { ...told, kind: CLAIM } as unknown as ClaimObject;
    }),
  ];
  return {
    plugin: 'VolumeBinding',
    assumed,
    pending: [],
    writes: [
      ...matches.map(({ claim, volume }) => matchWrite(claim, volume)),
      ...provisions.map((claim) => provisionWrite(claim, node.name)),
    ],
    isReady: (objects) => {
      const state = stateOf({ matches, provisions }, node, objects);
      return typeof state === 'string' ? `binding volumes: ${state}` : state;
    },
    timeoutMs,
    timeoutText: 'binding volumes: context deadline exceeded',
    undo: [],
    waitingText: '',
    outcome: assumed,
  };
}

/** Whether all is bound; a text where it will not be. */
function stateOf(plan: VolumePlan, node: NodeInfo, objects: KnownObjects): boolean | string {
  const csiNode: KubeObject | undefined = objects.object('CSINode', node.name);
  for (const { claim, volume } of plan.matches) {
    const { name } = volume.metadata;
    const volumeNow: VolumeObject | undefined = objects.object(VOLUME, name);
    const claimNow: ClaimObject | undefined = objects.object(CLAIM, keyOf(claim));
    if (volumeNow === undefined)
      return `failed to check binding: could not find v1.${VOLUME} "${name}"`;
    if (claimNow === undefined) {
      return `failed to check binding: could not find v1.${CLAIM} "${keyOf(claim)}"`;
    }
    if (!isReachableOn(volumeNow, node, csiNode)) return affinityText(name, node);
    if ((volumeNow.spec?.claimRef?.uid ?? '') === '') return `ClaimRef got reset for pv "${name}"`;
    if (!isBound(claimNow)) return false;
  }
  for (const claim of plan.provisions) {
    const now: ClaimObject | undefined = objects.object(CLAIM, keyOf(claim));
    if (now === undefined) {
      return `failed to check provisioning pvc: could not find v1.${CLAIM} "${keyOf(claim)}"`;
    }
    const { name, annotations } = now.metadata;
    if (annotations === undefined) return `selectedNode annotation reset for PVC "${name}"`;
    if (annotations[SELECTED_NODE] !== node.name) return `provisioning failed for PVC "${name}"`;
    const volumeName = now.spec?.volumeName ?? '';
    const made: VolumeObject | undefined = objects.object(VOLUME, volumeName);
    if (volumeName !== '' && made === undefined) return false;
    if (made !== undefined && !isReachableOn(made, node, csiNode)) {
      return affinityText(volumeName, node);
    }
    if (!isBound(now)) return false;
  }
  return true;
}

function affinityText(volume: string, { name }: NodeInfo): string {
  const why = 'no matching NodeSelectorTerms';
  return `pv "${volume}" node affinity doesn't match node "${name}": ${why}`;
}
