/** Writes that give claims to a pod, and take them away again. */
import { ownMember } from '@megaplane/base/members';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import type { PodInfo } from '../framework/pod-info.ts';
import { namedMappings, type ExtendedClaim } from './extended-resources.ts';
import type { PodObject } from '../api/objects.ts';
import type { KnownObjects, ObjectWrite, Reservation } from '../framework/reservation.ts';
import { ALLOCATING_CLAIM } from '../framework/reservation.ts';
import {
  claimText,
  type AllocationResult,
  type ResourceClaimObject,
} from '../devices/device-objects.ts';

/** Keeps a claim that is in use from vanishing. */
const FINALIZER = 'resource.kubernetes.io/delete-protection';
const KIND = 'ResourceClaim';

export function isReservedFor({ status }: ResourceClaimObject, { pod }: PodInfo): boolean {
  const { uid = '' } = pod.metadata;
  return (status?.reservedFor ?? []).some(
    (user) => user.resource === 'pods' && user.name === pod.metadata.name && user.uid === uid,
  );
}

/** Whether devices that are made ready on demand are; a text if one never will be. */
export function isReadyToBind({ metadata, status }: ResourceClaimObject): boolean | string {
  if (status?.allocation === undefined) return false;
  for (const result of status.allocation.devices.results) {
    const { bindingConditions = [], bindingFailureConditions = [] } = result;
    if (bindingConditions.length === 0) continue;
    const device = status.devices?.find(
      ({ driver, pool, device: name }) =>
        driver === result.driver && pool === result.pool && name === result.device,
    );
    const conditions = device?.conditions ?? [];
    const isTrue = (type: string): boolean =>
      conditions.some((condition) => condition.type === type && condition.status === 'True');
    const failed = bindingFailureConditions.find(isTrue);
    if (failed !== undefined) {
      const { reason = '', message = '' } = conditions.find(({ type }) => type === failed) ?? {};
      const why = `reason=${reason}, message=${JSON.stringify(message)}`;
      return `claim ${metadata.name} binding failed: ${why}`;
    }
    if (!bindingConditions.every(isTrue)) return false;
  }
  return true;
}

/** Upstream's default for `bindingTimeout`. */
const BINDING_TIMEOUT_MS = 600_000;

export function bindingTimedOut({ status }: ResourceClaimObject, nowMs: number): boolean {
  const { allocationTimestamp, devices } = status?.allocation ?? {};
  if (allocationTimestamp === undefined || devices === undefined) return false;
  const waits = devices.results.some(({ bindingConditions }) => bindingConditions !== undefined);
  return waits && Date.parse(allocationTimestamp) + BINDING_TIMEOUT_MS < nowMs;
}

function pathOf({ metadata }: ResourceClaimObject): string {
  const { namespace = 'default', name } = metadata;
  return `/apis/resource.k8s.io/v1/namespaces/${namespace}/resourceclaims/${name}`;
}

function objectAt(parent: JsonObject, member: string): JsonObject {
  const value = ownMember(parent, member);
  return isObject(value) ? value : {};
}

function listAt(parent: JsonObject, member: string): JsonValue[] {
  const value = ownMember(parent, member);
  return Array.isArray(value) ? value : [];
}

function withStatus(claim: JsonObject, members: JsonObject): JsonObject {
  return { ...claim, status: { ...objectAt(claim, 'status'), ...members } };
}

function withoutFinalizer(claim: JsonObject): JsonObject | null {
  const metadata = objectAt(claim, 'metadata');
  const finalizers = listAt(metadata, 'finalizers');
  if (!finalizers.includes(FINALIZER)) return null;
  const left = finalizers.filter((one) => one !== FINALIZER);
  return { ...claim, metadata: { ...metadata, finalizers: left } };
}

/** Takes a claim away that the scheduler made. */
export function removal(claim: ResourceClaimObject): ObjectWrite[] {
  const text = claimText(claim);
  const base = { kind: KIND, key: text, path: pathOf(claim), subresource: '' } as const;
  return [
    {
      ...base,
      isOptional: true,
      about: `remove finalizer of claim ${text}`,
      change: withoutFinalizer,
    },
    {
      ...base,
      action: 'delete',
      isOptional: true,
      about: `delete claim ${text}`,
      change: () => null,
    },
  ];
}

