/** Ingresses: hosts, paths and what they lead to. */

import { isIP } from 'node:net';
import { invalidValue, notSupported, printed, required } from '../../meta/fielderrors.ts';
import { listAt, numberAt, objectAt, stringAt } from '../../json/json.ts';
import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import {
  dnsLabelErrors,
  dnsSubdomainErrors,
  hostErrors,
  pathSegmentErrors,
  portNameErrors,
  portNumberErrors,
} from '../../meta/names.ts';
import { checkHostname, checkIp } from '../field/validation-addresses.ts';
import { eachObject, invalidEach, type Findings } from '../field/validation-rules.ts';

const PATH_TYPES = ['Exact', 'ImplementationSpecific', 'Prefix'];
const BAD_SEQUENCES = ['//', '/./', '/../', '%2f', '%2F'];
const BAD_ENDS = ['/..', '/.'];

/** Where an ingress is reached: addresses, and names that are none. */
export function checkIngressStatus(
  found: Findings,
  ingress: JsonObject,
  previous: JsonObject,
): void {
  const points = (of: JsonObject): readonly JsonValue[] =>
    listAt(of, 'status', 'loadBalancer', 'ingress');
  const kept = points(previous).map((point) => stringAt(point, 'ip'));
  eachObject(points(ingress), 'status.loadBalancer.ingress', (point, at) => {
    const ip = stringAt(point, 'ip');
    if (ip !== '') checkIp(found, `${at}.ip`, ip, kept);
    checkHostname(found, `${at}.hostname`, stringAt(point, 'hostname'));
  });
}

const CLASS_NOTE = 'kubernetes.io/ingress.class';

/** A new ingress names one class, by the field or as before 1.18. */
export function createIngress(found: Findings, ingress: JsonObject): void {
  checkIngress(found, ingress);
  const told = objectAt(ingress, 'metadata', 'annotations')?.[CLASS_NOTE];
  const name = objectAt(ingress, 'spec')?.['ingressClassName'];
  if (typeof told !== 'string' || typeof name !== 'string' || told === name) return;
  const text = 'must match `ingressClassName` when both are specified';
  found.push(invalidValue(`annotations.${CLASS_NOTE}`, told, text));
}

export function checkIngress(found: Findings, ingress: JsonObject): void {
  const spec = objectAt(ingress, 'spec') ?? {};
  const rules = listAt(spec, 'rules');
  const backend = objectAt(spec, 'defaultBackend');
  if (backend !== undefined) checkBackend(found, 'spec.defaultBackend', backend);
  else if (rules.length === 0) {
    const text = 'either `defaultBackend` or `rules` must be specified';
    found.push(invalidValue('spec', printed(Array.isArray(spec['rules']) ? '[]' : 'null'), text));
  }
  eachObject(rules, 'spec.rules', (rule, at) => checkRule(found, at, rule));
  eachObject(listAt(spec, 'tls'), 'spec.tls', (tls, at) => checkTls(found, at, tls));
  const name = spec['ingressClassName'];
  if (typeof name !== 'string') return;
  invalidEach(found, 'spec.ingressClassName', name, dnsSubdomainErrors(name));
}

function checkRule(found: Findings, path: string, rule: JsonObject): void {
  const host = stringAt(rule, 'host');
  if (isIP(host) !== 0) {
    const text = 'must be a DNS name, not an IP address';
    found.push(invalidValue(`${path}.host`, host, text));
  }
  if (host !== '') invalidEach(found, `${path}.host`, host, hostErrors(host));
  const http = objectAt(rule, 'http');
  if (http === undefined) return;
  const paths = listAt(http, 'paths');
  if (paths.length === 0) found.push(required(`${path}.http.paths`));
  eachObject(paths, `${path}.http.paths`, (item, at) => checkPath(found, at, item));
}

function checkTls(found: Findings, path: string, tls: JsonObject): void {
  for (const [index, item] of listAt(tls, 'hosts').entries()) {
    const host = typeof item === 'string' ? item : '';
    invalidEach(found, `${path}.hosts[${index}]`, host, hostErrors(host));
  }
  const secret = stringAt(tls, 'secretName');
  if (secret === '') return;
  invalidEach(found, `${path}.secretName`, secret, dnsSubdomainErrors(secret));
}

function checkPath(found: Findings, path: string, item: JsonObject): void {
  const type = item['pathType'];
  const at = `${path}.path`;
  const value = stringAt(item, 'path');
  if (typeof type !== 'string') {
    found.push(required(`${path}.pathType`, 'pathType must be specified'));
    return;
  }
  const isSpecific = type === 'ImplementationSpecific';
  if (!PATH_TYPES.includes(type)) {
    found.push(notSupported(`${path}.pathType`, type, PATH_TYPES));
  } else if (!value.startsWith('/') && !(isSpecific && value === '')) {
    found.push(invalidValue(at, value, 'must be an absolute path'));
  }
  if (type === 'Exact' || type === 'Prefix') {
    for (const part of BAD_SEQUENCES.filter((sequence) => value.includes(sequence))) {
      found.push(invalidValue(at, value, `must not contain '${part}'`));
    }
    for (const part of BAD_ENDS.filter((end) => value.endsWith(end))) {
      found.push(invalidValue(at, value, `cannot end with '${part}'`));
    }
  }
  checkBackend(found, `${path}.backend`, objectAt(item, 'backend') ?? {});
}

function checkBackend(found: Findings, path: string, backend: JsonObject): void {
  const resource = objectAt(backend, 'resource');
  const service = objectAt(backend, 'service');
  if (resource !== undefined && service !== undefined) {
    found.push(invalidValue(path, '', 'cannot set both resource and service backends'));
  } else if (resource !== undefined) checkResource(found, `${path}.resource`, resource);
  else if (service !== undefined) checkService(found, path, service);
  else found.push(invalidValue(path, '', 'resource or service backend is required'));
}

function checkResource(found: Findings, path: string, resource: JsonObject): void {
  const group = resource['apiGroup'];
  if (typeof group === 'string') {
    invalidEach(found, `${path}.apiGroup`, group, dnsSubdomainErrors(group));
  }
  for (const field of ['kind', 'name']) {
    const value = stringAt(resource, field);
    const at = `${path}.${field}`;
    if (value === '') found.push(required(at));
    else invalidEach(found, at, value, pathSegmentErrors(value));
  }
}

function checkService(found: Findings, path: string, service: JsonObject): void {
  const name = stringAt(service, 'name');
  const at = `${path}.service`;
  if (name === '') found.push(required(`${at}.name`));
  else invalidEach(found, `${at}.name`, name, dnsLabelErrors(name));
  const port = objectAt(service, 'port');
  const portName = stringAt(port, 'name');
  const number = numberAt(port, 'number');
  if (portName !== '' && number !== 0) {
    found.push(invalidValue(path, '', 'cannot set both port name & port number'));
  } else if (portName !== '') {
    invalidEach(found, `${at}.port.name`, portName, portNameErrors(portName));
  } else if (number !== 0) {
    invalidEach(found, `${at}.port.number`, number, portNumberErrors(number));
  } else found.push(required(path, 'port name or number is required'));
}
