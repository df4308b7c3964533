/** Services: ports, types and addresses. */

import { isIPv6 } from 'node:net';
import {
  duplicate,
  forbiddenField,
  invalidValue,
  notSupported,
  required,
  typedText,
} from '../../meta/fielderrors.ts';
import { listAt, numberAt, objectAt, stringAt } from '../../json/json.ts';
import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import { dnsSubdomainErrors, portNumberErrors, qualifiedNameErrors } from '../../meta/names.ts';
import {
  checkCidr,
  checkEndpointIp,
  checkHostname,
  checkIp,
} from '../field/validation-addresses.ts';
import { checkPortReference } from '../pod/validation-containers.ts';
import { LABEL_NAME } from '../field/validation-metadata.ts';
import {
  checkDnsLabel,
  checkLabels,
  eachObject,
  IMMUTABLE,
  invalidEach,
  oneOf,
  oneOfSet,
  type Findings,
} from '../field/validation-rules.ts';
import type { RuleTable } from '../field/rule-table.ts';

const TYPES = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'];
const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];
const FAMILIES = ['IPv4', 'IPv6'];
const POLICIES = ['PreferDualStack', 'RequireDualStack', 'SingleStack'];
const DISTRIBUTIONS = ['PreferClose', 'PreferSameZone', 'PreferSameNode'];
const AFFINITY_SECONDS_MAX = 86400;
const UNCHANGEABLE = 'may not change once set';

export const SERVICE_RULES: RuleTable = {
  services: {
    name: LABEL_NAME,
    create: checkService,
    change: changeService,
    subresources: { status: checkPoints },
  },
};

function isHeadless(service: JsonObject): boolean {
  return listAt(service, 'spec', 'clusterIPs')[0] === 'None';
}

function checkService(found: Findings, service: JsonObject): void {
  const spec = objectAt(service, 'spec') ?? {};
  const type = stringAt(spec, 'type');
  const ports = listAt(spec, 'ports');
  const isNone = isHeadless(service) || stringAt(spec, 'clusterIP') === 'None';
  if (ports.length === 0 && !isNone && type !== 'ExternalName') {
    found.push(required('spec.ports'));
  }
  if (isNone && (type === 'LoadBalancer' || type === 'NodePort')) {
    const text = `may not be set to 'None' for ${type} services`;
    found.push(invalidValue('spec.clusterIPs[0]', 'None', text));
  }
  if (type === 'ExternalName') checkExternalName(found, spec);
  checkPorts(found, ports);
  checkLabels(found, 'spec.selector', objectAt(spec, 'selector'));
  oneOf(found, 'spec.sessionAffinity', spec['sessionAffinity'], ['ClientIP', 'None']);
  checkAffinitySeconds(found, spec);
  if (type !== 'ExternalName') checkAddresses(found, spec);
  for (const [index, ip] of listAt(spec, 'externalIPs').entries()) {
    const path = `spec.externalIPs[${index}]`;
    if (checkIp(found, path, ip)) checkEndpointIp(found, path, ip);
  }
  oneOf(found, 'spec.type', spec['type'], TYPES);
  checkUniquePorts(found, ports, type);
  checkBalancer(found, spec, type);
  checkTraffic(found, spec, type);
}

function checkExternalName(found: Findings, spec: JsonObject): void {
  for (const field of ['clusterIPs', 'ipFamilies']) {
    if (listAt(spec, field).length === 0) continue;
    found.push(forbiddenField(`spec.${field}`, 'may not be set for ExternalName services'));
  }
  if (spec['ipFamilyPolicy'] !== undefined) {
    found.push(forbiddenField('spec.ipFamilyPolicy', 'may not be set for ExternalName services'));
  }
  const name = stringAt(spec, 'externalName').replace(/\.$/, '');
  if (name === '') found.push(required('spec.externalName'));
  else invalidEach(found, 'spec.externalName', name, dnsSubdomainErrors(name));
}

