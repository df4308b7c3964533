/** Kinds that configure the network: classes of ingresses, addresses and networks of Services. */
import {
  forbiddenField,
  invalidValue,
  notSupportedText,
  required,
  tooLong,
} from '../../meta/fielderrors.ts';
import { goForm } from '../../gotext/go-value-format.ts';
import { parseNetwork } from '../../meta/ip-address.ts';
import { listAt, objectAt, stringAt } from '../../json/json.ts';
import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import { dnsLabelErrors, dnsSubdomainErrors, pathSegmentErrors } from '../../meta/names.ts';
import { canonicalIpFaults, canonicalNetworkFaults } from '../field/validation-addresses.ts';
import { IMMUTABLE, immutable, invalidEach, type Findings } from '../field/validation-rules.ts';
import type { RuleTable } from '../field/rule-table.ts';

export const NETWORK_CONFIG_RULES: RuleTable = {
  'ingressclasses.networking.k8s.io': {
    create: checkIngressClass,
    change: (found, next, previous) => {
      const [after, before] = [stringAt(next, 'spec', 'controller'), controllerOf(previous)];
      immutable(found, 'spec.controller', after, before);
    },
  },
  'ipaddresses.networking.k8s.io': {
    name: (name) => canonicalIpFaults(name),
    create: checkAddress,
    change: (found, next, previous) => {
      const [after, before] = [next, previous].map((one) => objectAt(one, 'spec', 'parentRef'));
      immutable(found, 'spec.parentRef', after, before, 'networking.v1.ParentReference');
    },
  },
  'servicecidrs.networking.k8s.io': { create: checkServiceNetworks, update: keepServiceNetworks },
};

function controllerOf(ingressClass: JsonObject): string {
  return stringAt(ingressClass, 'spec', 'controller');
}

const CONTROLLER_LENGTH_MAX = 250;
const HTTP_PATH_FORMAT = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+";
const HTTP_PATH = new RegExp(`^${HTTP_PATH_FORMAT}$`);

function checkIngressClass(found: Findings, ingressClass: JsonObject): void {
  const path = 'spec.controller';
  const controller = controllerOf(ingressClass);
  if (controller.length > CONTROLLER_LENGTH_MAX) {
    found.push(tooLong(path, CONTROLLER_LENGTH_MAX));
  }
  checkDomainPath(found, path, controller);
  const parameters = objectAt(ingressClass, 'spec', 'parameters');
  if (parameters !== undefined) checkParameters(found, 'spec.parameters', parameters);
}

/** `example.com/path`. */
function checkDomainPath(found: Findings, path: string, value: string): void {
  if (value === '') {
    found.push(required(path));
    return;
  }
  const slash = value.indexOf('/');
  const [host, rest] = [value.slice(0, Math.max(slash, 0)), value.slice(slash + 1)];
  if (host === '' || rest === '') {
    const text = 'must be a domain-prefixed path (such as "acme.io/foo")';
    found.push(invalidValue(path, value, text));
    return;
  }
  invalidEach(found, path, host, dnsSubdomainErrors(host));
  if (HTTP_PATH.test(rest)) return;
  const text = `Invalid path (regex used for validation is '${HTTP_PATH_FORMAT}')`;
  found.push(invalidValue(path, rest, text));
}

/** A name of one step of a path, which must be there. */
function checkSegment(found: Findings, path: string, value: string): void {
  if (value === '') found.push(required(path));
  else invalidEach(found, path, value, pathSegmentErrors(value));
}

function checkParameters(found: Findings, path: string, parameters: JsonObject): void {
  const group = parameters['apiGroup'];
  if (typeof group === 'string') {
    invalidEach(found, `${path}.apiGroup`, group, dnsSubdomainErrors(group));
  }
  for (const field of ['kind', 'name']) {
    checkSegment(found, `${path}.${field}`, stringAt(parameters, field));
  }
  const { scope, namespace } = parameters;
  const at = `${path}.namespace`;
  if (typeof scope !== 'string') found.push(required(`${path}.scope`));
  else if (scope === 'Namespace') {
    if (typeof namespace !== 'string') {
      found.push(required(at, "`parameters.scope` is set to 'Namespace'"));
    } else invalidEach(found, at, namespace, dnsLabelErrors(namespace));
  } else if (scope !== 'Cluster') {
    found.push(notSupportedText(`${path}.scope`, scope, ['Cluster', 'Namespace']));
  } else if (namespace !== undefined) {
    found.push(forbiddenField(at, "`parameters.scope` is set to 'Cluster'"));
  }
}

/** Whose an address is. */
function checkAddress(found: Findings, address: JsonObject): void {
  const path = 'spec.parentRef';
  const parent = objectAt(address, 'spec', 'parentRef');
  if (parent === undefined) {
    found.push(required(path));
    return;
  }
  const group = stringAt(parent, 'group');
  if (group !== '') invalidEach(found, `${path}.group`, group, dnsSubdomainErrors(group));
  for (const field of ['resource', 'name']) {
    checkSegment(found, `${path}.${field}`, stringAt(parent, field));
  }
  const namespace = stringAt(parent, 'namespace');
  invalidEach(found, `${path}.namespace`, namespace, pathSegmentErrors(namespace));
}

const NETWORKS_MAX = 2;
const ONE_EACH =
  'may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64';

function networksOf(object: JsonObject): readonly JsonValue[] {
  return listAt(object, 'spec', 'cidrs');
}

function checkServiceNetworks(found: Findings, object: JsonObject): void {
  const path = 'spec.cidrs';
  const networks = networksOf(object);
  if (networks.length === 0) {
    found.push(required(path, 'at least one CIDR required'));
    return;
  }
  if (networks.length > NETWORKS_MAX) {
    const value = goForm('networking.v1.ServiceCIDRSpec', { cidrs: [...networks] });
    found.push(invalidValue(path, value, `may only hold up to ${NETWORKS_MAX} values`));
    return;
  }
  for (const [index, network] of networks.entries()) {
    const text = typeof network === 'string' ? network : '';
    invalidEach(found, `${path}[${index}]`, text, canonicalNetworkFaults(text));
  }
  const families = networks.map((network) =>
    typeof network === 'string' ? parseNetwork(network)?.address.isIpv4 : undefined,
  );
  if (networks.length < 2 || families[0] === undefined || families[0] !== families[1]) return;
  found.push(invalidValue(path, [...networks], ONE_EACH));
}

/** A second network may be added; nothing else changes. */
function keepServiceNetworks(found: Findings, next: JsonObject, previous: JsonObject): void {
  const [after, before] = [networksOf(next), networksOf(previous)];
  const isAdded = before.length === 1 && after.length === 2;
  if (after.length !== before.length && !isAdded) {
    const value = objectAt(next, 'spec')?.['cidrs'] ?? null;
    found.push(invalidValue('spec.cidrs', value, IMMUTABLE));
    return;
  }
  for (const [index, network] of before.entries()) {
    const now = after[index];
    if (now !== network) found.push(invalidValue(`spec.cidrs[${index}]`, now, IMMUTABLE));
  }
  if (isAdded) checkServiceNetworks(found, next);
}
