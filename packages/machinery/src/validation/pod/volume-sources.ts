/**
 * What each kind of storage that a volume can come from must say. Pods and persistent volumes have
 * almost the same kinds; the few differences are told by `isPersistent`.
 */
import { ownMember } from '@megaplane/base/members';
import { invalidValue, notSupported, required } from '../../meta/fielderrors.ts';
import { listAt, numberAt, objectAt, stringAt } from '../../json/json.ts';
import type { JsonObject } from '../../json/json-value.ts';
import { dnsLabelErrors, dnsSubdomainErrors, rangeText } from '../../meta/names.ts';
import { checkBacksteps } from '../field/validation-paths.ts';
import { checkDnsLabel, invalidEach, oneOf, type Findings } from '../field/validation-rules.ts';
import { checkDriverName } from '../field/driver-name.ts';

/** Checks one source at `path`. */
export type SourceCheck = (
  found: Findings,
  path: string,
  source: JsonObject,
  isPersistent: boolean,
) => void;

const HOST_PATH_TYPES = [
  '',
  'BlockDevice',
  'CharDevice',
  'Directory',
  'DirectoryOrCreate',
  'File',
  'FileOrCreate',
  'Socket',
];

/** A source that only has to have some fields. */
function fields(...names: readonly string[]): SourceCheck {
  return (found, path, source) => requireEach(found, path, source, names);
}

function requireEach(
  found: Findings,
  path: string,
  source: JsonObject,
  names: readonly string[],
): void {
  for (const name of names) {
    const value = ownMember(source, name);
    const isThere = Array.isArray(value)
      ? value.length > 0
      : value !== undefined && value !== null && value !== '';
    if (!isThere) found.push(required(`${path}.${name}`));
  }
}

/** A secret that a source names: with its namespace where no pod's is meant. */
function checkSecret(
  found: Findings,
  path: string,
  source: JsonObject,
  isPersistent: boolean,
): void {
  const secret = objectAt(source, 'secretRef');
  if (secret === undefined) return;
  const names = isPersistent ? ['name', 'namespace'] : ['name'];
  requireEach(found, `${path}.secretRef`, secret, names);
}

/** Kinds that both pods and persistent volumes know. */
export const VOLUME_SOURCES: Readonly<Record<string, SourceCheck>> = {
  hostPath(found, path, source) {
    const hostPath = stringAt(source, 'path');
    if (hostPath === '') {
      found.push(required(`${path}.path`));
      return;
    }
    checkBacksteps(found, `${path}.path`, hostPath);
    oneOf(found, `${path}.type`, source['type'], HOST_PATH_TYPES, true);
  },
  gcePersistentDisk: partitioned('pdName'),
  awsElasticBlockStore: partitioned('volumeID'),
  nfs(found, path, source) {
    requireEach(found, path, source, ['server', 'path']);
    const exported = stringAt(source, 'path');
    if (exported.startsWith('/')) return;
    found.push(invalidValue(`${path}.path`, exported, 'must be an absolute path'));
  },
  iscsi: checkIscsi,
  glusterfs(found, path, source, isPersistent) {
    requireEach(found, path, source, ['endpoints', 'path']);
    const namespace = source['endpointsNamespace'];
    if (!isPersistent || typeof namespace !== 'string') return;
    const text = 'if the endpointnamespace is set, it must be a valid namespace name';
    const faults = namespace === '' ? [text] : dnsLabelErrors(namespace);
    invalidEach(found, `${path}.endpointsNamespace`, namespace, faults);
  },
  flocker(found, path, source) {
    const name = stringAt(source, 'datasetName');
    const count = [name, stringAt(source, 'datasetUUID')].filter((one) => one !== '').length;
    if (count === 0) found.push(required(path, 'one of datasetName and datasetUUID is required'));
    if (count === 2) {
      const text = 'datasetName and datasetUUID can not be specified simultaneously';
      found.push(invalidValue(path, 'resource', text));
    }
    if (!name.includes('/')) return;
    found.push(invalidValue(`${path}.datasetName`, name, "must not contain '/'"));
  },
  rbd: fields('monitors', 'image'),
  cinder(found, path, source, isPersistent) {
    requireEach(found, path, source, ['volumeID']);
    checkSecret(found, path, source, isPersistent);
  },
  cephfs: fields('monitors'),
  quobyte: checkQuobyte,
  fc: checkFibre,
  flexVolume(found, path, source) {
    requireEach(found, path, source, ['driver']);
    for (const key of Object.keys(objectAt(source, 'options') ?? {})) {
      const namespace = `.${(key.split('/')[0] ?? '').toLowerCase()}`;
      if (!/\.(kubernetes|k8s)\.io$/.test(namespace)) continue;
      const text = 'kubernetes.io and k8s.io namespaces are reserved';
      found.push(invalidValue(`${path}.options[${key}]`, key, text));
    }
  },
  azureFile(found, path, source, isPersistent) {
    requireEach(found, path, source, ['secretName', 'shareName']);
    if (!isPersistent || source['secretNamespace'] !== '') return;
    found.push(required(`${path}.secretNamespace`));
  },
  vsphereVolume: fields('volumePath'),
  photonPersistentDisk: fields('pdID'),
  portworxVolume: fields('volumeID'),
  azureDisk: checkAzureDisk,
  storageos(found, path, source, isPersistent) {
    const name = stringAt(source, 'volumeName');
    if (name === '') found.push(required(`${path}.volumeName`));
    else checkDnsLabel(found, `${path}.volumeName`, name);
    const namespace = stringAt(source, 'volumeNamespace');
    if (namespace !== '') checkDnsLabel(found, `${path}.volumeNamespace`, namespace);
    checkSecret(found, path, source, isPersistent);
  },
  scaleIO: fields('gateway', 'system', 'volumeName'),
  csi: checkCsi,
};

