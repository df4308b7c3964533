/** Persistent volumes: what they need, whatever driver makes them. */

import { forbiddenField, invalidValue, notSupported, required } from './fielderrors.ts';
import { listAt, objectAt, stringAt } from './json.ts';
import type { JsonObject } from './json-value.ts';
import { dnsSubdomainErrors } from './names.ts';
import { parseQuantity, Quantity } from './quantity.ts';
import { checkNodeSelector } from './validation-affinity.ts';
import { ACCESS_MODES } from './validation-claims.ts';
import { checkBacksteps } from './validation-paths.ts';
import { immutable, invalidEach, isSame, oneOf } from './validation-rules.ts';
import type { Findings } from './validation-rules.ts';
import { VOLUME_SOURCES } from './volumes/volume-sources.ts';

/** Kinds of sources in upstream's order. */
const SOURCE_ORDER = [
  ...[
    'hostPath',
    'gcePersistentDisk',
    'awsElasticBlockStore',
    'glusterfs',
    'flocker',
    'nfs',
    'rbd',
  ],
  ...['quobyte', 'cephfs', 'iscsi', 'cinder', 'fc', 'flexVolume', 'azureFile', 'vsphereVolume'],
  ...[
    'photonPersistentDisk',
    'portworxVolume',
    'azureDisk',
    'scaleIO',
    'local',
    'storageos',
    'csi',
  ],
];

/** A new volume. */
export function checkVolume(found: Findings, volume: JsonObject): void {
  const spec = objectAt(volume, 'spec') ?? {};
  checkModes(found, spec);
  checkAmounts(found, objectAt(spec, 'capacity') ?? {});
  const policies = ['Delete', 'Recycle', 'Retain'];
  const policy = spec['persistentVolumeReclaimPolicy'];
  oneOf(found, 'spec.persistentVolumeReclaimPolicy', policy, policies, true);
  const affinity = objectAt(spec, 'nodeAffinity');
  if (affinity !== undefined) checkAffinity(found, affinity);
  checkSources(found, spec, stringAt(volume, 'metadata', 'name'));
  const root = stringAt(spec, 'hostPath', 'path').replace(/\/+$/, '');
  if (objectAt(spec, 'hostPath') !== undefined && root === '' && policy === 'Recycle') {
    const text = "may not be 'recycle' for a hostPath mount of '/'";
    found.push(forbiddenField('spec.persistentVolumeReclaimPolicy', text));
  }
  const className = stringAt(spec, 'storageClassName');
  if (className !== '') {
    invalidEach(found, 'spec.storageClassName', className, dnsSubdomainErrors(className));
  }
  oneOf(found, 'spec.volumeMode', spec['volumeMode'], ['Block', 'Filesystem'], true);
  checkAttributesClass(found, spec);
}

function checkModes(found: Findings, spec: JsonObject): void {
  const modes = listAt(spec, 'accessModes');
  if (modes.length === 0) found.push(required('spec.accessModes'));
  for (const mode of modes) {
    if (typeof mode === 'string' && ACCESS_MODES.includes(mode)) continue;
    found.push(notSupported('spec.accessModes', mode, ACCESS_MODES));
  }
  const others = modes.filter((mode) => mode !== 'ReadWriteOncePod');
  const isMixed =
    others.length < modes.length && others.some((mode) => ACCESS_MODES.some((one) => one === mode));
  if (!isMixed) return;
  const text = 'may not use ReadWriteOncePod with other access modes';
  found.push(forbiddenField('spec.accessModes', text));
}

function checkAmounts(found: Findings, capacity: JsonObject): void {
  const names = Object.keys(capacity);
  if (names.length === 0) found.push(required('spec.capacity'));
  if (capacity['storage'] === undefined || names.length > 1) {
    found.push(notSupported('spec.capacity', capacity, ['storage']));
  }
  for (const [name, value] of Object.entries(capacity)) {
    const text = typeof value === 'string' ? value : '';
    const amount = parseQuantity(text);
    if (!(amount instanceof Quantity) || amount.sign > 0) continue;
    const path = `spec.capacity[${name}]`;
    if (amount.sign < 0) {
      found.push(invalidValue(path, Number(text), 'must be a valid resource quantity'));
    }
    found.push(invalidValue(path, text, 'must be greater than zero'));
  }
}

