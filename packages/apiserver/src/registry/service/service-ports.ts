/** Node ports of Services: of each port, and of the check of a balancer's health. */
import { invalidValue } from '@megaplane/machinery/fielderrors';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { internalError, invalid, unclassified, type Status } from '@megaplane/machinery/status';
import { NODE_PORTS } from './node-port-range.ts';
import type { AllocationCounts } from '../../metrics/allocation-counts.ts';

/** Where node ports come from: what is wrong with one, and one that is free (0: none is left). */
interface PortSource {
  fault(port: number): string;
  next(): number;
  take(port: number): void;
}

/** Ports of the range that nobody has; `taken` learns of those that are given. */
export function portRange(
  taken: Set<number>,
  below: (n: number) => number,
  counts: AllocationCounts,
): PortSource {
  let drawn = 0;
  return {
    fault: (port) => {
      const fault = portFault(port, taken);
      if (fault !== '') counts.portRefused('static');
      return fault;
    },
    next: () => {
      drawn = freePort(taken, below);
      if (drawn === 0) counts.portRefused('dynamic');
      return drawn;
    },
    take: (port) => {
      taken.add(port);
      counts.portGiven(port === drawn ? 'dynamic' : 'static');
    },
  };
}

/** Of a dry run: any port that nobody has, and the next one after those of the same Service. */
export function portsOfDryRun(taken: ReadonlySet<number>): PortSource {
  const own: number[] = [];
  return {
    fault: (port) => (own.includes(port) || taken.has(port) ? TAKEN : ''),
    next: () => (own.length === 0 ? NODE_PORTS.last + 1 : Math.max(...own)) + 1,
    take: (port) => own.push(port),
  };
}

const TAKEN = 'provided port is already allocated';

/**
 * Gives a Service the node ports that it wants and lacks, in place; ports of one number under
 * several protocols share one. Refuses in upstream's words.
 */
export function givePorts(
  service: JsonObject,
  source: PortSource,
  isUpdate: boolean,
): Status | null {
  const spec = objectAt(service, 'spec') ?? {};
  const type = stringAt(spec, 'type');
  if (type !== 'NodePort' && type !== 'LoadBalancer') return null;
  const double = isUpdate ? doublePort(spec) : '';
  if (double !== '') return unclassified(`duplicate nodePort: ${double}`);
  const refusal = givePortsOf(service, spec, source);
  if (refusal !== null) return refusal;
  if (type !== 'LoadBalancer' || stringAt(spec, 'externalTrafficPolicy') !== 'Local') return null;
  return giveHealthPort(spec, source);
}

/** A port of one protocol that a Service has twice, as Go prints it; '' where there is none. */
function doublePort(spec: JsonObject): string {
  const seen = new Set<string>();
  for (const port of listAt(spec, 'ports')) {
    const [protocol, number] = [stringAt(port, 'protocol'), numberAt(port, 'nodePort')];
    const shown = `{${protocol} ${number}}`;
    if (number !== 0 && seen.has(shown)) return shown;
    seen.add(shown);
  }
  return '';
}

function givePortsOf(service: JsonObject, spec: JsonObject, source: PortSource): Status | null {
  const isOpen =
    stringAt(spec, 'type') === 'NodePort' || spec['allocateLoadBalancerNodePorts'] !== false;
  const ports = listAt(spec, 'ports').map((port): JsonObject => ({ ...objectAt(port) }));
  const given = new Map<number, number>();
  for (const [index, port] of ports.entries()) {
    const number = numberAt(port, 'port');
    const own = numberAt(port, 'nodePort');
    if (own === 0 && !isOpen) continue;
    const shared = given.get(number);
    if (shared !== undefined && (own === 0 || own === shared)) {
      port['nodePort'] = shared;
      continue;
    }
    const alike = ports.filter((one) => numberAt(one, 'port') === number);
    const asked = own || alike.map((one) => numberAt(one, 'nodePort')).find((one) => one !== 0);
    const chosen = asked ?? source.next();
    if (chosen === 0) return internalError('failed to allocate a nodePort: range is full');
    const fault = asked === undefined ? '' : source.fault(chosen);
    if (fault !== '') {
      const error = invalidValue(`spec.ports[${index}].nodePort`, chosen, fault);
      return invalid({ group: '', name: 'Service' }, stringAt(service, 'metadata', 'name'), [
        error,
      ]);
    }
    source.take(chosen);
    if (shared === undefined) given.set(number, chosen);
    port['nodePort'] = chosen;
  }
  if (ports.length > 0) spec['ports'] = ports;
  return null;
}

function giveHealthPort(spec: JsonObject, source: PortSource): Status | null {
  const asked = numberAt(spec, 'healthCheckNodePort');
  const fault = asked === 0 ? '' : source.fault(asked);
  if (fault !== '') {
    return internalError(`failed to allocate requested HealthCheck NodePort ${asked}: ${fault}`);
  }
  const chosen = asked || source.next();
  if (chosen === 0) {
    return internalError('failed to allocate a HealthCheck NodePort 0: range is full');
  }
  source.take(chosen);
  spec['healthCheckNodePort'] = chosen;
  return null;
}

function portFault(port: number, taken: ReadonlySet<number>): string {
  if (port < NODE_PORTS.first || port > NODE_PORTS.last) {
    const range = `The range of valid ports is ${NODE_PORTS.first}-${NODE_PORTS.last}`;
    return `provided port is not in the valid range. ${range}`;
  }
  return taken.has(port) ? TAKEN : '';
}

/** A port that nobody has; 0 where none is left. */
function freePort(taken: ReadonlySet<number>, below: (n: number) => number): number {
  const room = NODE_PORTS.last - NODE_PORTS.first + 1;
  const first = below(room);
  for (let step = 0; step < room; step++) {
    const port = NODE_PORTS.first + ((first + step) % room);
    if (!taken.has(port)) return port;
  }
  return 0;
}
