/** Volumes of pods and of templates. */

import { duplicate, forbiddenField, invalidValue, required } from './fielderrors.ts';
import { listAt, numberAt, objectAt, stringAt } from './json.ts';
import type { JsonObject, JsonValue } from './json-value.ts';
import { rangeText } from './names.ts';
import { parseQuantity, Quantity } from './quantity.ts';
import { checkDescendingPath } from './validation-containers.ts';
import { checkFieldReference, checkResourceReference, FILE_FIELDS } from './validation-downward.ts';
import { checkDnsLabel, eachObject, oneOf, type Findings } from './validation-rules.ts';

const FILE_MODE_MAX = 0o777;
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

/** In upstream's order of looking: the first one found is meant, the others are too many. */
const SOURCE_ORDER = [
  ...['emptyDir', 'hostPath', 'gitRepo', 'gcePersistentDisk', 'awsElasticBlockStore', 'secret'],
  ...['nfs', 'iscsi', 'glusterfs', 'flocker', 'persistentVolumeClaim', 'rbd', 'cinder', 'cephfs'],
  ...['quobyte', 'downwardAPI', 'fc', 'flexVolume', 'configMap', 'azureFile', 'vsphereVolume'],
  ...['photonPersistentDisk', 'portworxVolume', 'azureDisk', 'storageos', 'projected', 'scaleIO'],
  ...['csi', 'ephemeral', 'image'],
];
/** Paths that upstream writes differently when it finds one too many. */
const ODD_PATHS: Readonly<Record<string, string>> = { cephfs: 'cephFS', downwardAPI: 'downwarAPI' };

type SourceCheck = (found: Findings, path: string, source: JsonObject) => void;

const SOURCES: Readonly<Record<string, SourceCheck>> = {
  emptyDir: checkEmptyDir,
  hostPath: checkHostPath,
  configMap: (found, path, source) => {
    if (stringAt(source, 'name') === '') found.push(required(`${path}.name`));
    checkItems(found, path, source);
  },
  secret: (found, path, source) => {
    if (stringAt(source, 'secretName') === '') found.push(required(`${path}.secretName`));
    checkItems(found, path, source);
  },
  persistentVolumeClaim: (found, path, source) => {
    if (stringAt(source, 'claimName') === '') found.push(required(`${path}.claimName`));
  },
  nfs: checkNfs,
  iscsi: checkIscsi,
  csi: (found, path, source) => {
    if (stringAt(source, 'driver') === '') found.push(required(`${path}.driver`));
  },
  projected: checkProjected,
  downwardAPI: (found, path, source) => {
    checkMode(found, `${path}.defaultMode`, source['defaultMode']);
    // the path is upstream's, without its member
    eachObject(listAt(source, 'items'), path, (item) => checkDownwardFile(found, path, item));
  },
  ephemeral: (found, path, source) => {
    const template = objectAt(source, 'volumeClaimTemplate');
    if (template === undefined) found.push(required(`${path}.volumeClaimTemplate`));
  },
};

/** Checks a pod's volumes; gives the names that containers may mount. */
export function checkVolumes(
  found: Findings,
  path: string,
  volumes: readonly JsonValue[],
): Set<string> {
  const names = new Set<string>();
  eachObject(volumes, path, (volume, at) => {
    const before = found.length;
    checkSource(found, at, volume);
    const name = stringAt(volume, 'name');
    if (name === '') found.push(required(`${at}.name`));
    else checkDnsLabel(found, `${at}.name`, name);
    if (names.has(name)) found.push(duplicate(`${at}.name`, name));
    if (found.length === before) names.add(name);
  });
  return names;
}

function checkSource(found: Findings, path: string, volume: JsonObject): void {
  const sources = SOURCE_ORDER.filter((field) => volume[field] !== undefined);
  for (const [index, field] of sources.entries()) {
    const at = `${path}.${field}`;
    const blamed = `${path}.${ODD_PATHS[field] ?? field}`;
    if (index > 0) found.push(forbiddenField(blamed, 'may not specify more than 1 volume type'));
    else SOURCES[field]?.(found, at, objectAt(volume, field) ?? {});
  }
  if (sources.length === 0) found.push(required(path, 'must specify a volume type'));
}

function checkEmptyDir(found: Findings, path: string, source: JsonObject): void {
  const limit = source['sizeLimit'];
  const amount = typeof limit === 'string' ? parseQuantity(limit) : undefined;
  if (!(amount instanceof Quantity) || amount.sign >= 0) return;
  const text = 'SizeLimit field must be a valid resource quantity';
  found.push(forbiddenField(`${path}.sizeLimit`, text));
}

function checkHostPath(found: Findings, path: string, source: JsonObject): void {
  const hostPath = stringAt(source, 'path');
  if (hostPath === '') {
    found.push(required(`${path}.path`));
    return;
  }
  if (hostPath.split('/').includes('..')) {
    found.push(invalidValue(`${path}.path`, hostPath, "must not contain '..'"));
  }
  oneOf(found, `${path}.type`, source['type'], HOST_PATH_TYPES, true);
}

const ISCSI_NAMES: readonly RegExp[] = [
  /iqn\.\d{4}-\d{2}\.([0-9A-Za-z.-]+)(:[^,;*&$|\s]+)$/,
  /^eui.[0-9A-Za-z]{16}$/,
  /^naa.[0-9A-Za-z]{32}$/,
];

