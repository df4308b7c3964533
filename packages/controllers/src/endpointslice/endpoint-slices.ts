/**
 * EndpointSlices of one service, decided without world. Endpoints stay in the slice where they
 * are; slices that change anyway are filled first, so that a change touches few of them. A service
 * without endpoints has one empty slice.
 */
import { assert } from '@megaplane/base/assert';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { equals, listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { hintClose, isByTopology, removeHints, staysClose, withHints } from './endpoint-hints.ts';
import type { HintedSlices } from './endpoint-hints.ts';
import { controllerReference, ownerOfObject } from '../framework/pod-control.ts';
import { familiesOf, familyOf, HEADLESS, hostnameOf, isHeadless } from './service-endpoints.ts';
import { portsOf, publishesNotReady, targetOf, TRIGGER_TIME } from './service-endpoints.ts';
import type { Backend, EndpointPort, Family } from './service-endpoints.ts';
import type { HintEvent, TopologyHints, ZoneShares } from './topology-hints.ts';

export const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by';
export const MANAGER = 'endpointslice-controller.k8s.io';
export const SERVICE_NAME = 'kubernetes.io/service-name';
/** Unless a flag says otherwise. */
export const ENDPOINTS_PER_SLICE_MAX = 100;

export interface SlicePlan {
  readonly create: readonly JsonObject[];
  /** Whole objects, as they should be. */
  readonly update: readonly JsonObject[];
  readonly delete: readonly JsonObject[];
  readonly events: readonly HintEvent[];
}

/** How hints by topology are made for the service; see topology-hints.ts. */
export interface Topology {
  readonly hints: TopologyHints;
  readonly shares: ZoneShares;
}

/** `existing` are the slices that name the service and this controller. */
export function planSlices(
  service: JsonObject,
  backends: readonly Backend[],
  existing: readonly JsonObject[],
  triggerTime: string,
  topology: Topology,
  endpointsMax: number = ENDPOINTS_PER_SLICE_MAX,
): SlicePlan {
  const families = familiesOf(service);
  const stray = existing.filter(
    (slice) => !families.includes(stringAt(slice, 'addressType') as Family),
  );
  const create: JsonObject[] = [];
  const update: JsonObject[] = [];
  const gone: JsonObject[] = [...stray];
  const events: HintEvent[] = [];
  for (const family of families) {
    const own = existing.filter((slice) => stringAt(slice, 'addressType') === family);
    const plan = new FamilyPlan(service, family, triggerTime, endpointsMax);
    events.push(...plan.decide(backends, own, topology));
    create.push(...plan.create);
    update.push(...plan.update);
    gone.push(...plan.gone);
  }
  return { create, update, delete: gone, events };
}

class FamilyPlan {
  create: JsonObject[] = [];
  update: JsonObject[] = [];
  gone: JsonObject[] = [];
  readonly #service: JsonObject;
  readonly #family: Family;
  readonly #triggerTime: string;
  readonly #endpointsMax: number;
  readonly #labels: JsonObject;

  constructor(service: JsonObject, family: Family, triggerTime: string, endpointsMax: number) {
    this.#endpointsMax = endpointsMax;
    this.#service = service;
    this.#family = family;
    this.#triggerTime = triggerTime;
    this.#labels = labelsOf(service);
  }

  decide(
    backends: readonly Backend[],
    existing: readonly JsonObject[],
    topology: Topology,
  ): HintEvent[] {
    const wanted = this.#wanted(backends);
    const own = existing.filter((slice) => this.#isOwn(slice));
    this.gone = existing.filter((slice) => !own.includes(slice));
    const byPorts = Map.groupBy(own, (slice) => portsKey(listAt(slice, 'ports')));
    for (const [key, { ports, endpoints }] of wanted) {
      this.#place(ports, endpoints, byPorts.get(key) ?? []);
    }
    for (const [key, slices] of byPorts) if (!wanted.has(key)) this.gone.push(...slices);
    if (this.gone.length === existing.length && this.create.length === 0) this.#placeholder();
    const events = this.#hint(existing, topology);
    this.#reuse();
    return events;
  }

  /** A slice of a service before it, or made by hand, is nobody's. */
  #isOwn(slice: JsonObject): boolean {
    const uid = stringAt(this.#service, 'metadata', 'uid');
    return listAt(slice, 'metadata', 'ownerReferences').some((one) => stringAt(one, 'uid') === uid);
  }

  #hint(existing: readonly JsonObject[], { hints, shares }: Topology): HintEvent[] {
    const nameOf = (slice: JsonObject): string => stringAt(slice, 'metadata', 'name');
    const changed = new Set([...this.update, ...this.gone].map(nameOf));
    const slices: HintedSlices = {
      create: this.create,
      update: this.update,
      unchanged: existing.filter((slice) => !changed.has(nameOf(slice))),
      revise: (slice, endpoints) => this.#changed(slice, listAt(slice, 'ports'), endpoints),
    };
    if (isByTopology(this.#service)) return hints.apply(shares, this.#family, slices);
    const events = hints.drop(this.#family);
    if (staysClose(this.#service)) hintClose(this.#service, slices);
    else removeHints(slices);
    return events;
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
      if (list.length === 0 && before.length > 0) {
        this.gone.push(slice);
        continue;
      }
      const plain = before.map((one) => withHints(one as JsonObject, undefined));
      const isSame =
        equals(plain, list) && equals(objectAt(slice, 'metadata', 'labels'), this.#labels);
      (isSame ? kept : changed).push({ slice, list });
    }
    const rest = [...endpoints.values()];
    for (const { list } of changed) {
      list.push(...rest.splice(0, this.#endpointsMax - list.length));
    }
    // What would fill a slice of its own goes there, the rest where it just fits.
    while (rest.length >= this.#endpointsMax) {
      this.create.push(this.#slice(ports, rest.splice(0, this.#endpointsMax)));
    }
    if (rest.length > 0) {
      const fitting = kept
        .filter(({ list }) => list.length + rest.length <= this.#endpointsMax)
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

  /**
   * A slice that goes becomes one that is to be made: one write for two. Nothing of it stays but
   * its name, no more than if it had gone.
   */
  #reuse(): void {
    const foreign = this.gone.filter((slice) => !this.#isOwn(slice));
    const own = this.gone.filter((slice) => this.#isOwn(slice));
    while (own.length > 0 && this.create.length > 0) {
      const slice = own.pop();
      const made = this.create.pop();
      if (slice === undefined || made === undefined) break;
      const { name = '', resourceVersion = '' } = objectAt(slice, 'metadata') ?? {};
      const metadata = { ...objectAt(made, 'metadata'), name, resourceVersion };
      this.update.push({ ...made, metadata });
    }
    assert(own.length === 0 || this.create.length === 0, 'no slice goes beside a new one');
    this.gone = [...foreign, ...own];
  }

  #changed(
    slice: JsonObject,
    ports: readonly JsonValue[],
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
    assert(endpoints.length <= this.#endpointsMax, 'a slice has as many endpoints as it may');
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
  };
}