/** Has a claim made, used for the pod, and told of in its status. */
export function withMadeClaim(
  reservation: Reservation,
  { pod, namespace }: PodInfo,
  { claim, mappings }: ExtendedClaim,
): Reservation {
  const key = claimText(claim);
  const creation: ObjectWrite = {
    kind: KIND,
    key,
    path: pathOf(claim),
    subresource: '',
    action: 'create',
    about: `create claim for extended resources ${key}`,
    change: () => ({ metadata: claim.metadata, spec: claim.spec }) as unknown as JsonObject,
  };
  const { name } = pod.metadata;
  const resourceClaimName = claim.metadata.name;
  const podStatus: ObjectWrite = {
    kind: 'Pod',
    key: `${namespace}/${name}`,
    path: `/api/v1/namespaces/${namespace}/pods/${name}`,
    subresource: 'status',
    about: `update pod ${namespace}/${name} ExtendedResourceClaimStatus`,
    change: (object) => {
      const requestMappings = namedMappings(object as unknown as PodObject, mappings);
      const extendedResourceClaimStatus = { requestMappings, resourceClaimName };
      return withStatus(object, { extendedResourceClaimStatus });
    },
  };
  const isOthers = (write: ObjectWrite): boolean => write.key !== key;
  const [others, own] = [isOthers, (write: ObjectWrite) => !isOthers(write)].map((which) =>
    reservation.writes.filter(which),
  );
  return {
    ...reservation,
    writes: [...(others ?? []), creation, ...(own ?? []), podStatus],
    undo: [...reservation.undo.filter(isOthers), ...removal(claim)],
  };
}

function withFinalizer(claim: JsonObject): JsonObject | null {
  const metadata = objectAt(claim, 'metadata');
  const finalizers = listAt(metadata, 'finalizers');
  if (finalizers.includes(FINALIZER)) return null;
  return { ...claim, metadata: { ...metadata, finalizers: [...finalizers, FINALIZER] } };
}

/** What must not have happened to a claim while its allocation was under way. */
function obstacle(claim: JsonObject, isAllocating: boolean): string {
  const metadata = objectAt(claim, 'metadata');
  const text = claimText(claim as unknown as ResourceClaimObject);
  if (metadata['deletionTimestamp'] !== undefined) {
    return `claim ${text} got deleted in the meantime`;
  }
  const isElsewhere = isAllocating && objectAt(claim, 'status')['allocation'] !== undefined;
  return isElsewhere ? `claim ${text} got allocated elsewhere in the meantime` : '';
}

/** The claim with its allocation, and the pod among its users. */
function withPod(
  claim: JsonObject,
  pod: PodInfo,
  allocation: AllocationResult | undefined,
  nowMs: number,
): JsonObject {
  const { name, uid = '' } = pod.pod.metadata;
  const user: JsonObject = { resource: 'pods', name, uid };
  const status = objectAt(claim, 'status');
  const reservedFor = [...listAt(status, 'reservedFor'), user];
  if (allocation === undefined) return withStatus(claim, { reservedFor });
  const allocationTimestamp = `${new Date(nowMs).toISOString().slice(0, 19)}Z`;
  const given = { ...(allocation as unknown as JsonObject), allocationTimestamp };
  return withStatus(claim, { allocation: given, reservedFor });
}

function without(claim: JsonObject, uid: string): JsonObject | null {
  const before = listAt(objectAt(claim, 'status'), 'reservedFor');
  const after = before.filter((user) => !isObject(user) || user['uid'] !== uid);
  return after.length === before.length ? null : withStatus(claim, { reservedFor: after });
}

