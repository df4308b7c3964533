/**
 * What EndpointSlices an Endpoints object that somebody else keeps is copied to, by the rules of
 * upstream's mirroring controller: one slice per subset of ports and family of addresses, a
 * thousand addresses of a subset at most.
 */
import { assert } from '@megaplane/base/assert';
import { isIP } from 'node:net';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { equals, listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { repack } from './subsets.ts';

export const MIRRORED_BY = 'endpointslicemirroring-controller.k8s.io';
const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by';
const SERVICE_NAME = 'kubernetes.io/service-name';
const SKIP = 'endpointslice.kubernetes.io/skip-mirror';
const LEADER = 'control-plane.alpha.kubernetes.io/leader';
/** Annotations that are about the Endpoints object itself. */
const NOT_COPIED = [
  'endpoints.kubernetes.io/last-change-trigger-time',
  'kubectl.kubernetes.io/last-applied-configuration',
];
/** Addresses of one subset that are copied, unless a flag says otherwise. */
export const SUBSET_ADDRESSES_MAX = 1_000;
const PREFIX_CHARACTERS_MAX = 57;

/** What must be written so that the slices are as they should be. */
export interface MirrorPlan {
  readonly create: readonly JsonObject[];
  readonly update: readonly JsonObject[];
  readonly remove: readonly JsonObject[];
  /** Addresses that are none, and those above the limit together with them. */
  readonly invalid: number;
  readonly skipped: number;
}

/** Whether an Endpoints object is copied at all, its service aside. */
export function isMirrored(endpoints: JsonObject): boolean {
  // The words that upstream's parser takes for true.
  const isSkipped = /^(1|[tT]|true|TRUE|True)$/.test(
    stringAt(endpoints, 'metadata', 'labels', SKIP),
  );
  return !isSkipped && !(LEADER in (objectAt(endpoints, 'metadata', 'annotations') ?? {}));
}

interface Group {
  readonly addressType: 'IPv4' | 'IPv6';
  readonly ports: readonly JsonValue[];
  readonly endpoints: Map<string, JsonObject>;
}

export function planMirror(
  endpoints: JsonObject,
  existing: readonly JsonObject[],
  addressesMax: number = SUBSET_ADDRESSES_MAX,
): MirrorPlan {
  const { groups, invalid, skipped } = groupsOf(endpoints, addressesMax);
  const left = new Set(existing);
  const update: JsonObject[] = [];
  const unmet: Group[] = [];
  const take = (group: Group, isSame: (slice: JsonObject) => boolean): boolean => {
    for (const slice of left) {
      if (stringAt(slice, 'addressType') !== group.addressType || !isSame(slice)) continue;
      left.delete(slice);
      const next = sliceOf(endpoints, group, slice);
      if (!sameSlice(slice, next)) update.push(next);
      return true;
    }
    return false;
  };
  for (const group of groups) {
    if (!take(group, (slice) => equals(listAt(slice, 'ports') as JsonValue[], [...group.ports]))) {
      unmet.push(group);
    }
  }
  // A slice that nobody needs any more is written over before another one is made.
  const create = unmet
    .filter((group) => !take(group, () => true))
    .map((group) => sliceOf(endpoints, group, undefined));
  assert(create.length + update.length <= groups.length, 'a group is written once at most');
  return { create, update, remove: [...left], invalid, skipped };
}

function groupsOf(
  endpoints: JsonObject,
  addressesMax: number,
): {
  readonly groups: Group[];
  readonly invalid: number;
  readonly skipped: number;
} {
  const groups = new Map<string, Group>();
  let invalid = 0;
  let skipped = 0;
  for (const subset of repack(listAt(endpoints, 'subsets'))) {
    const ports = subset.ports.map(portOf);
    let added = 0;
    for (const { address, isReady } of subset.addresses) {
      const family = isIP(stringAt(address, 'ip'));
      if (added >= addressesMax) break;
      if (family === 0) {
        invalid++;
        continue;
      }
      added++;
      const addressType = family === 4 ? 'IPv4' : 'IPv6';
      const sorted = ports.map((port) => JSON.stringify(port)).toSorted();
      const key = `${addressType} ${JSON.stringify(sorted)}`;
      const group = groups.get(key) ?? { addressType, ports, endpoints: new Map() };
      groups.set(key, group);
      const endpoint = endpointOf(address, isReady);
      group.endpoints.set(stringAt(address, 'ip'), endpoint);
    }
    skipped += subset.addresses.length - added;
  }
  return { groups: [...groups.values()], invalid, skipped };
}

function portOf(port: JsonValue): JsonObject {
  const made: JsonObject = { name: stringAt(port, 'name') };
  made['protocol'] = stringAt(port, 'protocol') || 'TCP';
  for (const field of ['port', 'appProtocol']) {
    const value = objectAt({ port }, 'port')?.[field];
    if (value !== undefined) made[field] = value;
  }
  return made;
}

function endpointOf(address: JsonValue, isReady: boolean): JsonObject {
  const { ip = '', nodeName, hostname, targetRef } = objectAt({ address }, 'address') ?? {};
  return {
    addresses: [ip],
    conditions: { ready: isReady },
    ...(hostname === undefined || hostname === '' ? {} : { hostname }),
    ...(targetRef === undefined ? {} : { targetRef }),
    ...(nodeName === undefined ? {} : { nodeName }),
  };
}

function sliceOf(endpoints: JsonObject, group: Group, before: JsonObject | undefined): JsonObject {
  const of = objectAt(endpoints, 'metadata') ?? {};
  const name = stringAt(of, 'name');
  const annotations = { ...objectAt(of, 'annotations') };
  for (const key of NOT_COPIED) delete annotations[key];
  const owner = { apiVersion: 'v1', kind: 'Endpoints', name, uid: stringAt(of, 'uid') };
  const labels = { ...objectAt(of, 'labels'), [SERVICE_NAME]: name, [MANAGED_BY]: MIRRORED_BY };
  const own: JsonObject =
    before === undefined
      ? { generateName: prefixOf(name), namespace: stringAt(of, 'namespace') }
      : { ...objectAt(before, 'metadata') };
  delete own['annotations'];
  // Upstream writes a slice of the same ports anew, under its name.
  const isSamePorts = equals(listAt(before, 'ports') as JsonValue[], [...group.ports]);
  if (before !== undefined && isSamePorts) delete own['generateName'];
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      ...own,
      labels,
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
      ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: true }],
    },
    addressType: group.addressType,
    endpoints: [...group.endpoints.values()],
    ports: [...group.ports],
  };
}

/** `name-`, or less where a generated name would be too long. */
function prefixOf(name: string): string {
  const prefix = `${name}-`;
  return prefix.length > PREFIX_CHARACTERS_MAX ? name : prefix;
}

function sameSlice(left: JsonObject, right: JsonObject): boolean {
  const fields = ['endpoints', 'ports'] as const;
  const parts = ['labels', 'annotations', 'ownerReferences'] as const;
  return (
    fields.every((field) => equals(listAt(left, field) as JsonValue[], right[field])) &&
    parts.every((part) =>
      equals(objectAt(left, 'metadata')?.[part], objectAt(right, 'metadata')?.[part]),
    )
  );
}