const PARTITION_MAX = 255;

function partitioned(name: string): SourceCheck {
  return (found, path, source) => {
    requireEach(found, path, source, [name]);
    const partition = numberAt(source, 'partition');
    if (partition >= 0 && partition <= PARTITION_MAX) return;
    found.push(invalidValue(`${path}.partition`, partition, rangeText(1, PARTITION_MAX)));
  };
}

const UNIT_MAX = 255;

function checkUnit(found: Findings, path: string, unit: number): void {
  if (unit >= 0 && unit <= UNIT_MAX) return;
  found.push(invalidValue(`${path}.lun`, unit, rangeText(0, UNIT_MAX)));
}

const ISCSI_NAMES: readonly RegExp[] = [
  /iqn\.\d{4}-\d{2}\.([0-9A-Za-z.-]+)(:[^,;*&$|\s]+)$/,
  /^eui.[0-9A-Za-z]{16}$/,
  /^naa.[0-9A-Za-z]{32}$/,
];

function checkIscsi(
  found: Findings,
  path: string,
  source: JsonObject,
  isPersistent: boolean,
): void {
  requireEach(found, path, source, ['targetPortal', 'iqn']);
  const name = stringAt(source, 'iqn');
  if (name !== '') checkIscsiName(found, `${path}.iqn`, name, isPersistent);
  checkUnit(found, path, numberAt(source, 'lun'));
  const isSecret = source['chapAuthDiscovery'] === true || source['chapAuthSession'] === true;
  if (isSecret && source['secretRef'] === undefined) found.push(required(`${path}.secretRef`));
  const secret = objectAt(source, 'secretRef');
  if (isPersistent && secret !== undefined) {
    requireEach(found, `${path}.secretRef`, secret, ['name']);
  }
  const initiator = source['initiatorName'];
  if (typeof initiator !== 'string') return;
  checkIscsiName(found, `${path}.initiatorname`, initiator, isPersistent);
}

function checkIscsiName(found: Findings, path: string, name: string, isPersistent: boolean): void {
  const kind = ['iqn', 'eui', 'naa'].findIndex((prefix) => name.startsWith(prefix));
  const isValid = ISCSI_NAMES[kind]?.test(name);
  if (isValid === true) return;
  const isUnknown = isValid === undefined && !isPersistent;
  const start = isUnknown ? ' starting with iqn, eui, or naa' : '';
  found.push(invalidValue(path, name, `must be valid format${start}`));
}