function checkIscsi(found: Findings, path: string, source: JsonObject): void {
  if (stringAt(source, 'targetPortal') === '') found.push(required(`${path}.targetPortal`));
  const name = stringAt(source, 'iqn');
  if (name === '') found.push(required(`${path}.iqn`));
  else checkIscsiName(found, `${path}.iqn`, name);
  const unit = numberAt(source, 'lun');
  if (unit < 0 || unit > 255) found.push(invalidValue(`${path}.lun`, unit, rangeText(0, 255)));
  const isSecret = source['chapAuthDiscovery'] === true || source['chapAuthSession'] === true;
  if (isSecret && source['secretRef'] === undefined) found.push(required(`${path}.secretRef`));
  const initiator = source['initiatorName'];
  if (typeof initiator === 'string') checkIscsiName(found, `${path}.initiatorname`, initiator);
}

function checkIscsiName(found: Findings, path: string, name: string): void {
  const kind = ['iqn', 'eui', 'naa'].findIndex((prefix) => name.startsWith(prefix));
  const isValid = ISCSI_NAMES[kind]?.test(name);
  if (isValid === true) return;
  const start = isValid === undefined ? ' starting with iqn, eui, or naa' : '';
  found.push(invalidValue(path, name, `must be valid format${start}`));
}

function checkNfs(found: Findings, path: string, source: JsonObject): void {
  if (stringAt(source, 'server') === '') found.push(required(`${path}.server`));
  const exported = stringAt(source, 'path');
  if (exported === '') found.push(required(`${path}.path`));
  else if (!exported.startsWith('/')) {
    found.push(invalidValue(`${path}.path`, exported, 'must be an absolute path'));
  }
}

function checkMode(found: Findings, path: string, mode: JsonValue | undefined): void {
  if (typeof mode !== 'number' || (mode >= 0 && mode <= FILE_MODE_MAX)) return;
  const text = 'must be a number between 0 and 0777 (octal), both inclusive';
  found.push(invalidValue(path, mode, text));
}

function checkItems(found: Findings, path: string, source: JsonObject): void {
  checkMode(found, `${path}.defaultMode`, source['defaultMode']);
  eachObject(listAt(source, 'items'), `${path}.items`, (item, at) => {
    if (stringAt(item, 'key') === '') found.push(required(`${at}.key`));
    const target = stringAt(item, 'path');
    if (target === '') found.push(required(`${at}.path`));
    checkDescendingPath(found, `${at}.path`, target);
    checkMode(found, `${at}.mode`, item['mode']);
  });
}

const TOKEN_SECONDS_MIN = 600;

function checkProjected(found: Findings, path: string, source: JsonObject): void {
  checkMode(found, `${path}.defaultMode`, source['defaultMode']);
  eachObject(listAt(source, 'sources'), `${path}.sources`, (item, at) => {
    const kinds = Object.keys(item);
    if (kinds.length > 1) {
      for (const kind of kinds.slice(1)) {
        found.push(forbiddenField(`${at}.${kind}`, 'may not specify more than 1 volume type'));
      }
    }
    for (const kind of ['configMap', 'secret']) {
      const projection = objectAt(item, kind);
      if (projection === undefined) continue;
      if (stringAt(projection, 'name') === '') found.push(required(`${at}.${kind}.name`));
      checkItems(found, `${at}.${kind}`, projection);
    }
    const downward = `${at}.downwardAPI`;
    eachObject(listAt(item, 'downwardAPI', 'items'), downward, (file) =>
      checkDownwardFile(found, downward, file),
    );
    const token = objectAt(item, 'serviceAccountToken');
    if (token !== undefined) checkToken(found, `${at}.serviceAccountToken`, token);
  });
}

/** One file about the pod; upstream names the volume, not the file, where it finds something. */
function checkDownwardFile(found: Findings, path: string, file: JsonObject): void {
  const name = stringAt(file, 'path');
  if (name === '') found.push(required(`${path}.path`));
  const field = objectAt(file, 'fieldRef');
  const resource = objectAt(file, 'resourceFieldRef');
  if (field !== undefined) {
    checkFieldReference(found, `${path}.fieldRef`, field, FILE_FIELDS);
    if (resource !== undefined) {
      const text = 'fieldRef and resourceFieldRef can not be specified simultaneously';
      found.push(invalidValue(path, 'resource', text));
    }
  } else if (resource !== undefined) {
    checkResourceReference(found, `${path}.resourceFieldRef`, resource, true);
  } else found.push(required(path, 'one of fieldRef and resourceFieldRef is required'));
  checkMode(found, `${path}.mode`, file['mode']);
}

function checkToken(found: Findings, path: string, token: JsonObject): void {
  const seconds = token['expirationSeconds'];
  if (typeof seconds === 'number' && seconds < TOKEN_SECONDS_MIN) {
    const text = 'may not specify a duration less than 10 minutes';
    found.push(invalidValue(`${path}.expirationSeconds`, seconds, text));
  } else if (typeof seconds === 'number' && seconds > 2 ** 32) {
    const text = 'may not specify a duration larger than 2^32 seconds';
    found.push(invalidValue(`${path}.expirationSeconds`, seconds, text));
  }
  if (stringAt(token, 'path') === '') found.push(required(`${path}.path`));
  else checkDescendingPath(found, `${path}.path`, stringAt(token, 'path'));
}