function checkPorts(found: Findings, ports: readonly JsonValue[]): void {
  const names = new Set<string>();
  eachObject(ports, 'spec.ports', (port, at) => {
    const name = stringAt(port, 'name');
    if (name === '') {
      if (ports.length > 1) found.push(required(`${at}.name`));
    } else {
      checkDnsLabel(found, `${at}.name`, name);
      if (names.has(name)) found.push(duplicate(`${at}.name`, name));
      names.add(name);
    }
    const number = typeof port['port'] === 'number' ? port['port'] : 0;
    invalidEach(found, `${at}.port`, number, portNumberErrors(number));
    oneOf(found, `${at}.protocol`, port['protocol'], PROTOCOLS);
    checkPortReference(found, `${at}.targetPort`, port['targetPort']);
    const protocol = port['appProtocol'];
    if (typeof protocol === 'string') {
      invalidEach(found, `${at}.appProtocol`, protocol, qualifiedNameErrors(protocol));
    }
  });
}

function checkUniquePorts(found: Findings, ports: readonly JsonValue[], type: string): void {
  const nodePorts = new Set<string>();
  const numbers = new Set<string>();
  eachObject(ports, 'spec.ports', (port, at) => {
    const nodePort = port['nodePort'];
    if (typeof nodePort !== 'number' || nodePort === 0) return;
    if (type === 'ClusterIP') {
      const text = "may not be used when `type` is 'ClusterIP'";
      found.push(forbiddenField(`${at}.nodePort`, text));
    }
    const key = `${stringAt(port, 'protocol')}/${nodePort}`;
    if (nodePorts.has(key)) found.push(duplicate(`${at}.nodePort`, nodePort));
    nodePorts.add(key);
  });
  eachObject(ports, 'spec.ports', (port, at) => {
    const protocol = stringAt(port, 'protocol');
    const number = numberAt(port, 'port');
    const key = `${protocol}/${number}`;
    if (numbers.has(key)) {
      const value = { Name: '', Protocol: protocol, AppProtocol: null, Port: number };
      found.push(duplicate(at, { ...value, TargetPort: 0, NodePort: 0 }));
    }
    numbers.add(key);
  });
}

function checkAffinitySeconds(found: Findings, spec: JsonObject): void {
  if (spec['sessionAffinity'] !== 'ClientIP') return;
  const path = 'spec.sessionAffinityConfig.clientIP.timeoutSeconds';
  const seconds = objectAt(spec, 'sessionAffinityConfig', 'clientIP')?.['timeoutSeconds'];
  if (typeof seconds !== 'number') found.push(required(path));
  else if (seconds <= 0 || seconds > AFFINITY_SECONDS_MAX) {
    const text = `must be greater than 0 and less than ${AFFINITY_SECONDS_MAX}`;
    found.push(invalidValue(path, seconds, text));
  }
}

/**
 * Addresses and families of a Service's spec; addresses among `kept` stood there before and stay,
 * whatever they are.
 */
export function checkAddresses(
  found: Findings,
  spec: JsonObject,
  kept: readonly JsonValue[] = [],
): void {
  const path = 'spec.clusterIPs';
  const single = stringAt(spec, 'clusterIP');
  const list = listAt(spec, 'clusterIPs');
  if (single !== '') {
    if (list.length === 0) found.push(required(path));
    else if (list[0] !== single) {
      found.push(invalidValue(path, [...list], 'first value must match `clusterIP`'));
    }
  } else if (list.length > 0) {
    const text = 'must be empty when `clusterIP` is not specified';
    found.push(invalidValue(path, [...list], text));
  }
  checkFamilies(found, spec);
  const before = found.length;
  for (const [index, ip] of list.entries()) {
    if (index > 0 || ip !== 'None') checkIp(found, `${path}[${index}]`, ip, kept);
    else if (list.length > 1) {
      found.push(invalidValue(path, [...list], "'None' must be the first and only value"));
    }
  }
  if (list.length > 2) found.push(invalidValue(path, [...list], 'may only hold up to 2 values'));
  if (found.length > before) return;
  const isSixth = list.map((ip) => typeof ip === 'string' && isIPv6(ip));
  if (list.length === 2 && isSixth[0] === isSixth[1]) {
    const text = 'may specify no more than one IP for each IP family';
    found.push(invalidValue(path, [...list], text));
  }
  if (list[0] === 'None') return;
  for (const [index, family] of listAt(spec, 'ipFamilies').entries()) {
    if (index >= list.length || family === (isSixth[index] === true ? 'IPv6' : 'IPv4')) continue;
    if (typeof family !== 'string' || !FAMILIES.includes(family)) continue;
    const text = `expected an ${family} value as indicated by \`ipFamilies[${index}]\``;
    found.push(invalidValue(`${path}[${index}]`, list[index], text));
  }
}

