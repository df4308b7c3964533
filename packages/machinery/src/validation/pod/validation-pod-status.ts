/** What kubelets, schedulers and controllers report of pods, as upstream judges it. */

import { ownMember } from '@megaplane/base/members';
import {
  duplicate,
  forbiddenField,
  internalFieldError,
  invalidValue,
  notSupported,
  printed,
  required,
  tooLong,
} from '../../meta/fielderrors.ts';
import { goValueOf } from '../../gotext/go-value-format.ts';
import { parseIp } from '../../meta/ip-address.ts';
import { listAt, numberAt, objectAt, stringAt } from '../../json/json.ts';
import { isObject, type JsonObject, type JsonValue } from '../../json/json-value.ts';
import { dnsLabelErrors, dnsSubdomainErrors, qualifiedNameErrors } from '../../meta/names.ts';
import { checkIp } from '../field/validation-addresses.ts';
import { changePodAnnotations, checkPodAnnotations } from './validation-pod-annotations.ts';
import { eachObject, invalidEach, type Findings } from '../field/validation-rules.ts';
import { checkId } from './validation-security.ts';

const STATUSES = ['containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses'];
const SYSTEM_CONDITIONS: ReadonlySet<string> = new Set(['PodScheduled', 'Ready', 'Initialized']);
const HEALTH = ['Healthy', 'Unhealthy', 'Unknown'];
const HEALTH_MESSAGE_MAX = 1024;

export function updatePodStatus(found: Findings, next: JsonObject, previous: JsonObject): void {
  changePodAnnotations(found, next, previous);
  const annotations = objectAt(next, 'metadata', 'annotations');
  checkPodAnnotations(found, 'metadata.annotations', annotations, objectAt(next, 'spec') ?? {});
  const status = objectAt(next, 'status') ?? {};
  const before = objectAt(previous, 'status') ?? {};
  const spec = objectAt(previous, 'spec') ?? {};
  checkConditions(found, listAt(status, 'conditions'));
  checkNomination(found, status, before, spec);
  if (numberAt(status, 'observedGeneration') < 0) {
    const text = 'must be a non-negative integer';
    found.push(invalidValue('status.observedGeneration', status['observedGeneration'], text));
  }
  const qosClass = stringAt(status, 'qosClass');
  if (qosClass !== stringAt(before, 'qosClass')) {
    found.push(invalidValue('status.qosClass', qosClass, 'field is immutable'));
  }
  for (const field of STATUSES) checkEnded(found, field, status, before, spec);
  checkClaims(found, listAt(status, 'resourceClaimStatuses'), listAt(spec, 'resourceClaims'));
  const extended = objectAt(status, 'extendedResourceClaimStatus');
  if (extended !== undefined) checkExtendedClaim(found, extended, spec);
  checkIps(found, 'podIPs', status, before);
  checkHostIps(found, status, before);
  for (const field of STATUSES) checkUsers(found, field, listAt(status, field), spec);
  for (const field of STATUSES) checkAllocations(found, field, listAt(status, field), spec);
}

function checkConditions(found: Findings, conditions: readonly JsonValue[]): void {
  eachObject(conditions, 'status.conditions', (condition, at) => {
    const generation = numberAt(condition, 'observedGeneration');
    if (generation < 0) {
      const text = 'must be a non-negative integer';
      found.push(invalidValue(`${at}.observedGeneration`, generation, text));
    }
    const type = stringAt(condition, 'type');
    if (SYSTEM_CONDITIONS.has(type)) return;
    invalidEach(found, `${at}.Type`, type, qualifiedNameErrors(type));
  });
}

/** A node is named for pods that have none. */
function checkNomination(
  found: Findings,
  status: JsonObject,
  before: JsonObject,
  spec: JsonObject,
): void {
  const node = stringAt(status, 'nominatedNodeName');
  if (node === '' || node === stringAt(before, 'nominatedNodeName')) return;
  const path = 'status.nominatedNodeName';
  invalidEach(found, path, node, dnsSubdomainErrors(node));
  if (stringAt(spec, 'nodeName') === '') return;
  found.push(forbiddenField(path, 'may not be set on pods that are already bound to a node'));
}

/** What has ended runs again only where its pod restarts it. */
function checkEnded(
  found: Findings,
  field: string,
  status: JsonObject,
  before: JsonObject,
  spec: JsonObject,
): void {
  const own = field === 'containerStatuses' ? 'containers' : 'initContainers';
  const restarts = field === 'ephemeralContainerStatuses' ? null : listAt(spec, own);
  if (restarts !== null && restartsAll(spec)) return;
  eachObject(listAt(before, field), `status.${field}`, (old, at) => {
    const ended = objectAt(old, 'state', 'terminated');
    if (ended === undefined) return;
    const name = stringAt(old, 'name');
    const isMissed = (one: JsonValue): boolean =>
      stringAt(one, 'name') === name && objectAt(one, 'state', 'terminated') === undefined;
    const revived = listAt(status, field).filter(isMissed);
    const container = restarts?.find((one) => stringAt(one, 'name') === name);
    if (container !== undefined && mayRestart(container, spec, numberAt(ended, 'exitCode'))) return;
    for (const _ of restarts === null ? revived : revived.slice(0, 1)) {
      found.push(forbiddenField(`${at}.state`, 'may not be transitioned to non-terminated state'));
    }
  });
}

