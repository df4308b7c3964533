/**
 * For whom the endpoints of slices are meant, in `hints`: nobody special, or those in the same zone
 * or on the same node where traffic is to stay close (upstream's trafficdist.go). Services whose
 * hints go by topology are those of topology-hints.ts.
 */
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { equals, listAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';

const SAME_NODE = 'PreferSameNode';
const CLOSE: ReadonlySet<string> = new Set(['PreferClose', 'PreferSameZone', SAME_NODE]);

/** The slices of a service and a family; hints are put into those that are written anyway. */
export interface HintedSlices {
  readonly create: JsonObject[];
  readonly update: JsonObject[];
  /** Not written so far; one whose hints are wrong goes over to `update`. */
  unchanged: JsonObject[];
  /** A slice with other endpoints, to be written. */
  readonly revise: (slice: JsonObject, endpoints: JsonObject[]) => JsonObject;
}

/** Whether hints go by the zones' share of the processors; of two annotations the old one holds. */
export function isByTopology(service: JsonObject): boolean {
  const annotations = objectAt(service, 'metadata', 'annotations');
  const old = valueAt(annotations, 'service.kubernetes.io/topology-aware-hints');
  const mode = old ?? valueAt(annotations, 'service.kubernetes.io/topology-mode');
  return mode === 'Auto' || mode === 'auto';
}

export function staysClose(service: JsonObject): boolean {
  return CLOSE.has(stringAt(service, 'spec', 'trafficDistribution')) && !isByTopology(service);
}

export function endpointsOf(slice: JsonObject): JsonObject[] {
  return listAt(slice, 'endpoints') as JsonObject[];
}

export function isReady(endpoint: JsonObject): boolean {
  return valueAt(endpoint, 'conditions', 'ready') === true;
}

/** The endpoint with these hints, or with none. */
export function withHints(endpoint: JsonObject, hints: JsonValue | undefined): JsonObject {
  const { hints: _, ...rest } = endpoint;
  return hints === undefined ? rest : { ...rest, hints };
}

/** Takes the hints away from all slices. */
export function removeHints(slices: HintedSlices): void {
  setHints(slices, () => undefined);
}

/** Hints at the zone of each endpoint that is ready, and at its node, as the service wishes. */
export function hintClose(service: JsonObject, slices: HintedSlices): void {
  const isSameNode = stringAt(service, 'spec', 'trafficDistribution') === SAME_NODE;
  setHints(slices, (endpoint) => {
    // Upstream leaves what is not ready as it finds it.
    if (!isReady(endpoint)) return endpoint['hints'];
    const zone = stringAt(endpoint, 'zone');
    const node = isSameNode ? stringAt(endpoint, 'nodeName') : '';
    const hints = {
      ...(zone === '' ? {} : { forZones: [{ name: zone }] }),
      ...(node === '' ? {} : { forNodes: [{ name: node }] }),
    };
    return Object.keys(hints).length === 0 ? undefined : hints;
  });
}

function setHints(
  slices: HintedSlices,
  hintsOf: (endpoint: JsonObject) => JsonValue | undefined,
): void {
  const hinted = (slice: JsonObject): JsonObject[] =>
    endpointsOf(slice).map((one) => withHints(one, hintsOf(one)));
  for (const list of [slices.create, slices.update]) {
    for (const slice of list) {
      const endpoints = hinted(slice);
      if (endpoints.length > 0) slice['endpoints'] = endpoints;
    }
  }
  slices.unchanged = slices.unchanged.filter((slice) => {
    const endpoints = hinted(slice);
    if (equals(endpoints, endpointsOf(slice))) return true;
    slices.update.push(slices.revise(slice, endpoints));
    return false;
  });
}
