/**
 * Extended resources that stand for devices (KEP-5004): what containers ask for by count is given
 * by a class of devices, where the node has no such resource of its own. The claim for it is the
 * scheduler's: it exists from the choice of a node on.
 */
import { ownMember } from '@megaplane/base/members';
import { createHash } from 'node:crypto';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { parseQuantity } from '@megaplane/machinery/quantity';
import type { Container, KubeObject, PodObject } from '../api/objects.ts';
import type { NodeInfo } from '../framework/node-info.ts';
import type { PodInfo } from '../framework/pod-info.ts';
import type { KnownObjects } from '../framework/reservation.ts';
import { isExtended } from '../api/resources.ts';
import type {
  DeviceClassObject,
  DeviceRequest,
  ResourceClaimObject,
} from '../devices/device-objects.ts';

/** Every class stands for a resource of this prefix and its own name. */
const CLASS_PREFIX = 'deviceclass.resource.kubernetes.io/';
export const MADE_CLAIM_ANNOTATION: string = 'resource.kubernetes.io/extended-resource-claim';
/** As errors name a claim that does not exist yet. */
const UNMADE = '<extended-resources>';
/** Longest name of an object that others are named after. */
const BASE_MAX = 58;
const SUFFIX_LENGTH = 5;

/** Which request of the claim serves a resource of a container. */
export interface RequestMapping {
  /** Its place, those that initialize first; classes of pods do not know its name. */
  readonly container: number;
  readonly resourceName: string;
  readonly requestName: string;
}

/** What a node would have to give by devices. */
export interface ExtendedClaim {
  readonly claim: ResourceClaimObject;
  readonly mappings: readonly RequestMapping[];
}

function createdMs({ metadata }: KubeObject): number {
  return Date.parse(metadata.creationTimestamp ?? '') || 0;
}

/** The class that stands for a resource: of several, the newest. */
export function classBehind(
  resource: string,
  known: Pick<KnownObjects, 'object' | 'objects'>,
): DeviceClassObject | undefined {
  if (resource.startsWith(CLASS_PREFIX)) {
    return known.object('DeviceClass', resource.slice(CLASS_PREFIX.length));
  }
  if (!isExtended(resource)) return undefined;
  let found: DeviceClassObject | undefined;
  for (const one of known.objects('DeviceClass') as Iterable<DeviceClassObject>) {
    if (one.spec?.extendedResourceName !== resource) continue;
    const age = found === undefined ? 1 : createdMs(one) - createdMs(found);
    if (age > 0 || (age === 0 && one.metadata.name < (found?.metadata.name ?? ''))) found = one;
  }
  return found;
}

/** Resources that a class stands for. */
export function resourcesBehind({ metadata, spec }: DeviceClassObject): string[] {
  const own = spec?.extendedResourceName ?? '';
  return [`${CLASS_PREFIX}${metadata.name}`, ...(own === '' ? [] : [own])];
}

/** Of what the pod asks for, the resources that classes stand for, each with its class. */
export function backedResources(
  { requests }: Pick<PodInfo, 'requests'>,
  known: Pick<KnownObjects, 'object' | 'objects'>,
): ReadonlyMap<string, DeviceClassObject> {
  const backed = new Map<string, DeviceClassObject>();
  for (const [name, amount] of requests.scalars) {
    const found = amount === 0 ? undefined : classBehind(name, known);
    if (found !== undefined) backed.set(name, found);
  }
  return backed;
}

/** Whether devices have to give a resource, as the node itself has none. */
export function isDelegated(
  resource: string,
  node: NodeInfo,
  backed: ReadonlyMap<string, unknown>,
): boolean {
  return backed.has(resource) && (node.allocatable.scalars.get(resource) ?? 0) <= 0;
}

/** The claim that an earlier try left behind. */
export function leftClaimOf(
  { pod, namespace }: PodInfo,
  known: Pick<KnownObjects, 'objects'>,
): ResourceClaimObject | null {
  for (const claim of known.objects('ResourceClaim') as Iterable<ResourceClaimObject>) {
    const { annotations, ownerReferences = [] } = claim.metadata;
    if (annotations?.[MADE_CLAIM_ANNOTATION] !== 'true' || claim.metadata.namespace !== namespace)
      continue;
    const isOwn = ownerReferences.some(
      ({ name, uid, controller }) =>
        controller === true && name === pod.metadata.name && uid === pod.metadata.uid,
    );
    if (isOwn) return claim;
  }
  return null;
}

/** The claim's name is known before it is made, so that what follows can be said at once. */
function nameOf({ pod }: PodInfo): { readonly generateName: string; readonly name: string } {
  const generateName = `${pod.metadata.name}-extended-resources-`;
  const hash = createHash('sha256').update(pod.metadata.uid ?? '');
  const suffix = BigInt(`0x${hash.digest('hex').slice(0, 16)}`).toString(36);
  const base = generateName.slice(0, BASE_MAX);
  return { generateName, name: `${base}${suffix.slice(0, SUFFIX_LENGTH)}` };
}

