/**
 * A value as upstream prints its internal structs in error texts: every field under its Go name,
 * `null` and zero written out.
 */

import { ownMember, putMember, putMembers } from '@megaplane/base/members';
import { printed, type Printed } from '../meta/fielderrors.ts';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { lineDiff } from './cmp-diff.ts';
import { isOmitted } from '../scheme/normal-form.ts';
import { escapedJson } from '../json/quoting.ts';
import { findType, type Shape, type Type } from '../scheme/schema.ts';
import { zeroOf } from '../scheme/zero-values.ts';

const INITIALS = /^(os|tty|uid|url|ip|nfs|csi|rbd|fc|iscsi|grpc|cel)$/;
const FIRST_WORDS = /^(dns|http|tcp|api|fs|pid|ip|gce|aws)(?=[A-Z])/;

const ISCSI = {
  iqn: 'IQN',
  iscsiInterface: 'ISCSIInterface',
  chapAuthDiscovery: 'DiscoveryCHAPAuth',
  chapAuthSession: 'SessionCHAPAuth',
};
const RBD = { monitors: 'CephMonitors', image: 'RBDImage', pool: 'RBDPool', user: 'RadosUser' };

/** Fields that Go calls something else, by the last part of their type's name. */
const RENAMED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  AzureDiskVolumeSource: { diskURI: 'DataDiskURI' },
  DeviceAttribute: {
    int: 'IntValue',
    bool: 'BoolValue',
    string: 'StringValue',
    version: 'VersionValue',
    ints: 'IntValues',
    bools: 'BoolValues',
    strings: 'StringValues',
    versions: 'VersionValues',
  },
  FCVolumeSource: { wwids: 'WWIDs' },
  GCEPersistentDiskVolumeSource: { pdName: 'PDName' },
  GlusterfsPersistentVolumeSource: { endpoints: 'EndpointsName' },
  GlusterfsVolumeSource: { endpoints: 'EndpointsName' },
  ISCSIPersistentVolumeSource: ISCSI,
  ISCSIVolumeSource: ISCSI,
  JobSpec: { ttlSecondsAfterFinished: 'TTLSecondsAfterFinished' },
  PersistentVolumeSpec: { cephfs: 'CephFS', storageos: 'StorageOS' },
  PodSecurityContext: {
    seLinuxOptions: 'SELinuxOptions',
    seLinuxChangePolicy: 'SELinuxChangePolicy',
  },
  RBDPersistentVolumeSource: RBD,
  RBDVolumeSource: RBD,
  ScaleIOPersistentVolumeSource: { sslEnabled: 'SSLEnabled' },
  ScaleIOVolumeSource: { sslEnabled: 'SSLEnabled' },
  SecurityContext: { seLinuxOptions: 'SELinuxOptions' },
  Volume: { cephfs: 'CephFS', storageos: 'StorageOS' },
  WindowsSecurityContextOptions: {
    gmsaCredentialSpecName: 'GMSACredentialSpecName',
    gmsaCredentialSpec: 'GMSACredentialSpec',
  },
};