function checkFamilies(found: Findings, spec: JsonObject): void {
  const seen = new Set<JsonValue>();
  for (const [index, family] of listAt(spec, 'ipFamilies').entries()) {
    const path = `spec.ipFamilies[${index}]`;
    if (typeof family !== 'string' || !FAMILIES.includes(family)) {
      found.push(notSupported(path, family, FAMILIES));
    }
    if (seen.has(family)) found.push(duplicate(path, family));
    seen.add(family);
  }
  oneOfSet(found, 'spec.ipFamilyPolicy', spec['ipFamilyPolicy'], POLICIES);
}

function checkBalancer(found: Findings, spec: JsonObject, type: string): void {
  const only = "may only be used when `type` is 'LoadBalancer'";
  const isBalancer = type === 'LoadBalancer';
  if (listAt(spec, 'loadBalancerSourceRanges').length > 0 && !isBalancer) {
    found.push(forbiddenField('spec.LoadBalancerSourceRanges', only));
  }
  for (const [index, range] of listAt(spec, 'loadBalancerSourceRanges').entries()) {
    const text = typeof range === 'string' ? range.trim() : '';
    checkCidr(found, `spec.LoadBalancerSourceRanges[${index}]`, text);
  }
  if (spec['allocateLoadBalancerNodePorts'] !== undefined && !isBalancer) {
    found.push(forbiddenField('spec.allocateLoadBalancerNodePorts', only));
  }
  checkClass(found, spec);
}

/** Told twice of an update, as upstream. */
function checkClass(found: Findings, spec: JsonObject): void {
  const name = spec['loadBalancerClass'];
  if (typeof name !== 'string') return;
  const path = 'spec.loadBalancerClass';
  if (stringAt(spec, 'type') === 'LoadBalancer') {
    invalidEach(found, path, name, qualifiedNameErrors(name));
    return;
  }
  found.push(forbiddenField(path, "may only be used when `type` is 'LoadBalancer'"));
}

function checkTraffic(found: Findings, spec: JsonObject, type: string): void {
  const isOutside =
    type === 'LoadBalancer' ||
    type === 'NodePort' ||
    (type === 'ClusterIP' && listAt(spec, 'externalIPs').length > 0);
  const policies = ['Cluster', 'Local'];
  const path = 'spec.externalTrafficPolicy';
  if (isOutside) {
    oneOf(found, path, spec['externalTrafficPolicy'], policies);
  } else if (stringAt(spec, 'externalTrafficPolicy') !== '') {
    const text = 'may only be set for externally-accessible services';
    found.push(invalidValue(path, spec['externalTrafficPolicy'], text));
  }
  const inside = spec['internalTrafficPolicy'];
  if (inside !== undefined) oneOfSet(found, 'spec.internalTrafficPolicy', inside, policies);
  else if (type !== 'ExternalName') found.push(required('spec.internalTrafficPolicy'));
  const spread = spec['trafficDistribution'];
  if (typeof spread === 'string' && !DISTRIBUTIONS.includes(spread)) {
    found.push(notSupported('spec.trafficDistribution', spread, DISTRIBUTIONS));
  }
  const health = spec['healthCheckNodePort'];
  if (typeof health !== 'number' || health === 0) return;
  const at = 'spec.healthCheckNodePort';
  if (type === 'LoadBalancer' && spec['externalTrafficPolicy'] === 'Local') {
    invalidEach(found, at, health, portNumberErrors(health));
    return;
  }
  const text =
    "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
  found.push(invalidValue(at, health, text));
}

function changeService(found: Findings, next: JsonObject, previous: JsonObject): void {
  changeReach(found, next, previous);
  const [after, before] = [objectAt(next, 'spec') ?? {}, objectAt(previous, 'spec') ?? {}];
  const { loadBalancerClass: name } = after;
  const isBalancer = [after, before].every((spec) => stringAt(spec, 'type') === 'LoadBalancer');
  if (isBalancer && name !== before['loadBalancerClass']) {
    const shown = typeof name === 'string' ? typedText(name) : null;
    found.push(invalidValue('spec.loadBalancerClass', shown, UNCHANGEABLE));
  }
  checkClass(found, after);
  const isChecked = [after, before].every((spec) => spec['externalTrafficPolicy'] === 'Local');
  const port = 'healthCheckNodePort';
  if (isBalancer && isChecked && numberAt(after, port) !== numberAt(before, port)) {
    found.push(forbiddenField(`spec.${port}`, IMMUTABLE));
  }
}