/** What devices would have to give the pod on a node; null: nothing. */
export function extendedClaimFor(
  pod: PodInfo,
  node: NodeInfo,
  backed: ReadonlyMap<string, DeviceClassObject>,
): ExtendedClaim | null {
  const names = [...backed.keys()].filter((name) => isDelegated(name, node, backed)).toSorted();
  if (names.length === 0) return null;
  const requests: DeviceRequest[] = [];
  const mappings: RequestMapping[] = [];
  for (const name of names) {
    const shares = new Shares(pod, name, backed.get(name)?.metadata.name ?? '');
    requests.push(...shares.requests);
    mappings.push(...shares.mappings);
  }
  requests.sort((one, other) => (one.name < other.name ? -1 : 1));
  const { name: podName, uid = '' } = pod.pod.metadata;
  const owner = { apiVersion: 'v1', kind: 'Pod', name: podName, uid, controller: true };
  const metadata = {
    namespace: pod.namespace,
    ...nameOf(pod),
    annotations: { [MADE_CLAIM_ANNOTATION]: 'true' },
    ownerReferences: [owner],
  };
  return { claim: { metadata, spec: { devices: { requests } } }, mappings };
}

/** The mappings as the pod's status has them. */
export function namedMappings({ spec }: PodObject, mappings: readonly RequestMapping[]): JsonValue {
  const containers = [...(spec.initContainers ?? []), ...(spec.containers ?? [])];
  return mappings.map(({ container, ...mapping }) => ({
    containerName: containers[container]?.name ?? '',
    ...mapping,
  }));
}

/** The claim as errors of the search for devices name it. */
export function unmade({ claim }: ExtendedClaim): ResourceClaimObject {
  return { ...claim, metadata: { ...claim.metadata, name: UNMADE } };
}

function countOf({ resources }: Container, resource: string): number {
  const parsed = parseQuantity(String(ownMember(resources?.requests, resource) ?? '0'));
  return typeof parsed === 'string' ? 0 : Number(parsed.scaled(0));
}

/** Requests for one resource: containers that run one after another share devices. */
class Shares {
  readonly requests: DeviceRequest[] = [];
  readonly mappings: RequestMapping[] = [];
  readonly #resource: string;
  readonly #className: string;
  /** By place of the container; only what runs to the end. */
  readonly #lasting = new Map<number, DeviceRequest>();

  constructor({ pod }: PodInfo, resource: string, className: string) {
    this.#resource = resource;
    this.#className = className;
    const first = pod.spec.initContainers ?? [];
    const all = [...first, ...(pod.spec.containers ?? [])];
    const isBrief = (container: Container, at: number): boolean =>
      at < first.length && container.restartPolicy !== 'Always';
    for (const [at, container] of all.entries()) {
      if (!isBrief(container, at)) this.#addLasting(at, container);
    }
    this.#addBrief(all, isBrief);
    this.requests.push(...this.#lasting.values());
  }

  #addLasting(at: number, container: Container): void {
    const count = countOf(container, this.#resource);
    if (count === 0) return;
    const request = this.#request(at, container, count);
    this.#lasting.set(at, request);
    this.#map(at, request.name);
  }

  /** Of what ends before others begin only the greatest need counts, beyond what those have. */
  #addBrief(all: readonly Container[], isBrief: (one: Container, at: number) => boolean): void {
    const mapped: { readonly at: number; readonly name: string }[] = [];
    const own: DeviceRequest[] = [];
    for (const [at, container] of all.entries()) {
      let missing = isBrief(container, at) ? countOf(container, this.#resource) : 0;
      for (const [later, { name, exactly }] of this.#lasting) {
        if (missing <= 0) break;
        if (later < at) continue;
        mapped.push({ at, name });
        missing -= exactly?.count ?? 0;
      }
      if (missing <= 0) continue;
      const request = this.#request(at, container, missing);
      mapped.push({ at, name: request.name });
      own.push(request);
    }
    const sizeOf = ({ exactly }: DeviceRequest): number => exactly?.count ?? 0;
    const [most] = own.toSorted((one, other) => sizeOf(other) - sizeOf(one));
    const isOwn = (name: string): boolean => own.some((request) => request.name === name);
    for (const { at, name } of mapped) {
      this.#map(at, most !== undefined && isOwn(name) ? most.name : name);
    }
    if (most !== undefined) this.requests.push(most);
  }

  #request(at: number, { resources }: Container, count: number): DeviceRequest {
    const place = Object.keys(resources?.requests ?? {})
      .toSorted()
      .indexOf(this.#resource);
    const exactly = { deviceClassName: this.#className, allocationMode: 'ExactCount', count };
    return { name: `container-${at}-request-${place}`, exactly };
  }

  #map(container: number, requestName: string): void {
    this.mappings.push({ container, resourceName: this.#resource, requestName });
  }
}
