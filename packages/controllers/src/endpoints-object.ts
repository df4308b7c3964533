/** The Endpoints object of one service, decided without world. */
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { equals, listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { familiesOf, familyOf, HEADLESS, hostnameOf, isHeadless } from './service-endpoints.ts';
import { portsOf, publishesNotReady, targetOf, TRIGGER_TIME } from './service-endpoints.ts';
import type { Backend, EndpointPort } from './service-endpoints.ts';

/** Addresses above this number are left out, those that are not ready first. */
export const ADDRESSES_MAX = 1_000;
const OVER_CAPACITY = 'endpoints.kubernetes.io/over-capacity';

interface Group {
  readonly ports: readonly EndpointPort[];
  readonly ready: JsonObject[];
  readonly notReady: JsonObject[];
}

/** The object as it should be, or undefined where `existing` is right. */
export function planEndpoints(
  service: JsonObject,
  backends: readonly Backend[],
  existing: JsonObject | undefined,
  triggerTime: string,
): JsonObject | undefined {
  const groups = groupsOf(service, backends);
  const isTruncated = truncate(groups);
  const subsets = groups.map(subsetOf);
  const labels: JsonObject = { ...objectAt(service, 'metadata', 'labels') };
  delete labels[HEADLESS];
  if (isHeadless(service)) labels[HEADLESS] = '';
  const annotations: JsonObject = { ...objectAt(existing, 'metadata', 'annotations') };
  const wasTruncated = annotations[OVER_CAPACITY] === 'truncated';
  if (
    existing !== undefined &&
    equals([...listAt(existing, 'subsets')], subsets) &&
    equals(objectAt(existing, 'metadata', 'labels') ?? {}, labels) &&
    wasTruncated === isTruncated
  ) {
    return undefined;
  }
  delete annotations[TRIGGER_TIME];
  delete annotations[OVER_CAPACITY];
  if (triggerTime !== '') annotations[TRIGGER_TIME] = triggerTime;
  if (isTruncated) annotations[OVER_CAPACITY] = 'truncated';
  const name = stringAt(service, 'metadata', 'name');
  const namespace = stringAt(service, 'metadata', 'namespace');
  const metadata = { name, namespace, ...objectAt(existing, 'metadata'), labels, annotations };
  return { apiVersion: 'v1', kind: 'Endpoints', metadata, subsets };
}

/** Pods that serve the same ports are one subset. */
function groupsOf(service: JsonObject, backends: readonly Backend[]): Group[] {
  const [family] = familiesOf(service);
  const isAnyReady = publishesNotReady(service);
  const groups: Map<string, Group> = new Map();
  for (const backend of backends) {
    const ip = backend.addresses.find((one) => familyOf(one) === family);
    if (ip === undefined || (backend.isTerminating && !isAnyReady)) continue;
    const ports = portsOf(service, backend);
    const hasPorts = listAt(service, 'spec', 'ports').length > 0;
    if (hasPorts ? ports.length === 0 : !isHeadless(service)) continue;
    const hostname = hostnameOf(service, backend);
    const address: JsonObject = {
      ip,
      ...(hostname === '' ? {} : { hostname }),
      ...(backend.node === '' ? {} : { nodeName: backend.node }),
      targetRef: targetOf(backend),
    };
    const key = JSON.stringify(ports);
    const group = groups.get(key) ?? { ports, ready: [], notReady: [] };
    groups.set(key, group);
    (isAnyReady || backend.isReady ? group.ready : group.notReady).push(address);
  }
  const sorted = [...groups].toSorted(([a], [b]) => compare(a, b)).map(([, group]) => group);
  for (const { ready, notReady } of sorted) {
    for (const list of [ready, notReady]) list.sort((a, b) => compare(textOf(a), textOf(b)));
  }
  return sorted;
}

function truncate(groups: readonly Group[]): boolean {
  let room = ADDRESSES_MAX;
  let isTruncated = false;
  for (const list of [...groups.map((one) => one.ready), ...groups.map((one) => one.notReady)]) {
    if (list.length > room) {
      list.length = room;
      isTruncated = true;
    }
    room -= list.length;
  }
  return isTruncated;
}

function subsetOf({ ports, ready, notReady }: Group): JsonValue {
  return {
    ...(ready.length === 0 ? {} : { addresses: ready }),
    ...(notReady.length === 0 ? {} : { notReadyAddresses: notReady }),
    ...(ports.length === 0 ? {} : { ports: ports.map(portObject) }),
  };
}

function portObject({ name, port, protocol, appProtocol }: EndpointPort): JsonObject {
  return {
    ...(name === '' ? {} : { name }),
    port,
    protocol,
    ...(appProtocol === '' ? {} : { appProtocol }),
  };
}

function textOf(address: JsonObject): string {
  return `${stringAt(address, 'ip')} ${stringAt(address, 'targetRef', 'uid')}`;
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
