/** The core group, but for pods, services, events and quotas: nodes, namespaces, configuration. */

import { ownMember } from '@megaplane/base/members';
import {
  duplicate,
  forbiddenField,
  internalFieldError,
  invalidValue,
  required,
  tooLong,
} from '../meta/fielderrors.ts';
import { parseNetwork } from '../meta/ip-address.ts';
import { goDiff } from '../gotext/go-value-format.ts';
import { syntaxError } from '../json/json-syntax.ts';
import { listAt, numberAt, objectAt, stringAt } from '../json/json.ts';
import { parseJson } from '../json/json-text.ts';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import {
  configKeyErrors,
  dnsSubdomainErrors,
  portNumberErrors,
  qualifiedNameErrors,
} from '../meta/names.ts';
import { parseQuantity, Quantity } from '../meta/quantity.ts';
import { quoted } from '../json/quoting.ts';
import { checkCidr, checkEndpointIp, checkIp } from './field/validation-addresses.ts';
import { checkClaimSpec, checkClaimStatus } from './pod/validation-claims.ts';
import { LABEL_NAME } from './field/validation-metadata.ts';
import { checkTaints } from './pod/validation-pods.ts';
import { checkAmount } from './pod/validation-resources.ts';
import { NO_FIELD } from './pod/validation-pod-parts.ts';
import {
  checkDnsLabel,
  eachObject,
  immutable,
  invalidEach,
  isSame,
  oneOf,
  type Findings,
} from './field/validation-rules.ts';
import type { RuleTable } from './field/rule-table.ts';

const DATA_BYTES_MAX = 1048576;
const FROZEN = 'field is immutable when `immutable` is set';
const POD_CIDR_TEXT = 'node updates may not change podCIDR except from "" to valid';

export const CORE_RULES: RuleTable = {
  nodes: {
    create: checkNode,
    change: changeNode,
    subresources: { status: (found, next) => checkNodeChange(found, next) },
  },
  namespaces: {
    name: LABEL_NAME,
    create: (found, object) => checkSpecFinalizers(found, object),
    update: () => undefined,
    subresources: {
      status: checkNamespaceStatus,
      finalize: (found, next) => checkSpecFinalizers(found, next, true),
    },
  },
  configmaps: { create: checkConfigMap, change: changeConfigMap },
  secrets: { create: checkSecret, change: changeSecret },
  endpoints: { create: checkEndpoints },
  persistentvolumeclaims: {
    create: checkClaim,
    change: changeClaim,
    subresources: { status: checkClaimStatus },
  },
};

function checkNode(found: Findings, node: JsonObject): void {
  // The path is upstream's, and off by a level.
  checkTaints(found, 'metadata.taints', listAt(node, 'spec', 'taints'));
  checkNodeStatus(found, node);
  const networks = listAt(node, 'spec', 'podCIDRs');
  const path = 'spec.podCIDRs';
  for (const [index, network] of networks.entries()) checkCidr(found, `${path}[${index}]`, network);
  if (networks.length < 2) return;
  const texts = networks.map((network) => (typeof network === 'string' ? network : ''));
  const odd = texts.findIndex((network) => parseNetwork(network) === undefined);
  if (odd >= 0) {
    const text =
      `invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[${odd}]: ` +
      `<nil> (invalid CIDR address: ${texts[odd]})`;
    found.push(internalFieldError(path, text));
  }
  const isSixth = networks.map((network) => typeof network === 'string' && network.includes(':'));
  if (odd < 0 && networks.length === 2 && isSixth[0] !== isSixth[1]) return;
  const text = 'may specify no more than one CIDR for each IP family';
  found.push(invalidValue(path, [...networks], text));
}

function checkNodeStatus(found: Findings, node: JsonObject): void {
  for (const field of ['capacity', 'allocatable']) {
    for (const [name, amount] of Object.entries(objectAt(node, 'status', field) ?? {})) {
      checkAmount(found, `status.${field}.${name}`, name, amount);
    }
  }
  checkFeatures(found, listAt(node, 'status', 'declaredFeatures'));
}

/** New nodes may tell an address twice; upstream looks when they change. */
function checkNodeChange(found: Findings, node: JsonObject): void {
  checkNodeStatus(found, node);
  const seen = new Set<string>();
  for (const [index, address] of listAt(node, 'status', 'addresses').entries()) {
    const [Type, Address] = [stringAt(address, 'type'), stringAt(address, 'address')];
    const text = JSON.stringify({ Type, Address });
    if (seen.has(text)) {
      const body = `Duplicate value: ${text}`;
      found.push({ kind: 'duplicate', field: `status.addresses[${index}]`, body });
    }
    seen.add(text);
  }
}

