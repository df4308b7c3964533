/** Persistent volumes: what they need, whatever driver makes them. */

import { forbiddenField, invalidValue, notSupported, required, tooLong } from './fielderrors.ts';
import { listAt, objectAt, stringAt } from './json.ts';
import type { JsonObject } from './json-value.ts';
import { dnsSubdomainErrors } from './names.ts';
import { parseQuantity, Quantity } from './quantity.ts';
import { checkNodeSelector } from './validation-affinity.ts';
import { immutable, invalidEach, isSame, oneOf } from './validation-rules.ts';
import type { Findings } from './validation-rules.ts';

const ACCESS_MODES = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'];
const DRIVER_NAME_LENGTH_MAX = 63;

/** Kinds of sources in upstream's order, and the fields without which they are nothing. */
const SOURCES: Readonly<Record<string, readonly string[]>> = {
  hostPath: ['path'],
  gcePersistentDisk: ['pdName'],
  awsElasticBlockStore: ['volumeID'],
  glusterfs: ['endpoints', 'path'],
  flocker: [],
  nfs: ['server', 'path'],
  rbd: ['monitors', 'image'],
  quobyte: ['registry', 'volume'],
  cephfs: ['monitors'],
  iscsi: ['targetPortal', 'iqn'],
  cinder: ['volumeID'],
  fc: [],
  flexVolume: ['driver'],
  azureFile: ['secretName', 'shareName'],
  vsphereVolume: ['volumePath'],
  photonPersistentDisk: ['pdID'],
  portworxVolume: ['volumeID'],
  azureDisk: ['diskName', 'diskURI'],
  scaleIO: ['gateway', 'system', 'volumeName'],
  local: ['path'],
  storageos: ['volumeName'],
  csi: ['driver', 'volumeHandle'],
};

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
  checkSources(found, spec);
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

function checkSources(found: Findings, spec: JsonObject): void {
  let count = 0;
  for (const [name, fields] of Object.entries(SOURCES)) {
    const source = objectAt(spec, name);
    if (source === undefined) continue;
    // the one driver of drivers may stand beside others
    if (count > 0 && name !== 'flexVolume') {
      found.push(forbiddenField(`spec.${name}`, 'may not specify more than 1 volume type'));
      continue;
    }
    count++;
    checkSource(found, `spec.${name}`, source, fields);
    if (name === 'local' && objectAt(spec, 'nodeAffinity') === undefined) {
      found.push(required('spec.nodeAffinity', 'Local volume requires node affinity'));
    }
  }
  if (count === 0) found.push(required('spec', 'must specify a volume type'));
}

function checkSource(
  found: Findings,
  path: string,
  source: JsonObject,
  fields: readonly string[],
): void {
  for (const field of fields) {
    const value = source[field];
    const isThere = Array.isArray(value) ? value.length > 0 : value !== undefined && value !== '';
    if (path === 'spec.csi' && field === 'driver') {
      checkDriverName(found, 'spec.csi.driver', stringAt(source, 'driver'));
    } else if (!isThere) found.push(required(`${path}.${field}`));
  }
  const text = 'must be an absolute path';
  const nfs = stringAt(source, 'path');
  if (path === 'spec.nfs' && nfs !== '' && !nfs.startsWith('/')) {
    found.push(invalidValue('spec.nfs.path', nfs, text));
  }
  for (const [member, reference] of Object.entries(source)) {
    if (path !== 'spec.csi' || !member.endsWith('SecretRef')) continue;
    for (const field of ['name', 'namespace']) {
      if (stringAt(reference, field) === '') found.push(required(`${path}.${member}.${field}`));
    }
  }
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
    const named = Object.keys(SOURCES).flatMap((name) => {
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

/** The name of a driver, as it calls itself. */
export function checkDriverName(found: Findings, path: string, name: string): void {
  if (name === '') {
    found.push(required(path));
    return;
  }
  if (name.length > DRIVER_NAME_LENGTH_MAX) found.push(tooLong(path, DRIVER_NAME_LENGTH_MAX));
  invalidEach(found, path, name, dnsSubdomainErrors(name.toLowerCase()));
}