function checkAffinity(found: Findings, affinity: JsonObject): void {
  const wanted = objectAt(affinity, 'required');
  if (wanted === undefined) {
    const text = 'must specify required node constraints';
    found.push(required('spec.nodeAffinity.required', text));
  } else checkNodeSelector(found, 'spec.nodeAffinity.required', wanted);
}

function checkSources(found: Findings, spec: JsonObject, name: string): void {
  let count = 0;
  for (const field of SOURCE_ORDER) {
    const source = objectAt(spec, field);
    if (source === undefined) continue;
    const path = `spec.${field}`;
    // the one driver of drivers may stand beside others
    if (count > 0 && field !== 'flexVolume') {
      found.push(forbiddenField(path, 'may not specify more than 1 volume type'));
      continue;
    }
    count++;
    if (field === 'iscsi') checkPortal(found, source, name);
    if (field === 'local') checkLocal(found, spec, source);
    else VOLUME_SOURCES[field]?.(found, path, source, true);
  }
  if (count === 0) found.push(required('spec', 'must specify a volume type'));
}

const PORTAL_LENGTH_MAX = 64;

function checkPortal(found: Findings, source: JsonObject, name: string): void {
  const portal = stringAt(source, 'targetPortal');
  if (source['initiatorName'] === undefined) return;
  if (`${name}:${portal}`.length <= PORTAL_LENGTH_MAX) return;
  const text =
    `Total length of <volume name>:<iscsi.targetPortal> must be under ${PORTAL_LENGTH_MAX} ` +
    'characters if iscsi.initiatorName is specified.';
  found.push(invalidValue('spec.iscsi.targetportal', portal, text));
}

function checkLocal(found: Findings, spec: JsonObject, source: JsonObject): void {
  const path = stringAt(source, 'path');
  if (path === '') found.push(required('spec.local.path'));
  else checkBacksteps(found, 'spec.local.path', path);
  if (objectAt(spec, 'nodeAffinity') !== undefined) return;
  found.push(required('spec.nodeAffinity', 'Local volume requires node affinity'));
}

function checkAttributesClass(found: Findings, spec: JsonObject): void {
  const name = spec['volumeAttributesClassName'];
  if (typeof name !== 'string') return;
  const path = 'spec.volumeAttributesClassName';
  if (name === '') found.push(required(path, 'an empty string is disallowed'));
  else invalidEach(found, path, name, dnsSubdomainErrors(name));
  if (objectAt(spec, 'csi') !== undefined) return;
  found.push(required('spec.csi', 'has to be specified when using volumeAttributesClassName'));
}

/** What stays as it is: where the volume is, and how it is used. */
export function changeVolume(found: Findings, next: JsonObject, previous: JsonObject): void {
  const [after, before] = [objectAt(next, 'spec') ?? {}, objectAt(previous, 'spec') ?? {}];
  const sourceOf = (spec: JsonObject): JsonObject => {
    const named = SOURCE_ORDER.flatMap((name) => {
      const source = objectAt(spec, name);
      return source === undefined ? [] : [[name, source] as const];
    });
    return Object.fromEntries(named);
  };
  const isNewSecret =
    objectAt(before, 'csi', 'controllerExpandSecretRef') === undefined &&
    objectAt(after, 'csi', 'controllerExpandSecretRef') !== undefined;
  const { csi, ...others } = sourceOf(after);
  const { controllerExpandSecretRef: _, ...rest } = objectAt(csi) ?? {};
  const compared = isNewSecret ? { ...others, csi: rest } : sourceOf(after);
  if (!isSame(compared, sourceOf(before))) {
    const text = 'spec.persistentvolumesource is immutable after creation';
    found.push(forbiddenField('spec.persistentvolumesource', text));
  }
  immutable(found, 'volumeMode', after['volumeMode'], before['volumeMode']);
  const hadClass = before['volumeAttributesClassName'] !== undefined;
  if (hadClass && after['volumeAttributesClassName'] === undefined) {
    const text = 'update from non-nil value to nil is forbidden';
    found.push(forbiddenField('spec.volumeAttributesClassName', text));
  }
}