function changeReach(found: Findings, next: JsonObject, previous: JsonObject): void {
  const types = [stringAt(next, 'spec', 'type'), stringAt(previous, 'spec', 'type')];
  if (types.includes('ExternalName')) return;
  if (isHeadless(next) && isHeadless(previous)) return;
  changeAddresses(found, next, previous);
  if (isHeadless(next) === isHeadless(previous)) changeFamilies(found, next, previous);
}

function changeFamilies(found: Findings, next: JsonObject, previous: JsonObject): void {
  const after = listAt(next, 'spec', 'ipFamilies');
  const before = listAt(previous, 'spec', 'ipFamilies');
  const path = 'spec.ipFamilies[0]';
  const value = after.length === 0 ? null : [...after];
  if (after.length === before.length) {
    for (const [index, family] of before.entries()) {
      if (family !== after[index]) found.push(invalidValue(path, value, UNCHANGEABLE));
    }
    return;
  }
  const isLess = after.length < before.length;
  if (isLess && listAt(next, 'spec', 'clusterIPs').length === 0) {
    found.push(invalidValue(path, value, 'primary ipFamily can not be unset'));
  }
  if (before.length > 0 && after.length > 0 && after[0] !== before[0]) {
    const addresses = isLess ? [...listAt(next, 'spec', 'clusterIPs')] : value;
    found.push(invalidValue(path, addresses, UNCHANGEABLE));
  }
  if (isLess && after.length === 1) checkRelease(found, next, 'ipFamily');
}

/** A second address goes only along with the wish for one stack. */
function checkRelease(found: Findings, service: JsonObject, what: string): void {
  const policy = objectAt(service, 'spec')?.['ipFamilyPolicy'];
  if (policy === 'SingleStack') return;
  const text = `must be set to 'SingleStack' when releasing the secondary ${what}`;
  found.push(invalidValue('spec.ipFamilyPolicy', policy, text));
}

function changeAddresses(found: Findings, next: JsonObject, previous: JsonObject): void {
  const after = listAt(next, 'spec', 'clusterIPs');
  const before = listAt(previous, 'spec', 'clusterIPs');
  const path = 'spec.clusterIPs';
  if (after.length === before.length) {
    for (const [index, ip] of before.entries()) {
      if (ip === after[index]) continue;
      found.push(invalidValue(`${path}[${index}]`, [...after], UNCHANGEABLE));
    }
    return;
  }
  if (after.length === 0) {
    found.push(invalidValue(`${path}[0]`, null, 'primary clusterIP can not be unset'));
  } else if (before.length > 0 && after[0] !== before[0]) {
    found.push(invalidValue(`${path}[0]`, [...after], UNCHANGEABLE));
  }
  if (before.length > after.length && after.length === 1) checkRelease(found, next, 'clusterIP');
}

/** Where a load balancer is reached, which only services of that type have. */
function checkPoints(found: Findings, service: JsonObject, previous: JsonObject): void {
  const path = 'status.loadBalancer.ingress';
  const points = listAt(service, 'status', 'loadBalancer', 'ingress');
  if (points.length > 0 && stringAt(service, 'spec', 'type') !== 'LoadBalancer') {
    found.push(forbiddenField(path, "may only be used when `spec.type` is 'LoadBalancer'"));
    return;
  }
  const before = listAt(previous, 'status', 'loadBalancer', 'ingress');
  const kept = before.map((point) => stringAt(point, 'ip'));
  eachObject(points, path, (point, at) => {
    const ip = stringAt(point, 'ip');
    if (ip !== '') checkIp(found, `${at}.ip`, ip, kept);
    const mode = point['ipMode'];
    if (typeof mode !== 'string') {
      if (ip !== '') found.push(required(`${at}.ipMode`, 'must be specified when `ip` is set'));
    } else if (ip === '') {
      const text = 'may not be specified when `ip` is not set';
      found.push(forbiddenField(`${at}.ipMode`, text));
    } else oneOfSet(found, `${at}.ipMode`, mode, ['Proxy', 'VIP']);
    checkHostname(found, `${at}.hostname`, stringAt(point, 'hostname'));
  });
}
