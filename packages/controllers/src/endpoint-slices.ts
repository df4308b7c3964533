/**
 * EndpointSlices of one service, decided without world. Endpoints stay in the slice where they
 * are; slices that change anyway are filled first, so that a change touches few of them. A service
 * without endpoints has one empty slice.
 */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { equals, listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { controllerReference, ownerOfObject } from './pod-control.ts';
import { familiesOf, familyOf, HEADLESS, hostnameOf, isHeadless } from './service-endpoints.ts';
import { portsOf, publishesNotReady, targetOf, TRIGGER_TIME } from './service-endpoints.ts';
import type { Backend, EndpointPort, Family } from './service-endpoints.ts';

export const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by';
export const MANAGER = 'endpointslice-controller.k8s.io';
export const SERVICE_NAME = 'kubernetes.io/service-name';
export const ENDPOINTS_PER_SLICE_MAX = 100;

const SAME_NODE = 'PreferSameNode';
const CLOSE: ReadonlySet<string> = new Set(['PreferClose', 'PreferSameZone', SAME_NODE]);
const TOPOLOGY = [
  'service.kubernetes.io/topology-mode',
  'service.kubernetes.io/topology-aware-hints',
];

export interface SlicePlan {
  readonly create: readonly JsonObject[];
  /** Whole objects, as they should be. */
  readonly update: readonly JsonObject[];
  readonly delete: readonly JsonObject[];
}

/** `existing` are the slices that this controller made for the service. */
export function planSlices(
  service: JsonObject,
  backends: readonly Backend[],
  existing: readonly JsonObject[],
  triggerTime: string,
): SlicePlan {
  const families = familiesOf(service);
  const stray = existing.filter(
    (slice) => !families.includes(stringAt(slice, 'addressType') as Family),
  );
  const create: JsonObject[] = [];
  const update: JsonObject[] = [];
  const gone: JsonObject[] = [...stray];
  for (const family of families) {
    const own = existing.filter((slice) => stringAt(slice, 'addressType') === family);
    const plan = new FamilyPlan(service, family, triggerTime);
    plan.decide(backends, own);
    create.push(...plan.create);
    update.push(...plan.update);
    gone.push(...plan.gone);
  }
  return { create, update, delete: gone };
}

class FamilyPlan {
  create: JsonObject[] = [];
  update: JsonObject[] = [];
  gone: JsonObject[] = [];
  readonly #service: JsonObject;
  readonly #family: Family;
  readonly #triggerTime: string;
  readonly #labels: JsonObject;

  constructor(service: JsonObject, family: Family, triggerTime: string) {
    this.#service = service;
    this.#family = family;
    this.#triggerTime = triggerTime;
    this.#labels = labelsOf(service);
  }

  decide(backends: readonly Backend[], existing: readonly JsonObject[]): void {
    const wanted = this.#wanted(backends);
    const byPorts = Map.groupBy(existing, (slice) => portsKey(listAt(slice, 'ports')));
    for (const [key, { ports, endpoints }] of wanted) {
      this.#place(ports, endpoints, byPorts.get(key) ?? []);
    }
    for (const [key, slices] of byPorts) if (!wanted.has(key)) this.gone.push(...slices);
    if (this.gone.length === existing.length && this.create.length === 0) this.#placeholder();
    this.#reuse();
  }

  /** Endpoints by address, grouped by the ports that they serve. */
  #wanted(backends: readonly Backend[]): Map<string, Wanted> {
    const wanted: Map<string, Wanted> = new Map();
    for (const backend of backends) {
      const address = backend.addresses.find((one) => familyOf(one) === this.#family);
      if (address === undefined) continue;
      const ports = portsOf(this.#service, backend).map(portObject);
      const key = portsKey(ports);
      const group = wanted.get(key) ?? { ports, endpoints: new Map() };
      wanted.set(key, group);
      group.endpoints.set(backend.uid, endpointOf(this.#service, backend, address));
    }
    return wanted;
  }

  #place(
    ports: readonly JsonObject[],
    endpoints: Map<string, JsonObject>,
    existing: readonly JsonObject[],
  ): void {
    const changed: { slice: JsonObject; list: JsonObject[] }[] = [];
    const kept: { slice: JsonObject; list: JsonObject[] }[] = [];
    for (const slice of existing) {
      const before = listAt(slice, 'endpoints');
      const list: JsonObject[] = [];
      for (const endpoint of before) {
        const uid = stringAt(endpoint, 'targetRef', 'uid');
        const found = endpoints.get(uid);
        if (found !== undefined) list.push(found);
        endpoints.delete(uid);
      }
      const isSame =
        equals([...before], list) && equals(objectAt(slice, 'metadata', 'labels'), this.#labels);
      (isSame ? kept : changed).push({ slice, list });
    }
    const rest = [...endpoints.values()];
    for (const { list } of changed) {
      list.push(...rest.splice(0, ENDPOINTS_PER_SLICE_MAX - list.length));
    }
    // What would fill a slice of its own goes there, the rest where it just fits.
    while (rest.length >= ENDPOINTS_PER_SLICE_MAX) {
      this.create.push(this.#slice(ports, rest.splice(0, ENDPOINTS_PER_SLICE_MAX)));
    }
    if (rest.length > 0) {
      const fitting = kept
        .filter(({ list }) => list.length + rest.length <= ENDPOINTS_PER_SLICE_MAX)
        .toSorted((a, b) => b.list.length - a.list.length)[0];
      if (fitting === undefined) this.create.push(this.#slice(ports, rest));
      else changed.push({ slice: fitting.slice, list: [...fitting.list, ...rest] });
    }
    for (const { slice, list } of changed) {
      if (list.length === 0) this.gone.push(slice);
      else this.update.push(this.#changed(slice, ports, list));
    }
  }

  #placeholder(): void {
    const placeholder = this.#slice([], []);
    const [only] = this.gone;
    const isThere =
      only !== undefined &&
      this.gone.length === 1 &&
      listAt(only, 'endpoints').length === 0 &&
      listAt(only, 'ports').length === 0 &&
      equals(objectAt(only, 'metadata', 'labels'), this.#labels);
    if (isThere) this.gone = [];
    else this.create.push(placeholder);
  }

  /** A slice that goes becomes one that is to be made: one write for two. */
  #reuse(): void {
    while (this.gone.length > 0 && this.create.length > 0) {
      const slice = this.gone.pop();
      const made = this.create.pop();
      if (slice === undefined || made === undefined) return;
      const { ports = null, endpoints = null } = made;
      this.update.push({ ...this.#changed(slice, [], []), ports, endpoints });
    }
  }

  #changed(
    slice: JsonObject,
    ports: readonly JsonObject[],
    endpoints: readonly JsonObject[],
  ): JsonObject {
    const metadata = { ...objectAt(slice, 'metadata'), labels: this.#labels };
    const annotations = { ...objectAt(metadata, 'annotations') };
    delete annotations[TRIGGER_TIME];
    if (this.#triggerTime !== '') annotations[TRIGGER_TIME] = this.#triggerTime;
    return {
      ...slice,
      metadata: { ...metadata, annotations },
      ports: [...ports],
      endpoints: [...endpoints],
    };
  }

  #slice(ports: readonly JsonObject[], endpoints: readonly JsonObject[]): JsonObject {
    const owner = ownerOfObject('v1', 'Service', this.#service);
    return {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: {
        generateName: `${owner.name}-`,
        namespace: owner.namespace,
        labels: this.#labels,
        annotations: this.#triggerTime === '' ? {} : { [TRIGGER_TIME]: this.#triggerTime },
        ownerReferences: [controllerReference(owner)],
      },
      addressType: this.#family,
      endpoints: endpoints.length === 0 ? null : [...endpoints],
      ports: ports.length === 0 ? null : [...ports],
    };
  }
}

interface Wanted {
  readonly ports: readonly JsonObject[];
  readonly endpoints: Map<string, JsonObject>;
}

function labelsOf(service: JsonObject): JsonObject {
  const labels = { ...objectAt(service, 'metadata', 'labels') };
  delete labels[HEADLESS];
  if (isHeadless(service)) labels[HEADLESS] = '';
  labels[SERVICE_NAME] = stringAt(service, 'metadata', 'name');
  labels[MANAGED_BY] = MANAGER;
  return labels;
}

function portObject({ name, port, protocol, appProtocol }: EndpointPort): JsonObject {
  return { name, port, protocol, ...(appProtocol === '' ? {} : { appProtocol }) };
}

/** The same for the same ports, in whatever order. */
function portsKey(ports: readonly unknown[]): string {
  const texts = ports.map((port) => {
    const one = port as JsonObject;
    const fields = ['name', 'protocol', 'port', 'appProtocol'];
    return JSON.stringify(fields.map((field) => one[field] ?? ''));
  });
  return texts.toSorted().join(' ');
}

function endpointOf(service: JsonObject, backend: Backend, address: string): JsonObject {
  const serving = backend.isReady;
  const terminating = backend.isTerminating;
  const ready = publishesNotReady(service) || (serving && !terminating);
  const hostname = hostnameOf(service, backend);
  return {
    addresses: [address],
    conditions: { ready, serving, terminating },
    ...(hostname === '' ? {} : { hostname }),
    targetRef: targetOf(backend),
    ...(backend.node === '' ? {} : { nodeName: backend.node }),
    ...(backend.zone === '' ? {} : { zone: backend.zone }),
    ...(ready ? hintsOf(service, backend) : {}),
  };
}

/**
 * For whom an endpoint is meant that can be reached, where traffic is to stay close: upstream's
 * trafficdist.go. Services whose hints go by topology have none of these.
 */
function hintsOf(service: JsonObject, { node, zone }: Backend): JsonObject {
  const wish = stringAt(service, 'spec', 'trafficDistribution');
  const annotations = objectAt(service, 'metadata', 'annotations');
  const byTopology = TOPOLOGY.some((name) => /^[Aa]uto$/.test(stringAt(annotations, name)));
  if (!CLOSE.has(wish) || byTopology) return {};
  const hints: JsonObject = {};
  if (zone !== '') hints['forZones'] = [{ name: zone }];
  if (node !== '' && wish === SAME_NODE) hints['forNodes'] = [{ name: node }];
  return Object.keys(hints).length === 0 ? {} : { hints };
}
