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

/** As upstream's RepackSubsets has it: ports that the same pods serve are one subset. */
function groupsOf(service: JsonObject, backends: readonly Backend[]): Group[] {
  const alike = [...backendsByPorts(service, backends).values()];
  const servedBy: Map<string, { readonly port: EndpointPort; readonly by: number[] }> = new Map();
  for (const [at, { ports }] of alike.entries()) {
    for (const port of ports) {
      const key = JSON.stringify(port);
      const known = servedBy.get(key) ?? { port, by: [] };
      servedBy.set(key, known);
      known.by.push(at);
    }
  }
  const merged = [...Map.groupBy(servedBy.values(), ({ by }) => by.join()).values()];
  const groups = merged.map((served) => ({
    ports: served.map(({ port }) => port),
    ...addressesOf((served[0]?.by ?? []).map((at) => alike[at])),
  }));
  // Those of a service without ports serve none.
  const [idle] = alike.filter(({ ports }) => ports.length === 0);
  if (idle !== undefined) groups.push({ ports: [], ...addressesOf([idle]) });
  return groups.toSorted((one, other) => compare(keyOf(one), keyOf(other)));
}

function keyOf({ ports }: Group): string {
  return JSON.stringify(ports);
}

function addressesOf(groups: readonly (Group | undefined)[]): Omit<Group, 'ports'> {
  const inOrder = (list: JsonObject[]): JsonObject[] =>
    list.toSorted((a, b) => compare(textOf(a), textOf(b)));
  return {
    ready: inOrder(groups.flatMap((one) => one?.ready ?? [])),
    notReady: inOrder(groups.flatMap((one) => one?.notReady ?? [])),
  };
}

/** Pods that serve the same ports, by these. */
function backendsByPorts(service: JsonObject, backends: readonly Backend[]): Map<string, Group> {
  const [family] = familiesOf(service);
  const isAnyReady = publishesNotReady(service);
  const hasPorts = listAt(service, 'spec', 'ports').length > 0;
  const groups: Map<string, Group> = new Map();
  for (const backend of backends) {
    const ip = backend.addresses.find((one) => familyOf(one) === family);
    if (ip === undefined || (backend.isTerminating && !isAnyReady)) continue;
    const ports = portsOf(service, backend);
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
  return groups;
}

/** Each subset keeps its share of what there is room for; the ready ones come first. */
function truncate(groups: readonly Group[]): boolean {
  const count = (lists: readonly JsonObject[][]): number =>
    lists.reduce((sum, list) => sum + list.length, 0);
  const [ready, notReady] = [groups.map((one) => one.ready), groups.map((one) => one.notReady)];
  const readyCount = count(ready);
  if (readyCount + count(notReady) <= ADDRESSES_MAX) return false;
  const isReadyCut = readyCount > ADDRESSES_MAX;
  const cut = isReadyCut ? ready : notReady;
  const max = isReadyCut ? ADDRESSES_MAX : ADDRESSES_MAX - readyCount;
  const total = count(cut);
  let room = max;
  for (const list of cut) {
    list.length = Math.min(room, list.length, Math.ceil((list.length / total) * max));
    room -= list.length;
  }
  if (isReadyCut) for (const list of notReady) list.length = 0;
  return true;
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