const FEATURE_LENGTH_MAX = 253;
const FEATURE = /^[A-Z][a-zA-Z0-9]*(\/[a-zA-Z][a-zA-Z0-9]*)*$/;
const FEATURE_FORM =
  "must start with an UpperCamelCase segment, with subsequent segments separated by '/' " +
  '(e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters ' +
  'and slashes';

/** What a node can do, by name and in the order of names (KEP 5328). */
function checkFeatures(found: Findings, features: readonly JsonValue[]): void {
  let before: string | null = null;
  for (const [index, feature] of features.entries()) {
    const path = `status.declaredFeatures[${index}]`;
    const name = typeof feature === 'string' ? feature : '';
    if (name === before) found.push(duplicate(path, name));
    else if (before !== null && name < before) {
      found.push(invalidValue(path, name, 'list must be sorted alphabetically'));
    }
    before = name;
    const tooMany = `must be no more than ${FEATURE_LENGTH_MAX} characters`;
    const isLong = Buffer.byteLength(name) > FEATURE_LENGTH_MAX;
    if (!isLong && FEATURE.test(name)) continue;
    const text = isLong ? tooMany : FEATURE_FORM;
    found.push(invalidValue(path, name, `invalid feature name ${quoted(name)}: ${text}`));
  }
}

function changeNode(found: Findings, next: JsonObject, previous: JsonObject): void {
  const cidrs = listAt(previous, 'spec', 'podCIDRs');
  const nextCidrs = listAt(next, 'spec', 'podCIDRs');
  if (cidrs.length > 0 && !isSame([...nextCidrs], [...cidrs])) {
    found.push(forbiddenField('spec.podCIDRs', POD_CIDR_TEXT));
  }
  const provider = stringAt(previous, 'spec', 'providerID');
  if (provider !== '' && provider !== stringAt(next, 'spec', 'providerID')) {
    const text = 'node updates may not change providerID except from "" to valid';
    found.push(forbiddenField('spec.providerID', text));
  }
  if (stringAt(next, 'spec', 'externalID') !== stringAt(previous, 'spec', 'externalID')) {
    found.push(forbiddenField('spec.externalID', 'may not be updated'));
  }
  // upstream looks at them as those of a new node, and again as those of a changed one
  checkTaints(found, 'metadata.taints', listAt(next, 'spec', 'taints'));
}

const STANDARD_FINALIZERS = ['kubernetes', 'orphan', 'foregroundDeletion'];

/** A new namespace's are called by their list, those of a finalization by their index. */
function checkSpecFinalizers(found: Findings, namespace: JsonObject, isIndexed = false): void {
  for (const [index, finalizer] of listAt(namespace, 'spec', 'finalizers').entries()) {
    const path = isIndexed ? `spec.finalizers[${index}]` : 'spec.finalizers';
    const name = typeof finalizer === 'string' ? finalizer : '';
    invalidEach(found, path, name, qualifiedNameErrors(name));
    if (name.includes('/') || STANDARD_FINALIZERS.includes(name)) continue;
    const text = 'name is neither a standard finalizer name nor is it fully qualified';
    found.push(invalidValue(path, name, text));
  }
}

function checkNamespaceStatus(found: Findings, next: JsonObject): void {
  const phase = stringAt(next, 'status', 'phase');
  const isDeleted = objectAt(next, 'metadata')?.['deletionTimestamp'] !== undefined;
  const wanted = isDeleted ? 'Terminating' : 'Active';
  if (phase === wanted) return;
  const state = isDeleted ? 'is not empty' : 'is empty';
  const text = `may only be '${wanted}' if \`deletionTimestamp\` ${state}`;
  found.push(invalidValue('status.Phase', phase, text));
}

/** Checks the keys of a map; gives the bytes of its values. */
function checkData(
  found: Findings,
  path: string,
  data: JsonObject | undefined,
  isBinary: boolean,
): number {
  let bytes = 0;
  for (const [key, value] of Object.entries(data ?? {})) {
    invalidEach(found, `${path}[${key}]`, key, configKeyErrors(key));
    const text = typeof value === 'string' ? value : '';
    bytes += Buffer.byteLength(text, isBinary ? 'base64' : 'utf8');
  }
  return bytes;
}

