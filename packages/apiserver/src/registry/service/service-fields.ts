/** Fields of Services that follow from one another, or from what was there before. */
import { equals, listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';

/** A new Service that names one address names it in both fields. */
export function startAddresses(service: JsonObject): void {
  const spec = objectAt(service, 'spec');
  if (spec === undefined) return;
  const address = stringAt(spec, 'clusterIP');
  if (address !== '' && listAt(spec, 'clusterIPs').length === 0) spec['clusterIPs'] = [address];
  dropInside(spec);
}

/** Upstream shows no policy for traffic within the cluster of what is outside of it. */
function dropInside(spec: JsonObject): void {
  if (stringAt(spec, 'type') !== 'ExternalName') return;
  // what it does not know is refused
  if (INSIDE.has(spec['internalTrafficPolicy'] ?? null)) delete spec['internalTrafficPolicy'];
}

const INSIDE: ReadonlySet<JsonValue> = new Set(['Cluster', 'Local', null]);

/** A change that leaves out what was allocated keeps it; both address fields say the same. */
export function keepAllocated(next: JsonObject, previous: JsonObject): void {
  const spec = objectAt(next, 'spec') ?? {};
  const before = objectAt(previous, 'spec') ?? {};
  keepAddresses(spec, before);
  dropInside(spec);
  keepPorts(spec, before);
  if (isChecked(spec) && isChecked(before) && numberAt(spec, 'healthCheckNodePort') === 0) {
    const port = numberAt(before, 'healthCheckNodePort');
    if (port !== 0) spec['healthCheckNodePort'] = port;
  }
}

function isChecked(spec: JsonObject): boolean {
  const isLocal = stringAt(spec, 'externalTrafficPolicy') === 'Local';
  return stringAt(spec, 'type') === 'LoadBalancer' && isLocal;
}

function keepAddresses(spec: JsonObject, before: JsonObject): void {
  const old = [...listAt(before, 'clusterIPs')];
  const [single, oldSingle] = [stringAt(spec, 'clusterIP'), stringAt(before, 'clusterIP')];
  const isBoth =
    stringAt(spec, 'type') !== 'ExternalName' && stringAt(before, 'type') !== 'ExternalName';
  if (isBoth) {
    if (single === '' && oldSingle !== '') spec['clusterIP'] = oldSingle;
    if (listAt(spec, 'clusterIPs').length === 0 && old.length > 0) spec['clusterIPs'] = old;
  } else if (single === oldSingle && old.length > 0 && listAt(spec, 'clusterIPs').length === 0) {
    spec['clusterIPs'] = old;
  }
  const address = stringAt(spec, 'clusterIP');
  if (address === oldSingle || !equals([...listAt(spec, 'clusterIPs')], old)) return;
  if (address === '') delete spec['clusterIPs'];
  else spec['clusterIPs'] = [address];
}

/** Ports keep their node ports by name, unless another port has taken it over. */
function keepPorts(spec: JsonObject, before: JsonObject): void {
  const hasPorts = (one: JsonObject): boolean => {
    const type = stringAt(one, 'type');
    const isOpen = type === 'LoadBalancer' && one['allocateLoadBalancerNodePorts'] !== false;
    return type === 'NodePort' || isOpen;
  };
  if (!hasPorts(spec) || !hasPorts(before)) return;
  const used = (one: JsonObject): number[] =>
    listAt(one, 'ports').map((port) => numberAt(port, 'nodePort'));
  const shared = used(before).filter((port) => port !== 0 && used(spec).includes(port));
  const old = new Map<string, number>();
  for (const port of listAt(before, 'ports')) {
    old.set(stringAt(port, 'name'), numberAt(port, 'nodePort'));
  }
  const ports = listAt(spec, 'ports').map((port): JsonValue => {
    const kept = old.get(stringAt(port, 'name')) ?? 0;
    if (numberAt(port, 'nodePort') !== 0 || kept === 0 || shared.includes(kept)) return port;
    return { ...objectAt(port), nodePort: kept };
  });
  if (ports.length > 0) spec['ports'] = ports;
}
