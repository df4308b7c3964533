/** Persistent volumes: what they need, whatever driver makes them. */

import { ownMember, putMember } from '@megaplane/base/members';
import {
  forbiddenField,
  invalidValue,
  notSupported,
  printed,
  required,
} from '../meta/fielderrors.ts';
import { goDiff, goForm } from '../gotext/go-value-format.ts';
import { listAt, objectAt, stringAt } from '../json/json.ts';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { dnsSubdomainErrors } from '../meta/names.ts';
import { parseQuantity, Quantity } from '../meta/quantity.ts';
import { checkNodeSelector } from './pod/validation-affinity.ts';
import { ACCESS_MODES } from './pod/validation-claims.ts';
import { checkBacksteps } from './field/validation-paths.ts';
import { immutable, invalidEach, isSame, oneOf, oneOfSet } from './field/validation-rules.ts';
import type { Findings } from './field/validation-rules.ts';
import { VOLUME_SOURCES } from './pod/volume-sources.ts';

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

/** Paths that upstream writes differently. */
const ODD_PATHS: Readonly<Record<string, string>> = { gcePersistentDisk: 'spec.persistentDisk' };

/** A new volume. */
export function checkVolume(found: Findings, volume: JsonObject): void {
  const spec = objectAt(volume, 'spec') ?? {};
  checkModes(found, 'spec', spec);
  checkAmounts(found, spec);
  const policies = ['Delete', 'Recycle', 'Retain'];
  const policy = spec['persistentVolumeReclaimPolicy'];
  oneOf(found, 'spec.persistentVolumeReclaimPolicy', policy, policies, true);
  const affinity = objectAt(spec, 'nodeAffinity');
  if (affinity !== undefined) checkAffinity(found, affinity);
  checkSources(found, 'spec', spec, stringAt(volume, 'metadata', 'name'));
  const root = stringAt(spec, 'hostPath', 'path').replace(/\/+$/, '');
  if (objectAt(spec, 'hostPath') !== undefined && root === '' && policy === 'Recycle') {
    const text = "may not be 'recycle' for a hostPath mount of '/'";
    found.push(forbiddenField('spec.persistentVolumeReclaimPolicy', text));
  }
  const className = stringAt(spec, 'storageClassName');
  if (className !== '') {
    invalidEach(found, 'spec.storageClassName', className, dnsSubdomainErrors(className));
  }
  oneOfSet(found, 'spec.volumeMode', spec['volumeMode'], ['Block', 'Filesystem']);
  checkAttributesClass(found, spec);
}

const INLINE = 'in the context of inline volumes';

/** A volume that an attachment describes on the spot, at `path`: a driver's, and little else. */
export function checkInlineVolume(found: Findings, path: string, spec: JsonObject): void {
  const refuse = (field: string, text: string): void => {
    found.push(forbiddenField(`${path}.${field}`, `${text} ${INLINE}`));
  };
  if (objectAt(spec, 'claimRef') !== undefined) refuse('claimRef', 'may not be specified');
  if (Object.keys(objectAt(spec, 'capacity') ?? {}).length > 0) {
    refuse('capacity', 'may not be specified');
  }
  if (objectAt(spec, 'csi') === undefined) {
    found.push(required(`${path}.csi`, `has to be specified ${INLINE}`));
  }
  checkModes(found, path, spec);
  const policy = stringAt(spec, 'persistentVolumeReclaimPolicy');
  if (policy !== '' && policy !== 'Retain') {
    refuse('persistentVolumeReclaimPolicy', 'may only be Retain');
  }
  if (objectAt(spec, 'nodeAffinity') !== undefined) refuse('nodeAffinity', 'may not be specified');
  checkSources(found, path, spec, '');
  if (stringAt(spec, 'storageClassName') !== '') {
    refuse('storageClassName', 'may not be specified');
  }
  const mode = spec['volumeMode'];
  if (typeof mode === 'string' && mode !== 'Filesystem') {
    refuse('volumeMode', 'may not specify volumeMode other than Filesystem');
  }
}

function checkModes(found: Findings, path: string, spec: JsonObject): void {
  const modes = listAt(spec, 'accessModes');
  const at = `${path}.accessModes`;
  if (modes.length === 0) found.push(required(at));
  for (const mode of modes) {
    if (typeof mode === 'string' && ACCESS_MODES.includes(mode)) continue;
    found.push(notSupported(at, mode, ACCESS_MODES));
  }
  const others = modes.filter((mode) => mode !== 'ReadWriteOncePod');
  const isMixed =
    others.length < modes.length && others.some((mode) => ACCESS_MODES.some((one) => one === mode));
  if (!isMixed) return;
  const text = 'may not use ReadWriteOncePod with other access modes';
  found.push(forbiddenField(at, text));
}

function checkAmounts(found: Findings, spec: JsonObject): void {
  const capacity = objectAt(spec, 'capacity') ?? {};
  const names = Object.keys(capacity);
  if (names.length === 0) found.push(required('spec.capacity'));
  if (capacity['storage'] === undefined || names.length > 1) {
    found.push(notSupported('spec.capacity', spec['capacity'] ?? printed('null'), ['storage']));
  }
  for (const [name, value] of Object.entries(capacity)) {
    const text = typeof value === 'string' ? value : '';
    const amount = parseQuantity(text);
    if (!(amount instanceof Quantity)) continue;
    const path = `spec.capacity[${name}]`;
    if (amount.counted < 0n) {
      const counted = printed(String(amount.counted));
      found.push(invalidValue(path, counted, 'must be a valid resource quantity'));
    }
    if (amount.sign <= 0) found.push(invalidValue(path, text, 'must be greater than zero'));
  }
}