function checkConfigMap(found: Findings, map: JsonObject): void {
  const data = objectAt(map, 'data');
  const binary = objectAt(map, 'binaryData');
  let bytes = checkData(found, 'data', data, false);
  for (const key of Object.keys(data ?? {})) {
    if (ownMember(binary, key) === undefined) continue;
    found.push(invalidValue(`data[${key}]`, key, 'duplicate of key present in binaryData'));
  }
  bytes += checkData(found, 'binaryData', binary, true);
  if (bytes > DATA_BYTES_MAX) found.push(tooLong(NO_FIELD, DATA_BYTES_MAX));
}

function changeConfigMap(found: Findings, next: JsonObject, previous: JsonObject): void {
  if (previous['immutable'] !== true) return;
  if (next['immutable'] !== true) found.push(forbiddenField('immutable', FROZEN));
  for (const field of ['data', 'binaryData']) {
    if (!isSame(next[field], previous[field])) found.push(forbiddenField(field, FROZEN));
  }
}

/** Keys that secrets of a type must hold. */
const SECRET_KEYS: Readonly<Record<string, readonly string[]>> = {
  'kubernetes.io/dockercfg': ['.dockercfg'],
  'kubernetes.io/dockerconfigjson': ['.dockerconfigjson'],
  'kubernetes.io/ssh-auth': ['ssh-privatekey'],
  'kubernetes.io/tls': ['tls.crt', 'tls.key'],
};
const TOKEN_ANNOTATION = 'kubernetes.io/service-account.name';

function checkSecret(found: Findings, secret: JsonObject): void {
  const data = objectAt(secret, 'data') ?? {};
  if (checkData(found, 'data', data, true) > DATA_BYTES_MAX) {
    found.push(tooLong('data', DATA_BYTES_MAX));
  }
  const type = stringAt(secret, 'type');
  if (type === 'kubernetes.io/service-account-token') {
    if (stringAt(secret, 'metadata', 'annotations', TOKEN_ANNOTATION) === '') {
      found.push(required(`metadata.annotations[${TOKEN_ANNOTATION}]`));
    }
  } else if (type === 'kubernetes.io/basic-auth') {
    if (data['username'] === undefined && data['password'] === undefined) {
      found.push(required('data[username]'), required('data[password]'));
    }
  }
  for (const key of ownMember(SECRET_KEYS, type) ?? []) {
    const isEmpty = type === 'kubernetes.io/ssh-auth' && ownMember(data, key) === '';
    if (ownMember(data, key) === undefined || isEmpty) found.push(required(`data[${key}]`));
    else if (key.startsWith('.docker'))
      checkJsonValue(found, `data[${key}]`, ownMember(data, key) ?? '');
  }
}

function checkJsonValue(found: Findings, path: string, value: JsonValue): void {
  const text = Buffer.from(typeof value === 'string' ? value : '', 'base64').toString('utf8');
  const failure = syntaxError(text) || mapFault(parseJson(text));
  if (failure !== '') found.push(invalidValue(path, '<secret contents redacted>', failure));
}

/** What Go's decoder says of a value that is no object; nothing of null. */
function mapFault(value: JsonValue): string {
  if (value === null || isObject(value)) return '';
  const kind = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value;
  return `json: cannot unmarshal ${kind} into Go value of type map[string]interface {}`;
}

function changeSecret(found: Findings, next: JsonObject, previous: JsonObject): void {
  immutable(found, 'type', next['type'], previous['type']);
  if (previous['immutable'] !== true) return;
  if (next['immutable'] !== true) found.push(forbiddenField('immutable', FROZEN));
  if (!isSame(next['data'], previous['data'])) found.push(forbiddenField('data', FROZEN));
}

function checkEndpoints(found: Findings, endpoints: JsonObject): void {
  eachObject(listAt(endpoints, 'subsets'), 'subsets', (subset, path) => {
    const ports = listAt(subset, 'ports');
    if (listAt(subset, 'addresses').length + listAt(subset, 'notReadyAddresses').length === 0) {
      found.push(required(path, 'must specify `addresses` or `notReadyAddresses`'));
    }
    for (const field of ['addresses', 'notReadyAddresses']) {
      eachObject(listAt(subset, field), `${path}.${field}`, (address, at) => {
        checkIp(found, `${at}.ip`, stringAt(address, 'ip'));
        const host = stringAt(address, 'hostname');
        if (host !== '') checkDnsLabel(found, `${at}.hostname`, host);
        const node = address['nodeName'];
        if (typeof node === 'string') {
          invalidEach(found, `${at}.nodeName`, node, dnsSubdomainErrors(node));
        }
        checkEndpointIp(found, `${at}.ip`, stringAt(address, 'ip'));
      });
    }
    eachObject(ports, `${path}.ports`, (port, at) => {
      checkEndpointPort(found, at, port, ports.length > 1);
    });
  });
}

