/**
 * Whether a pod may run on a node beside others, worked out anew from the objects: only rules by
 * which fewer neighbours are never worse, so that the order of events does not matter.
 */
import type { AllocatedDevice } from '../devices/device-objects.ts';
import type { KubeObject, NodeObject, PodObject } from '../api/objects.ts';
import type { ClaimObject, VolumeObject } from '../framework/volumes.ts';

export const ZONE = 'topology.kubernetes.io/zone';
/** Devices of each node. */
export const DEVICES = 2;

export interface DeviceClaim extends KubeObject {
  readonly status?: {
    readonly allocation?: {
      readonly devices: { readonly results?: readonly AllocatedDevice[] };
      readonly nodeSelector?: object;
    };
    readonly reservedFor?: readonly { readonly uid: string }[];
  };
}

/** Objects as somebody knows them. */
export interface Sight {
  get<T extends KubeObject>(kind: string, key: string): T | undefined;
  all<T extends KubeObject>(kind: string): T[];
}

export function requestOf({ spec }: PodObject, resource: string): number {
  const containers = spec.containers ?? [];
  return containers.reduce(
    (sum, { resources }) => sum + Number(resources?.requests?.[resource] ?? 0),
    0,
  );
}

export function nodeOf({ spec }: PodObject): string {
  return spec.nodeName ?? '';
}

export function priorityOf({ spec }: PodObject): number {
  return spec.priority ?? 0;
}

function portsOf({ spec }: PodObject): number[] {
  return (spec.containers ?? []).flatMap(({ ports = [] }) => ports.map((p) => p.hostPort ?? 0));
}

function appOf({ metadata }: PodObject): string {
  return metadata.labels?.['app'] ?? '';
}

function isShy({ spec }: PodObject): boolean {
  return spec.affinity?.podAntiAffinity !== undefined;
}

/** Empty where the pod may run beside `others`. */
export function obstacle(pod: PodObject, node: NodeObject, others: readonly PodObject[]): string {
  const tolerates = (pod.spec.tolerations ?? []).map(({ key }) => key);
  const isTainted = (node.spec?.taints ?? []).some(({ key }) => !tolerates.includes(key));
  if (node.spec?.unschedulable === true || isTainted) return 'not for it';
  const { labels = {} } = node.metadata;
  const wanted = Object.entries(pod.spec.nodeSelector ?? {});
  if (wanted.some(([key, value]) => labels[key] !== value)) return 'elsewhere';
  for (const resource of ['cpu', 'memory', 'example.com/gpu']) {
    const asked = requestOf(pod, resource);
    const used = others.reduce((sum, other) => sum + requestOf(other, resource), 0);
    const left = Number(node.status?.allocatable?.[resource] ?? 0) - used;
    if (asked > 0 && asked > left) return `too little ${resource}: ${asked} of ${left}`;
  }
  if (others.length >= Number(node.status?.allocatable?.['pods'] ?? 0)) return 'too many pods';
  const ports = portsOf(pod);
  if (others.some((other) => portsOf(other).some((port) => ports.includes(port)))) return 'port';
  const shuns = others.some((other) => appOf(other) === appOf(pod) && (isShy(other) || isShy(pod)));
  return shuns && appOf(pod) !== '' ? 'a pod that it shuns' : '';
}

/** The claims for disks that a pod names. */
export function diskClaims(pod: PodObject, sight: Sight): (ClaimObject | undefined)[] {
  return (pod.spec.volumes ?? []).flatMap(({ persistentVolumeClaim: source }) =>
    source === undefined ? [] : [sight.get<ClaimObject>(CLAIM, `default/${source.claimName}`)],
  );
}

export function deviceClaims(pod: PodObject, sight: Sight): (DeviceClaim | undefined)[] {
  return (pod.spec.resourceClaims ?? []).map(({ resourceClaimName = '' }) =>
    sight.get<DeviceClaim>('ResourceClaim', `default/${resourceClaimName}`),
  );
}

export const CLAIM = 'PersistentVolumeClaim';
export const VOLUME = 'PersistentVolume';

/** Nodes' zone that a disk can be reached from. */
export function zoneOf(volume: VolumeObject | undefined): string {
  const [term] = volume?.spec?.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  return term?.matchExpressions?.[0]?.values?.[0] ?? '';
}

export function resultsOf(claim: DeviceClaim | undefined): readonly AllocatedDevice[] {
  return claim?.status?.allocation?.devices.results ?? [];
}

/** Whether disks and devices of the pod are on the node, or could be. */
export function hasThings(pod: PodObject, node: NodeObject, sight: Sight): boolean {
  const { name, labels = {} } = node.metadata;
  for (const claim of diskClaims(pod, sight)) {
    if (claim === undefined || claim.metadata.deletionTimestamp !== undefined) return false;
    const volumeName = claim.spec?.volumeName ?? '';
    if (volumeName === '') continue;
    const volume = sight.get<VolumeObject>(VOLUME, volumeName);
    if (volume === undefined || zoneOf(volume) !== labels[ZONE]) return false;
  }
  const claims = deviceClaims(pod, sight);
  if (claims.includes(undefined)) return false;
  const taken = sight
    .all<DeviceClaim>('ResourceClaim')
    .flatMap(resultsOf)
    .filter(({ pool }) => pool === name);
  const open = claims.filter((claim) => resultsOf(claim).length === 0);
  const isSliced = sight.get('ResourceSlice', `slice-${name}`) !== undefined;
  if (open.length > 0 && (!isSliced || DEVICES - taken.length < open.length)) return false;
  return claims.every((claim) => resultsOf(claim).every(({ pool }) => pool === name));
}
