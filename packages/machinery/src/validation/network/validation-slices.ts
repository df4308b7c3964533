/** Slices of endpoints. */

import { isIPv4, isIPv6 } from 'node:net';
import {
  duplicate,
  invalidValue,
  notSupported,
  required,
  tooMany,
} from '../../meta/fielderrors.ts';
import { listAt, objectAt, stringAt } from '../../json/json.ts';
import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import {
  dnsLabelErrors,
  dnsSubdomainErrors,
  labelValueErrors,
  qualifiedNameErrors,
} from '../../meta/names.ts';
import { checkEndpointIp, checkIp } from '../field/validation-addresses.ts';
import {
  checkDnsLabel,
  eachObject,
  invalidEach,
  isSame,
  oneOf,
  type Findings,
} from '../field/validation-rules.ts';

const ENDPOINTS_MAX = 1000;
const ADDRESSES_MAX = 100;
const PORTS_MAX = 20000;
const HINTS_MAX = 8;
const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];

/** Endpoints that an update leaves as they were are not judged again. */
export function checkSlice(found: Findings, slice: JsonObject, previous?: JsonObject): void {
  const type = stringAt(slice, 'addressType');
  oneOf(found, 'addressType', type, ['FQDN', 'IPv4', 'IPv6']);
  const ports = listAt(slice, 'ports');
  if (ports.length > PORTS_MAX) found.push(tooMany('ports', ports.length, PORTS_MAX));
  else checkPorts(found, ports);
  const endpoints = listAt(slice, 'endpoints');
  if (previous !== undefined && isSame(slice['endpoints'], previous['endpoints'])) return;
  if (endpoints.length > ENDPOINTS_MAX) {
    found.push(tooMany('endpoints', endpoints.length, ENDPOINTS_MAX));
    return;
  }
  eachObject(endpoints, 'endpoints', (endpoint, at) => checkEndpoint(found, at, endpoint, type));
}

function checkEndpoint(found: Findings, at: string, endpoint: JsonObject, type: string): void {
  const addresses = listAt(endpoint, 'addresses');
  const path = `${at}.addresses`;
  if (addresses.length === 0) found.push(required(path, 'must contain at least 1 address'));
  else if (addresses.length > ADDRESSES_MAX) {
    found.push(tooMany(path, addresses.length, ADDRESSES_MAX));
  }
  for (const [index, address] of addresses.entries()) {
    checkAddress(found, path, index, address, type);
  }
  const node = endpoint['nodeName'];
  if (typeof node === 'string') {
    invalidEach(found, `${at}.nodeName`, node, dnsSubdomainErrors(node));
  }
  const hostname = endpoint['hostname'];
  if (typeof hostname === 'string') checkDnsLabel(found, `${at}.hostname`, hostname);
  const hints = objectAt(endpoint, 'hints');
  if (checkHints(found, `${at}.hints.forZones`, hints, labelValueErrors)) {
    checkHints(found, `${at}.hints.forNodes`, hints, dnsSubdomainErrors);
  }
}

/** False if there are too many: upstream looks no further then. */
function checkHints(
  found: Findings,
  path: string,
  hints: JsonObject | undefined,
  nameErrors: (name: string) => string[],
): boolean {
  const items = listAt(hints, path.slice(path.lastIndexOf('.') + 1));
  if (items.length > HINTS_MAX) {
    found.push(tooMany(path, items.length, HINTS_MAX));
    return false;
  }
  const names = new Set<string>();
  eachObject(items, path, (item, at) => {
    const name = stringAt(item, 'name');
    if (names.has(name)) found.push(duplicate(`${at}.name`, name));
    names.add(name);
    invalidEach(found, `${at}.name`, name, nameErrors(name));
  });
  return true;
}

function checkPorts(found: Findings, ports: readonly JsonValue[]): void {
  const names = new Set<string>();
  eachObject(ports, 'ports', (port, at) => {
    const name = stringAt(port, 'name');
    if (name !== '') checkDnsLabel(found, `${at}.name`, name);
    if (names.has(name)) found.push(duplicate(`${at}.name`, name));
    names.add(name);
    const protocol = port['protocol'];
    if (typeof protocol !== 'string') found.push(required(`${at}.protocol`));
    else if (!PROTOCOLS.includes(protocol)) {
      found.push(notSupported(`${at}.protocol`, protocol, PROTOCOLS));
    }
    const application = port['appProtocol'];
    if (typeof application !== 'string') return;
    invalidEach(found, `${at}.appProtocol`, application, qualifiedNameErrors(application));
  });
}

function checkAddress(
  found: Findings,
  path: string,
  index: number,
  value: JsonValue,
  type: string,
): void {
  const address = typeof value === 'string' ? value : '';
  const at = `${path}[${index}]`;
  if (type === 'FQDN') checkDomain(found, at, address);
  if (type !== 'IPv4' && type !== 'IPv6') return;
  if (!checkIp(found, at, address)) return;
  if (type === 'IPv4' ? !isIPv4(address) : !isIPv6(address)) {
    found.push(invalidValue(path, address, `must be an ${type} address`));
  }
  checkEndpointIp(found, at, address);
}

/** A domain of two labels or more; a dot may stand at its end. */
function checkDomain(found: Findings, path: string, domain: string): void {
  if (domain === '') {
    found.push(required(path));
    return;
  }
  const name = domain.replace(/\.$/, '');
  const texts = dnsSubdomainErrors(name);
  const labels = name.split('.');
  if (texts.length > 0) found.push(invalidValue(path, name, texts.join(',')));
  else if (labels.length < 2) {
    const text = 'should be a domain with at least two segments separated by dots';
    found.push(invalidValue(path, name, text));
  } else {
    for (const label of labels) {
      const faults = dnsLabelErrors(label);
      if (faults.length === 0) continue;
      found.push(invalidValue(path, label, faults.join(',')));
      return;
    }
  }
}