function checkEndpointPort(
  found: Findings,
  path: string,
  port: JsonObject,
  isNameRequired: boolean,
): void {
  const name = stringAt(port, 'name');
  if (name !== '') checkDnsLabel(found, `${path}.name`, name);
  else if (isNameRequired) found.push(required(`${path}.name`));
  const number = numberAt(port, 'port');
  invalidEach(found, `${path}.port`, number, portNumberErrors(number));
  oneOf(found, `${path}.protocol`, port['protocol'], ['SCTP', 'TCP', 'UDP']);
  const protocol = port['appProtocol'];
  if (typeof protocol !== 'string') return;
  invalidEach(found, `${path}.appProtocol`, protocol, qualifiedNameErrors(protocol));
}

function checkClaim(found: Findings, claim: JsonObject): void {
  checkClaimSpec(found, 'spec', objectAt(claim, 'spec') ?? {});
}

const CLAIM_TEXT =
  'spec is immutable after creation except resources.requests and volumeAttributesClassName for ' +
  'bound claims';

const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';

function changeClaim(found: Findings, next: JsonObject, previous: JsonObject): void {
  const [after, before] = [{ ...objectAt(next, 'spec') }, { ...objectAt(previous, 'spec') }];
  const className = (spec: JsonObject): JsonValue => spec['storageClassName'] ?? null;
  const classSaid = (claim: JsonObject): JsonValue | undefined =>
    objectAt(claim, 'metadata', 'annotations')?.[CLASS_ANNOTATION];
  const [saidNow, saidBefore] = [classSaid(next), classSaid(previous)];
  // a class is named once where there was none, or as an annotation named it in older times
  const isNamed = className(before) === null && className(after) !== null;
  const isMoved = isNamed && saidBefore !== undefined && className(after) === saidBefore;
  if (isMoved || (isNamed && saidBefore === undefined)) {
    after['storageClassName'] = null;
    before['storageClassName'] = null;
  }
  if ((saidNow ?? '') !== (saidBefore ?? '') && !(isMoved && saidNow === undefined)) {
    const at = `metadata.annotations.${CLASS_ANNOTATION}`;
    found.push(invalidValue(at, saidNow ?? '', 'field is immutable'));
  }
  // the volume is named once
  if (stringAt(before, 'volumeName') === '') before['volumeName'] = after['volumeName'] ?? null;
  if (stringAt(next, 'status', 'phase') === 'Bound') {
    const requests = objectAt(after, 'resources', 'requests');
    if (requests !== undefined) {
      const storage = objectAt(before, 'resources', 'requests')?.['storage'] ?? null;
      const resources = { ...objectAt(after, 'resources'), requests: { ...requests, storage } };
      after['resources'] = resources;
    }
    after['volumeAttributesClassName'] = before['volumeAttributesClassName'] ?? null;
  }
  if (!isSame(after, before)) {
    const difference = goDiff('core.v1.PersistentVolumeClaimSpec', before, after);
    found.push(forbiddenField('spec', `${CLAIM_TEXT}\n${difference}`));
  }
  const size = objectAt(next, 'spec', 'resources', 'requests');
  const isLess = compareStorage(size, objectAt(previous, 'spec', 'resources', 'requests')) < 0;
  // An expansion that failed may be taken back, though not below what is there.
  if (isLess && compareStorage(size, objectAt(previous, 'status', 'capacity')) <= 0) {
    const text = 'field can not be less than status.capacity';
    found.push(forbiddenField('spec.resources.requests.storage', text));
  }
  const [mode, oldMode] = [next, previous].map((claim) => objectAt(claim, 'spec')?.['volumeMode']);
  immutable(found, 'volumeMode', mode, oldMode);
}

function compareStorage(one: JsonObject | undefined, other: JsonObject | undefined): number {
  const [left, right] = [one, other].map((amounts) =>
    parseQuantity(stringAt(amounts, 'storage') || '0'),
  );
  return left instanceof Quantity && right instanceof Quantity ? left.compare(right) : 0;
}