function restartsAll(spec: JsonObject): boolean {
  return [...listAt(spec, 'initContainers'), ...listAt(spec, 'containers')].some((container) =>
    listAt(container, 'restartPolicyRules').some(
      (rule) => stringAt(rule, 'action') === 'RestartAllContainers',
    ),
  );
}

function mayRestart(container: JsonValue, spec: JsonObject, exitCode: number): boolean {
  const own = stringAt(container, 'restartPolicy');
  if (own !== '') {
    const rule = listAt(container, 'restartPolicyRules').find((one) => isMeant(one, exitCode));
    if (stringAt(rule, 'action').startsWith('Restart')) return true;
  }
  const policy = own === '' ? stringAt(spec, 'restartPolicy') : own;
  return policy === 'OnFailure' ? exitCode !== 0 : policy !== 'Never';
}

function isMeant(rule: JsonValue, exitCode: number): boolean {
  const isListed = listAt(rule, 'exitCodes', 'values').includes(exitCode);
  const operator = stringAt(rule, 'exitCodes', 'operator');
  return operator === 'In' ? isListed : operator === 'NotIn' && !isListed;
}

function checkClaims(
  found: Findings,
  statuses: readonly JsonValue[],
  claims: readonly JsonValue[],
): void {
  const known = new Set(claims.map((claim) => stringAt(claim, 'name')));
  const seen = new Set<string>();
  eachObject(statuses, 'status.resourceClaimStatuses', (status, at) => {
    const name = stringAt(status, 'name');
    if (!known.has(name)) {
      const text = 'must match the name of an entry in `spec.resourceClaims`';
      found.push(invalidValue(`${at}.name`, name, text));
    }
    if (seen.has(name)) found.push(duplicate(`${at}.name`, name));
    seen.add(name);
    const claim = status['resourceClaimName'];
    if (typeof claim !== 'string') return;
    invalidEach(found, `${at}.resourceClaimName`, claim, dnsSubdomainErrors(claim));
  });
}

/** The claim made for extended resources, and which of its requests serves which container. */
function checkExtendedClaim(found: Findings, status: JsonObject, spec: JsonObject): void {
  const path = 'status.extendedResourceClaimStatus';
  const containers = new Map<string, JsonValue>();
  for (const container of [...listAt(spec, 'initContainers'), ...listAt(spec, 'containers')]) {
    containers.set(stringAt(container, 'name'), container);
  }
  const mappings = listAt(status, 'requestMappings');
  if (mappings.length === 0) {
    found.push(required(`${path}.requestMappings`, 'at least one request mapping is required'));
  }
  const seen = new Set<string>();
  eachObject(mappings, `${path}.requestMappings`, (mapping, at) => {
    const fields = ['containerName', 'resourceName', 'requestName'];
    const [name = '', resource = '', request = ''] = fields.map((one) => stringAt(mapping, one));
    const container = containers.get(name);
    const some = 'spec.initContainers';
    if (container === undefined) {
      const text = `must match the name of an entry in ${some}.name or spec.containers.name`;
      found.push(invalidValue(`${at}.containerName`, name, text));
    } else if (ownMember(objectAt(container, 'resources', 'requests'), resource) === undefined) {
      const text =
        `must match the extended resource name of an entry in ${some}.resources.requests ` +
        'or spec.containers.resources.requests';
      found.push(invalidValue(`${at}.resourceName`, resource, text));
    }
    invalidEach(found, `${path}.requestName`, request, dnsLabelErrors(request));
    const key = JSON.stringify([name, resource, request]);
    if (seen.has(key)) {
      for (const field of fields) found.push(duplicate(`${at}.${field}`, stringAt(mapping, field)));
    }
    seen.add(key);
  });
  const claim = stringAt(status, 'resourceClaimName');
  if (claim === '') found.push(required(`${path}.resourceClaimName`));
  else invalidEach(found, `${path}.resourceClaimName`, claim, dnsSubdomainErrors(claim));
}

