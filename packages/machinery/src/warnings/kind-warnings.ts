/** Warnings of kinds that have a few each. */
import { ownMember } from '@megaplane/base/members';
import { listAt, objectAt, stringAt } from '../json/json.ts';
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import { parseQuantity, Quantity } from '../meta/quantity.ts';
import { quoted } from '../json/quoting.ts';
import { isSame } from '../validation/field/validation-rules.ts';
import {
  ipWarnings,
  networkWarnings,
  nodeLabelWarning,
  nodeTermWarnings,
} from './field-warnings.ts';
import { keyPairFault } from './key-pair.ts';
import { claimSpecWarnings } from './pod-warnings.ts';

const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';

function annotationsOf(object: JsonObject): JsonObject {
  return objectAt(object, 'metadata', 'annotations') ?? {};
}

/** Of a claim of a volume. */
export function* claimWarnings(claim: JsonObject): Iterable<string> {
  if (Object.hasOwn(annotationsOf(claim), CLASS_ANNOTATION)) {
    const text = 'deprecated since v1.8; use "storageClassName" attribute instead';
    yield `metadata.annotations[${CLASS_ANNOTATION}]: ${text}`;
  }
  yield* claimSpecWarnings('spec', objectAt(claim, 'spec'));
}

const VOLUME_ANNOTATIONS = [
  [CLASS_ANNOTATION, 'deprecated since v1.8; use "storageClassName" attribute instead'],
  [
    'volume.beta.kubernetes.io/mount-options',
    'deprecated since v1.31; use "mountOptions" attribute instead',
  ],
] as const;
const VOLUME_SOURCES = [
  ['cephfs', 'deprecated in v1.28, non-functional in v1.31+'],
  ['photonPersistentDisk', 'deprecated in v1.11, non-functional in v1.16+'],
  ['scaleIO', 'deprecated in v1.16, non-functional in v1.22+'],
  ['storageos', 'deprecated in v1.22, non-functional in v1.25+', 'storageOS'],
  ['glusterfs', 'deprecated in v1.25, non-functional in v1.26+'],
  ['rbd', 'deprecated in v1.28, non-functional in v1.31+'],
] as const;

/** Of a persistent volume. */
export function* volumeWarnings(volume: JsonObject): Iterable<string> {
  const annotations = annotationsOf(volume);
  for (const [key, text] of VOLUME_ANNOTATIONS) {
    if (Object.hasOwn(annotations, key)) yield `metadata.annotations[${key}]: ${text}`;
  }
  const spec = objectAt(volume, 'spec');
  if (stringAt(spec, 'persistentVolumeReclaimPolicy') === 'Recycle') {
    yield (
      'spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. ' +
      'Instead, the recommended approach is to use dynamic provisioning.'
    );
  }
  const terms = listAt(spec, 'nodeAffinity', 'required', 'nodeSelectorTerms');
  for (const [index, term] of terms.entries()) {
    const path = `spec.nodeAffinity.required.nodeSelectorTerms[${index}]`;
    yield* nodeTermWarnings(path, term, false);
  }
  for (const [field, text, shown] of VOLUME_SOURCES) {
    if (objectAt(spec, field) !== undefined) yield `spec.${shown ?? field}: ${text}`;
  }
}

/** Of a node. */
export function* nodeWarnings(node: JsonObject): Iterable<string> {
  const spec = objectAt(node, 'spec');
  if (objectAt(spec, 'configSource') !== undefined) {
    yield 'spec.configSource: the feature is removed';
  }
  if (stringAt(spec, 'externalID') !== '') {
    yield 'spec.externalID: this field is deprecated, and is unused by Kubernetes';
  }
  for (const [index, network] of listAt(spec, 'podCIDRs').entries()) {
    yield* networkWarnings(`spec.podCIDRs[${index}]`, network);
  }
}

/** Of a secret: whether certificate and key are a pair. */
export function* secretWarnings(secret: JsonObject): Iterable<string> {
  if (stringAt(secret, 'type') !== 'kubernetes.io/tls') return;
  const text = (key: string): string =>
    Buffer.from(stringAt(secret, 'data', key), 'base64').toString('latin1');
  const fault = keyPairFault(text('tls.crt'), text('tls.key'));
  if (fault !== '') yield fault;
}

const MANAGED_BY = 'endpoints.kubernetes.io/managed-by';

/** Of endpoints that no controller made. */
export function* endpointsWarnings(endpoints: JsonObject): Iterable<string> {
  if (stringAt(endpoints, 'metadata', 'labels', MANAGED_BY) === 'endpoint-controller') return;
  for (const [index, subset] of listAt(endpoints, 'subsets').entries()) {
    for (const field of ['addresses', 'notReadyAddresses']) {
      for (const [place, address] of listAt(subset, field).entries()) {
        const path = `subsets[${index}].${field}[${place}].ip`;
        yield* ipWarnings(path, stringAt(address, 'ip'));
      }
    }
  }
}