/** Fields of v1 that come elsewhere inside: each list goes behind the field before it. */
const MOVED: Readonly<Record<string, readonly (readonly [behind: string, fields: string])[]>> = {
  PersistentVolumeSpec: [
    ['AWSElasticBlockStore', 'HostPath Glusterfs NFS RBD Quobyte ISCSI FlexVolume Cinder CephFS'],
    ['CephFS', 'FC Flocker AzureFile VsphereVolume AzureDisk PhotonPersistentDisk PortworxVolume'],
    ['PortworxVolume', 'ScaleIO Local StorageOS CSI AccessModes ClaimRef'],
    ['ClaimRef', 'PersistentVolumeReclaimPolicy StorageClassName MountOptions VolumeMode'],
  ],
  Volume: [
    ['NFS', 'ISCSI Glusterfs PersistentVolumeClaim RBD Quobyte FlexVolume Cinder CephFS Flocker'],
    ['Flocker', 'DownwardAPI FC AzureFile ConfigMap VsphereVolume AzureDisk'],
    ['AzureDisk', 'PhotonPersistentDisk Projected PortworxVolume ScaleIO StorageOS CSI'],
  ],
  JobSpec: [
    ['Completions', 'PodFailurePolicy SuccessPolicy ActiveDeadlineSeconds BackoffLimit'],
    ['BackoffLimit', 'BackoffLimitPerIndex MaxFailedIndexes Selector ManualSelector Template'],
    ['Template', 'TTLSecondsAfterFinished CompletionMode Suspend PodReplacementPolicy ManagedBy'],
  ],
  PodSecurityContext: [['FSGroup', 'FSGroupChangePolicy Sysctls']],
  PodSpec: [
    ['Subdomain', 'SetHostnameAsFQDN Affinity SchedulerName Tolerations HostAliases'],
    ['HostAliases', 'PriorityClassName Priority PreemptionPolicy DNSConfig ReadinessGates'],
    ['ReadinessGates', 'RuntimeClassName Overhead EnableServiceLinks TopologySpreadConstraints'],
    ['TopologySpreadConstraints', 'OS SchedulingGates ResourceClaims Resources'],
    ['Resources', 'HostnameOverride SchedulingGroup'],
  ],
};

/** Fields that may be absent in v1, and are zero inside then. */
const BY_VALUE: Readonly<Record<string, readonly string[]>> = {
  RollingUpdateDaemonSet: ['maxUnavailable', 'maxSurge'],
  RollingUpdateDeployment: ['maxUnavailable', 'maxSurge'],
  RollingUpdateStatefulSetStrategy: ['partition'],
  ServiceAccountTokenProjection: ['expirationSeconds'],
};

/** What v1 has beside the security context of a pod, and Go has within it. */
const HOST_FIELDS = ['hostNetwork', 'hostPID', 'hostIPC', 'shareProcessNamespace', 'hostUsers'];

/** `apiGroup` -> `APIGroup`, `maxSurge` -> `MaxSurge`. */
function goName(name: string): string {
  if (name === 'cidrs') return 'CIDRs';
  if (INITIALS.test(name)) return name.toUpperCase();
  const named = name.replace(FIRST_WORDS, (word) => word.toUpperCase());
  return named.charAt(0).toUpperCase() + named.slice(1);
}

/** The struct of a type by its name (`apps.v1.DeploymentStrategy`), ready for an error text. */
export function goForm(typeName: string, value: JsonValue | undefined): Printed {
  return printed(escapedJson(goValueOf(typeName, value)));
}

/** The same as a value. */
export function goValueOf(typeName: string, value: JsonValue | undefined): JsonValue {
  const type = findType(typeName);
  if (type === undefined) throw new Error(`no type ${typeName}`);
  return formOf({ kind: 'object', type }, value, false);
}

function formOf(shape: Shape, value: JsonValue | undefined, isPointer: boolean): JsonValue {
  if (value === undefined || value === null) {
    if (isPointer || shape.kind === 'list' || shape.kind === 'map') return null;
    if (shape.kind === 'scalar') return zeroOf(shape.scalar);
  }
  if (shape.kind === 'list') {
    return Array.isArray(value) ? value.map((item) => formOf(shape.items, item, false)) : [];
  }
  if (shape.kind === 'map') return isObject(value) ? sortedMap(value) : (value ?? null);
  if (shape.kind !== 'object') return value ?? null;
  // Structs of meta.v1 are printed under their JSON names.
  if (shape.type.name.startsWith('meta.v1.')) return jsonOf(shape, value ?? {});
  const form: JsonObject = {};
  const source = isObject(value) ? value : {};
  const { name: typeName, goName: struct, fields } = shape.type;
  for (const field of fields) {
    // metadata is embedded there, and printed among the other fields
    if (field.name === 'metadata') {
      const inner = formOf(field.shape, source['metadata'], false);
      if (isObject(inner)) putMembers(form, inner);
      continue;
    }
    const name = ownMember(ownMember(RENAMED, struct), field.name) ?? goName(field.name);
    const isPointer = field.isPointer && ownMember(BY_VALUE, struct)?.includes(field.name) !== true;
    putMember(form, name, formOf(field.shape, ownMember(source, field.name), isPointer));
  }
  if (typeName === 'core.v1.PodSpec') moveHostFields(form);
  return reordered(form, struct);
}