function writesFor(
  claim: ResourceClaimObject,
  pod: PodInfo,
  allocation: AllocationResult | undefined,
): ObjectWrite[] {
  const text = claimText(claim);
  const base = { kind: KIND, key: text, path: pathOf(claim) };
  const isAllocating = allocation !== undefined;
  const finalizer: ObjectWrite = {
    ...base,
    subresource: '',
    about: `add finalizer to claim ${text}`,
    change: (object) => obstacle(object, isAllocating) || withFinalizer(object),
  };
  const what = isAllocating ? 'add allocation and reservation' : 'add reservation';
  const status: ObjectWrite = {
    ...base,
    subresource: 'status',
    about: `${what} to claim ${text}`,
    change: (object, nowMs) =>
      obstacle(object, isAllocating) || withPod(object, pod, allocation, nowMs),
  };
  return isAllocating ? [finalizer, status] : [status];
}

/** What is to be written for the claims of a pod; null if they all know of it. */
export function claimReservation(
  pod: PodInfo,
  node: string,
  claims: readonly ResourceClaimObject[],
  unreserved: readonly ResourceClaimObject[],
  allocated: ReadonlyMap<ResourceClaimObject, AllocationResult | undefined>,
  { timeoutMs }: { readonly timeoutMs: number },
): Reservation | null {
  const keys = claims.map(claimText);
  const pending = [...allocated].map(([claim, allocation]) => ({
    ...claim,
    kind: ALLOCATING_CLAIM,
    status: { ...claim.status, ...(allocation === undefined ? {} : { allocation }) },
  }));
  const results = claims.flatMap((claim) => {
    const allocation = allocated.get(claim) ?? claim.status?.allocation;
    return allocation?.devices.results ?? [];
  });
  const slow = results.filter(({ bindingConditions = [] }) => bindingConditions.length > 0);
  if (unreserved.length === 0 && !claims.some((claim) => isReadyToBind(claim) !== true)) {
    return null;
  }
  const { uid = '' } = pod.pod.metadata;
  return {
    plugin: 'DynamicResources',
    assumed: [],
    pending,
    writes: unreserved.flatMap((claim) => writesFor(claim, pod, allocated.get(claim))),
    isReady: (objects, nowMs) => allReady(objects, keys, nowMs),
    timeoutMs,
    timeoutText: 'device binding timeout',
    undo: unreserved.map((claim): ObjectWrite => ({
      kind: KIND,
      key: claimText(claim),
      path: pathOf(claim),
      subresource: 'status',
      about: `take the reservation off claim ${claimText(claim)}`,
      change: (object) => without(object, uid),
    })),
    waitingText: slow.length > 0 ? `waiting for binding conditions for device on node ${node}` : '',
    drivers: { all: results.map(driverOf), slow: slow.map(driverOf) },
    outcome: unreserved.map((claim) => {
      const object = withFinalizer(claim as unknown as JsonObject) ?? claim;
      const given = withPod(object as unknown as JsonObject, pod, allocated.get(claim), 0);
      return { ...given, kind: KIND } as unknown as ResourceClaimObject;
    }),
  };
}

function driverOf({ driver }: { readonly driver: string }): string {
  return driver;
}

function allReady(objects: KnownObjects, keys: readonly string[], nowMs: number): boolean | string {
  for (const key of keys) {
    const claim: ResourceClaimObject | undefined = objects.object(KIND, key);
    if (claim === undefined) return `could not find ResourceClaim "${key}"`;
    const ready = isReadyToBind(claim);
    if (typeof ready === 'string') return ready;
    if (ready) continue;
    return bindingTimedOut(claim, nowMs) ? `claim ${claim.metadata.name} binding timeout` : false;
  }
  return true;
}

/** Gives up an allocation that nobody else uses; null if somebody does. */
export function deallocation(claim: ResourceClaimObject, { pod }: PodInfo): ObjectWrite | null {
  const users = claim.status?.reservedFor ?? [];
  if (users.length > 1 || users.some(({ uid }) => uid !== pod.metadata.uid)) return null;
  return {
    kind: KIND,
    key: claimText(claim),
    path: pathOf(claim),
    subresource: 'status',
    about: `deallocate claim ${claimText(claim)}`,
    change: (object) => {
      const {
        allocation: _,
        reservedFor: __,
        devices: ___,
        ...status
      } = objectAt(object, 'status');
      return { ...object, status };
    },
  };
}