function checkAffinity(found: Findings, affinity: JsonObject): void {
  const wanted = objectAt(affinity, 'required');
  if (wanted === undefined) {
    const text = 'must specify required node constraints';
    found.push(required('spec.nodeAffinity.required', text));
  } else checkNodeSelector(found, 'spec.nodeAffinity.required', wanted);
}

function checkSources(found: Findings, owner: string, spec: JsonObject, name: string): void {
  let count = 0;
  for (const field of SOURCE_ORDER) {
    const source = objectAt(spec, field);
    if (source === undefined) continue;
    const path = `${owner}.${field}`;
    // the one driver of drivers may stand beside others
    if (count > 0 && field !== 'flexVolume') {
      const blamed = field === 'cephfs' ? `${owner}.cephFS` : path;
      found.push(forbiddenField(blamed, 'may not specify more than 1 volume type'));
      continue;
    }
    count++;
    if (field === 'iscsi') checkPortal(found, owner, source, name);
    if (field === 'local') checkLocal(found, owner, spec, source);
    else VOLUME_SOURCES[field]?.(found, ODD_PATHS[field] ?? path, source, true);
  }
  if (count === 0) found.push(required(owner, 'must specify a volume type'));
}

const PORTAL_LENGTH_MAX = 64;

function checkPortal(found: Findings, owner: string, source: JsonObject, name: string): void {
  const portal = stringAt(source, 'targetPortal');
  if (source['initiatorName'] === undefined) return;
  if (`${name}:${portal}`.length <= PORTAL_LENGTH_MAX) return;
  const text =
    `Total length of <volume name>:<iscsi.targetPortal> must be under ${PORTAL_LENGTH_MAX} ` +
    'characters if iscsi.initiatorName is specified.';
  found.push(invalidValue(`${owner}.iscsi.targetportal`, portal, text));
}

function checkLocal(found: Findings, owner: string, spec: JsonObject, source: JsonObject): void {
  const path = stringAt(source, 'path');
  if (path === '') found.push(required(`${owner}.local.path`));
  else checkBacksteps(found, `${owner}.local.path`, path);
  if (objectAt(spec, 'nodeAffinity') !== undefined) return;
  found.push(required(`${owner}.nodeAffinity`, 'Local volume requires node affinity'));
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
    const isSource = (name: string): boolean => !OWN_FIELDS.includes(name);
    const difference = goDiff('core.v1.PersistentVolumeSpec', sourceOf(before), compared, isSource);
    found.push(forbiddenField('spec.persistentvolumesource', `${text}\n${difference}`));
  }
  immutable(found, 'volumeMode', after['volumeMode'], before['volumeMode']);
  checkAffinityChange(found, after['nodeAffinity'], before['nodeAffinity']);
  const hadClass = before['volumeAttributesClassName'] !== undefined;
  if (hadClass && after['volumeAttributesClassName'] === undefined) {
    const text = 'update from non-nil value to nil is forbidden';
    found.push(forbiddenField('spec.volumeAttributesClassName', text));
  }
}

/** Labels of nodes that have had another name before. */
const RENAMED_LABELS: Readonly<Record<string, string>> = {
  'beta.kubernetes.io/arch': 'kubernetes.io/arch',
  'beta.kubernetes.io/instance-type': 'node.kubernetes.io/instance-type',
  'beta.kubernetes.io/os': 'kubernetes.io/os',
  'failure-domain.beta.kubernetes.io/region': 'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone': 'topology.kubernetes.io/zone',
};

/** Where a volume can be reached from stays as it is, but for the names of labels. */
function checkAffinityChange(
  found: Findings,
  next: JsonValue | undefined,
  previous: JsonValue | undefined,
): void {
  if (previous === undefined || isSame(renamed(next ?? null, previous), next ?? null)) return;
  const shown = next === undefined ? undefined : goForm('core.v1.VolumeNodeAffinity', next);
  const text = 'field is immutable, except for updating from beta label to GA';
  found.push(invalidValue('nodeAffinity', shown, text));
}

/** The previous value with those keys renamed that have been renamed in the next. */
function renamed(next: JsonValue, previous: JsonValue): JsonValue {
  if (Array.isArray(previous)) {
    const others = Array.isArray(next) ? next : [];
    return previous.map((item, index) => renamed(others[index] ?? null, item));
  }
  if (!isObject(previous)) return previous;
  const other = isObject(next) ? next : {};
  const copy: JsonObject = {};
  for (const [name, value] of Object.entries(previous)) {
    const after = ownMember(other, name) ?? null;
    const isRename =
      name === 'key' && typeof value === 'string' && ownMember(RENAMED_LABELS, value) === after;
    putMember(copy, name, isRename ? after : renamed(after, value ?? null));
  }
  return copy;
}

/** Fields of a volume's spec that are not of its source, as Go calls them. */
const OWN_FIELDS = [
  'Capacity',
  'AccessModes',
  'ClaimRef',
  'PersistentVolumeReclaimPolicy',
  'StorageClassName',
  'MountOptions',
  'VolumeMode',
  'NodeAffinity',
  'VolumeAttributesClassName',
];