/** New addresses are addresses, at most one of each family. */
function checkIps(
  found: Findings,
  field: 'podIPs' | 'hostIPs',
  status: JsonObject,
  before: JsonObject,
): void {
  const path = `status.${field}`;
  const kept = listAt(before, field).map((one) => stringAt(one, 'ip'));
  const addresses = listAt(status, field).map((one) => stringAt(one, 'ip'));
  for (const [index, address] of addresses.entries()) {
    checkIp(found, `${path}[${index}]`, address, kept);
  }
  if (addresses.length < 2) return;
  const parsed = addresses.map((address) => parseIp(address));
  const broken = parsed.indexOf(undefined);
  if (broken >= 0) {
    const text = `invalid IP[${broken}]: ${addresses[broken] ?? ''}`;
    const detail = `failed to check for dual stack with error:${text}`;
    found.push(internalFieldError(path, detail));
  }
  const families = new Set(parsed.map((one) => one !== undefined && (one.isIpv4 || one.isMapped)));
  const isDual = broken < 0 && families.size === 2 && addresses.length === 2;
  if (isDual) return;
  const type = field === 'podIPs' ? 'core.v1.PodIP' : 'core.v1.HostIP';
  const value = listAt(status, field).map((one) => goValueOf(type, one));
  const text = 'may specify no more than one IP for each IP family';
  found.push(invalidValue(path, printed(JSON.stringify(value)), text));
}

function checkHostIps(found: Findings, status: JsonObject, before: JsonObject): void {
  const [first] = listAt(status, 'hostIPs');
  if (first === undefined) return;
  const address = stringAt(first, 'ip');
  if (address !== stringAt(status, 'hostIP')) {
    found.push(invalidValue('status.hostIPs[0].ip', address, 'must be equal to `hostIP`'));
  }
  checkIps(found, 'hostIPs', status, before);
}

function checkUsers(
  found: Findings,
  field: string,
  statuses: readonly JsonValue[],
  spec: JsonObject,
): void {
  const system = stringAt(spec, 'os', 'name');
  eachObject(statuses, `status.${field}`, (status, at) => {
    const user = objectAt(status, 'user', 'linux');
    const path = `${at}.user.linux`;
    if (user === undefined) return;
    if (system === 'windows') {
      found.push(forbiddenField(path, 'cannot be set for a windows pod'));
      return;
    }
    checkId(found, `${path}.uid`, numberAt(user, 'uid'));
    checkId(found, `${path}.gid`, numberAt(user, 'gid'));
    for (const [index, group] of listAt(user, 'supplementalGroups').entries()) {
      checkId(found, `${path}.supplementalGroups[${index}]`, group);
    }
  });
}

/** The health of devices that containers asked for. */
function checkAllocations(
  found: Findings,
  field: string,
  statuses: readonly JsonValue[],
  spec: JsonObject,
): void {
  const own = field === 'containerStatuses' ? 'containers' : 'initContainers';
  eachObject(statuses, `status.${field}`, (status, owner) => {
    const path = `${owner}.allocatedResourcesStatus`;
    const allocated = listAt(status, 'allocatedResourcesStatus');
    if (field === 'ephemeralContainerStatuses') {
      const text = 'must not be specified in container status';
      if (allocated.length > 0) found.push(forbiddenField(path, text));
      return;
    }
    const name = stringAt(status, 'name');
    const container = listAt(spec, own).find((one) => stringAt(one, 'name') === name);
    eachObject(allocated, path, (resource, at) => {
      if (container !== undefined) checkAsked(found, `${at}.name`, resource, container);
      checkHealth(found, `${at}.resources`, listAt(resource, 'resources'));
    });
  });
}

function checkAsked(
  found: Findings,
  path: string,
  resource: JsonObject,
  container: JsonValue,
): void {
  const name = stringAt(resource, 'name');
  if (!name.startsWith('claim:')) {
    if (ownMember(objectAt(container, 'resources', 'requests'), name) !== undefined) return;
    found.push(invalidValue(path, name, "must match one of the container's resource requests"));
    return;
  }
  const claims = listAt(container, 'resources', 'claims').map((claim) => {
    const request = stringAt(claim, 'request');
    return `claim:${stringAt(claim, 'name')}${request === '' ? '' : `/${request}`}`;
  });
  if (claims.includes(name)) return;
  const text =
    "must match one of the container's resource claims in a format " +
    "'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty";
  found.push(invalidValue(path, name, text));
}

function checkHealth(found: Findings, path: string, resources: readonly JsonValue[]): void {
  const seen = new Set<string>();
  eachObject(resources, path, (resource, at) => {
    const health = stringAt(resource, 'health');
    if (!HEALTH.includes(health)) found.push(notSupported(`${at}.health`, health, HEALTH));
    const message = isObject(resource) ? resource['message'] : undefined;
    if (message === '') found.push(required(`${at}.message`, 'must be non-empty if specified'));
    else if (typeof message === 'string' && Buffer.byteLength(message) > HEALTH_MESSAGE_MAX) {
      found.push(tooLong(`${at}.message`, HEALTH_MESSAGE_MAX));
    }
    const id = stringAt(resource, 'resourceID');
    if (seen.has(id)) found.push(duplicate(`${at}.resourceID`, id));
    seen.add(id);
  });
}