/** A map as Go writes it. */
export function sortedMap(map: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(map).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** A selector as Go writes it: in order, without what is empty. */
export function selectorForm(selector: JsonValue | undefined): JsonValue | undefined {
  const type = findType('meta.v1.LabelSelector');
  return isObject(selector) && type !== undefined
    ? jsonOf({ kind: 'object', type }, selector)
    : selector;
}

/** An object of v1 as Go writes it: in the order of its type, without what is empty. */
export function versionedForm(type: Type, object: JsonObject): JsonObject {
  const form = jsonOf({ kind: 'object', type }, object);
  return isObject(form) ? form : object;
}

/** What has the same names inside as in v1, as Go writes it. */
function jsonOf(shape: Shape, value: JsonValue): JsonValue {
  if (shape.kind === 'list' && Array.isArray(value)) {
    return value.map((item) => jsonOf(shape.items, item));
  }
  if (!isObject(value)) return value;
  if (shape.kind === 'map') return sortedMap(value);
  if (shape.kind !== 'object') return value;
  const form: JsonObject = {};
  for (const name of ['kind', 'apiVersion']) {
    const member = value[name];
    const isOwn = shape.type.field(name) !== undefined;
    if (!isOwn && member !== undefined) form[name] = member;
  }
  for (const field of shape.type.fields) {
    const member = ownMember(value, field.name) ?? field.absent;
    if (member === undefined || isOmitted(field, member)) continue;
    putMember(form, field.name, jsonOf(field.shape, member));
  }
  return form;
}

/** The host's namespaces belong to the security context, which there always is inside. */
function moveHostFields(form: JsonObject): void {
  const host: JsonObject = {};
  for (const field of HOST_FIELDS) {
    const name = goName(field);
    putMember(host, name, ownMember(form, name) ?? null);
    delete form[name];
  }
  // an alias that v1 keeps for old clients
  delete form['ServiceAccount'];
  form['SecurityContext'] = { ...host, ...contextOf(form['SecurityContext']) };
}

function contextOf(form: JsonValue | undefined): JsonObject {
  if (isObject(form)) return form;
  const empty = goValueOf('core.v1.PodSecurityContext', {});
  return isObject(empty) ? empty : {};
}

function reordered(form: JsonObject, struct: string): JsonObject {
  let names = Object.keys(form);
  for (const [behind, fields] of ownMember(MOVED, struct) ?? []) {
    const moved = fields.split(' ');
    const others = names.filter((name) => !moved.includes(name));
    const at = others.indexOf(behind) + 1;
    names = [...others.slice(0, at), ...moved, ...others.slice(at)];
  }
  return Object.fromEntries(names.map((name) => [name, ownMember(form, name) ?? null]));
}

/** How two values of a type differ, a field a line, as upstream shows it in texts. */
export function goDiff(
  typeName: string,
  before: JsonValue | undefined,
  after: JsonValue | undefined,
  names?: (name: string) => boolean,
): string {
  const linesOf = (value: JsonValue | undefined): string[] => {
    const form = goValueOf(typeName, value);
    const kept = Object.entries(isObject(form) ? form : {}).filter(
      ([name]) => names === undefined || names(name),
    );
    return escapedJson(Object.fromEntries(kept), 1).split('\n');
  };
  return lineDiff(linesOf(before), linesOf(after));
}