function checkFibre(found: Findings, path: string, source: JsonObject): void {
  const targets = listAt(source, 'targetWWNs');
  const ids = listAt(source, 'wwids');
  const at = `${path}.targetWWNs`;
  if (targets.length === 0 && ids.length === 0) {
    found.push(required(at, 'must specify either targetWWNs or wwids, but not both'));
  }
  if (targets.length > 0 && ids.length > 0) {
    const text = 'targetWWNs and wwids can not be specified simultaneously';
    found.push(invalidValue(at, [...targets], text));
  }
  if (targets.length === 0) return;
  const unit = source['lun'];
  if (typeof unit === 'number') checkUnit(found, path, unit);
  else found.push(required(`${path}.lun`, 'lun is required if targetWWNs is specified'));
}

const TENANT_LENGTH_MAX = 64;

function checkQuobyte(found: Findings, path: string, source: JsonObject): void {
  const pairs = 'must be a host:port pair or multiple pairs separated by commas';
  const registry = stringAt(source, 'registry');
  if (registry === '') found.push(required(`${path}.registry`, pairs));
  else if (stringAt(source, 'tenant').length > TENANT_LENGTH_MAX) {
    const text = `must be a UUID and may not exceed a length of ${TENANT_LENGTH_MAX} characters`;
    found.push(required(`${path}.tenant`, text));
  } else {
    for (const pair of registry.split(',')) {
      if (/^([^:[\]]*|\[[^[\]]*\]):[^:[\]]*$/.test(pair)) continue;
      found.push(invalidValue(`${path}.registry`, registry, pairs));
    }
  }
  requireEach(found, path, source, ['volume']);
}

const MANAGED =
  '/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}';
const BLOB = 'https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd';

function checkAzureDisk(found: Findings, path: string, source: JsonObject): void {
  requireEach(found, path, source, ['diskName', 'diskURI']);
  for (const [field, values] of [
    ['cachingMode', ['None', 'ReadOnly', 'ReadWrite']],
    ['kind', ['Dedicated', 'Managed', 'Shared']],
  ] as const) {
    const value = source[field];
    if (typeof value !== 'string' || values.some((one) => one === value)) continue;
    found.push(notSupported(`${path}.${field}`, value, values));
  }
  const uri = stringAt(source, 'diskURI');
  const isManaged = source['kind'] === 'Managed';
  if (source['kind'] === undefined) return;
  if (uri.startsWith(isManaged ? '/subscriptions/' : 'https://')) return;
  found.push(notSupported(`${path}.diskURI`, uri, [isManaged ? MANAGED : BLOB]));
}

const CSI_SECRETS = [
  'controllerPublishSecretRef',
  'controllerExpandSecretRef',
  'nodePublishSecretRef',
  'nodeExpandSecretRef',
];

function checkCsi(found: Findings, path: string, source: JsonObject, isPersistent: boolean): void {
  checkDriverName(found, `${path}.driver`, stringAt(source, 'driver'));
  if (isPersistent) {
    requireEach(found, path, source, ['volumeHandle']);
    for (const field of CSI_SECRETS) {
      const secret = objectAt(source, field);
      if (secret !== undefined) checkCsiSecret(found, `${path}.${field}`, secret);
    }
    return;
  }
  const secret = objectAt(source, 'nodePublishSecretRef');
  if (secret === undefined) return;
  const name = stringAt(secret, 'name');
  if (name === '') found.push(required(`${path}.nodePublishSecretRef.name`));
  // the path is upstream's, without its member
  else invalidEach(found, `${path}.name`, name, dnsSubdomainErrors(name));
}

function checkCsiSecret(found: Findings, path: string, secret: JsonObject): void {
  const name = stringAt(secret, 'name');
  if (name === '') found.push(required(`${path}.name`));
  else invalidEach(found, `${path}.name`, name, dnsSubdomainErrors(name));
  const namespace = stringAt(secret, 'namespace');
  if (namespace === '') found.push(required(`${path}.namespace`));
  else checkDnsLabel(found, `${path}.namespace`, namespace);
}