const SLICE_MANAGED_BY = 'endpointslice.kubernetes.io/managed-by';
const SLICE_MANAGERS = [
  'endpointslice-controller.k8s.io',
  'endpointslicemirroring-controller.k8s.io',
];

/** Of addresses in a slice that no controller of ours made. */
export function* sliceWarnings(slice: JsonObject): Iterable<string> {
  if (SLICE_MANAGERS.includes(stringAt(slice, 'metadata', 'labels', SLICE_MANAGED_BY))) return;
  for (const [index, endpoint] of listAt(slice, 'endpoints').entries()) {
    for (const [place, address] of listAt(endpoint, 'addresses').entries()) {
      yield* ipWarnings(`endpoints[${index}].addresses[${place}]`, address);
    }
  }
}

/** Of the networks of a network policy. */
export function* networkPolicyWarnings(policy: JsonObject): Iterable<string> {
  for (const [field, side] of [
    ['ingress', 'from'],
    ['egress', 'to'],
  ] as const) {
    for (const [index, rule] of listAt(policy, 'spec', field).entries()) {
      for (const [place, peer] of listAt(rule, side).entries()) {
        const block = objectAt(peer, 'ipBlock');
        const path = `spec.${field}[${index}].${side}[${place}].ipBlock`;
        yield* networkWarnings(`${path}.cidr`, block?.['cidr']);
        for (const [at, except] of listAt(block, 'except').entries()) {
          yield* networkWarnings(`${path}.except[${at}]`, except);
        }
      }
    }
  }
}

/** Of a quota that requests more than its limits. */
export function* budgetOfQuota(quota: JsonObject): Iterable<string> {
  const hard = objectAt(quota, 'spec', 'hard') ?? {};
  for (const name of ['cpu', 'memory', 'storage', 'ephemeral-storage']) {
    let requests = `requests.${name}`;
    const isBare = name === 'cpu' || name === 'memory';
    if (ownMember(hard, requests) === undefined && isBare && hard[name] !== undefined)
      requests = name;
    const limits = `limits.${name}`;
    const [least, most] = [amountOf(ownMember(hard, requests)), amountOf(hard[limits])];
    if (least === undefined || most === undefined || least.compare(most) <= 0) continue;
    const above = `${requests} (${least.toString()})`;
    yield `ResourceQuota ${above} should be less than ${limits} (${most.toString()})`;
  }
}

function amountOf(value: JsonValue | undefined): Quantity | undefined {
  const amount = typeof value === 'string' ? parseQuantity(value) : undefined;
  return amount instanceof Quantity ? amount : undefined;
}

/** Of a driver that gets tokens, and does not say that it takes them as secrets. */
export function* driverWarnings(next: JsonObject, previous: JsonObject | null): Iterable<string> {
  const spec = objectAt(next, 'spec');
  const tokens = listAt(spec, 'tokenRequests');
  const before = previous === null ? [] : [...listAt(previous, 'spec', 'tokenRequests')];
  if (tokens.length === 0 || spec?.['serviceAccountTokenInSecrets'] !== undefined) return;
  if (previous !== null && isSame([...tokens], before)) return;
  const text = 'if supported by this CSI driver, set to true to prevent possible logging of tokens';
  yield `spec.serviceAccountTokenInSecrets is unset; ${text} in volume attributes`;
}

/** Of a storage class that names nodes by old labels. */
export function* storageClassWarnings(storageClass: JsonObject): Iterable<string> {
  for (const [index, topology] of listAt(storageClass, 'allowedTopologies').entries()) {
    for (const [place, term] of listAt(topology, 'matchLabelExpressions').entries()) {
      const text = nodeLabelWarning(stringAt(term, 'key'));
      const path = `allowedTopologies[${index}].matchLabelExpressions[${place}].key`;
      if (text !== undefined) yield `${path}: ${text}`;
    }
  }
}

/** Of capacity for nodes of old labels. */
export function* capacityWarnings(capacity: JsonObject): Iterable<string> {
  const selector = objectAt(capacity, 'nodeTopology');
  yield* nodeTermWarnings('nodeTopology', selector, false);
  for (const label of Object.keys(objectAt(selector, 'matchLabels') ?? {})) {
    const text = nodeLabelWarning(label);
    if (text !== undefined) yield `nodeTopology.matchLabels.${label}: ${text}`;
  }
}

/** Of a runtime class for nodes of old labels. */
export function* runtimeWarnings(runtimeClass: JsonObject): Iterable<string> {
  for (const label of Object.keys(objectAt(runtimeClass, 'scheduling', 'nodeSelector') ?? {})) {
    const text = nodeLabelWarning(label);
    if (text !== undefined) yield `scheduling.nodeSelector: ${text}`;
  }
}

/** Of devices of a driver with a name in capitals. */
export function* deviceWarnings(slice: JsonObject): Iterable<string> {
  const driver = stringAt(slice, 'spec', 'driver');
  if (driver === driver.toLowerCase()) return;
  yield (
    'spec.driver: driver names should be lowercase; ' +
    `${quoted(driver)} contains uppercase characters`
  );
}
