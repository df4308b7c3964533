/** The endpoints of a service, as EndpointSlices and Endpoints both begin from. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import type { PodEndpoint } from './pod-endpoints.ts';

export const HEADLESS = 'service.kubernetes.io/headless';
export const TRIGGER_TIME = 'endpoints.kubernetes.io/last-change-trigger-time';

/** A pod that a service selects and that has an address. */
export interface Backend extends PodEndpoint {
  readonly namespace: string;
  readonly name: string;
  readonly isReady: boolean;
  readonly isTerminating: boolean;
  /** When its readiness changed last, seconds since 1970; 0 where that is not known. */
  readonly readyS: number;
  readonly zone: string;
}

export interface EndpointPort {
  readonly name: string;
  readonly port: number;
  readonly protocol: string;
  readonly appProtocol: string;
}

export function isHeadless(service: JsonObject): boolean {
  return stringAt(service, 'spec', 'clusterIP') === 'None';
}

export function publishesNotReady(service: JsonObject): boolean {
  return valueAt(service, 'spec', 'publishNotReadyAddresses') === true;
}

/** Whether endpoints are made for it at all. */
export function hasSelector(service: JsonObject): boolean {
  const selector = objectAt(service, 'spec', 'selector');
  const isExternal = stringAt(service, 'spec', 'type') === 'ExternalName';
  return selector !== undefined && Object.keys(selector).length > 0 && !isExternal;
}

/** The ports of the service as this pod serves them; those that it does not have are left out. */
export function portsOf(service: JsonObject, backend: PodEndpoint): EndpointPort[] {
  const ports: EndpointPort[] = [];
  for (const port of listAt(service, 'spec', 'ports')) {
    const protocol = stringAt(port, 'protocol') || 'TCP';
    const target = valueAt(port, 'targetPort');
    const number =
      typeof target === 'string' && target !== ''
        ? backend.ports.find(([name, of]) => name === target && of === protocol)?.[2]
        : typeof target === 'number' && target !== 0
          ? target
          : numberAt(port, 'port');
    if (number === undefined) continue;
    const appProtocol = stringAt(port, 'appProtocol');
    ports.push({ name: stringAt(port, 'name'), port: number, protocol, appProtocol });
  }
  return ports;
}

export function hostnameOf(service: JsonObject, backend: PodEndpoint): string {
  const isInDomain = backend.subdomain === stringAt(service, 'metadata', 'name');
  return isInDomain ? backend.hostname : '';
}

export function targetOf({ namespace, name, uid }: Backend): JsonObject {
  return { kind: 'Pod', namespace, name, uid };
}

export type Family = 'IPv4' | 'IPv6';

export function familyOf(address: string): Family {
  return address.includes(':') ? 'IPv6' : 'IPv4';
}

/** The families that a service has addresses of. */
export function familiesOf(service: JsonObject): Family[] {
  const given = listAt(service, 'spec', 'ipFamilies').filter(
    (one): one is Family => one === 'IPv4' || one === 'IPv6',
  );
  if (given.length > 0) return given;
  const address = stringAt(service, 'spec', 'clusterIP');
  return [address === '' || address === 'None' ? 'IPv4' : familyOf(address)];
}

/**
 * When the change happened that new endpoints tell of: the earliest time that is news since the
 * last look, so that the way from there to the proxies can be measured.
 */
export class TriggerTimes {
  #serviceTime = '';
  #podTimes: Map<string, number> = new Map();

  /** RFC 3339; '' where nothing of it is news. */
  note(service: JsonObject, backends: readonly Backend[], format: (s: number) => string): string {
    let earliest = '';
    const earlier = (time: string): void => {
      if (earliest === '' || time < earliest) earliest = time;
    };
    const times: Map<string, number> = new Map();
    for (const { name, readyS } of backends) {
      if (readyS === 0) continue;
      times.set(name, readyS);
      if (readyS > (this.#podTimes.get(name) ?? 0)) earlier(format(readyS));
    }
    const created = stringAt(service, 'metadata', 'creationTimestamp');
    if (created > this.#serviceTime) earlier(created);
    this.#serviceTime = created;
    this.#podTimes = times;
    return earliest;
  }
}
