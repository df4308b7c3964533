/** Volumes of pods and of templates. */

import { ownMember } from '@megaplane/base/members';
import { duplicate, forbiddenField, invalidValue, required } from '../../meta/fielderrors.ts';
import { listAt, objectAt, stringAt } from '../../json/json.ts';
import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import { dnsSubdomainErrors } from '../../meta/names.ts';
import { parseQuantity, Quantity } from '../../meta/quantity.ts';
import { checkClaimSpec } from './validation-claims.ts';
import { checkDescendingPath } from '../field/validation-paths.ts';
import { checkTemplateMetadata } from '../field/validation-metadata.ts';
import {
  checkDnsLabel,
  eachObject,
  invalidEach,
  oneOf,
  type Findings,
} from '../field/validation-rules.ts';
import { checkDownwardFile, checkItems, checkMode, checkProjected } from './projected-volumes.ts';
import { VOLUME_SOURCES, type SourceCheck } from './volume-sources.ts';

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

const SOURCES: Readonly<Record<string, SourceCheck>> = {
  ...VOLUME_SOURCES,
  emptyDir: checkEmptyDir,
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
  gitRepo: (found, path, source) => {
    if (stringAt(source, 'repository') === '') found.push(required(`${path}.repository`));
    checkDescendingPath(found, `${path}.directory`, stringAt(source, 'directory'));
  },
  projected: checkProjected,
  downwardAPI: (found, path, source) => {
    checkMode(found, `${path}.defaultMode`, source['defaultMode']);
    // the path is upstream's, without its member
    eachObject(listAt(source, 'items'), path, (item) => checkDownwardFile(found, path, item));
  },
  ephemeral: checkEphemeral,
};

/** Where volumes stand. */
export interface VolumeScope {
  /** Name of the pod; '' where it is not known, as in templates. */
  readonly podName: string;
  readonly isTemplate: boolean;
}

/** Checks a pod's volumes; gives those that containers may mount, by name. */
export function checkVolumes(
  found: Findings,
  path: string,
  volumes: readonly JsonValue[],
  scope: VolumeScope,
): Map<string, JsonObject> {
  const valid = new Map<string, JsonObject>();
  const created = volumes
    .filter((volume) => objectAt(volume, 'ephemeral') !== undefined)
    .map((volume) => `${scope.podName}-${stringAt(volume, 'name')}`);
  eachObject(volumes, path, (volume, at) => {
    const before = found.length;
    checkSource(found, at, volume, scope);
    const name = stringAt(volume, 'name');
    if (name === '') found.push(required(`${at}.name`));
    else checkDnsLabel(found, `${at}.name`, name);
    if (valid.has(name)) found.push(duplicate(`${at}.name`, name));
    if (found.length === before) valid.set(name, volume);
    const claim = stringAt(volume, 'persistentVolumeClaim', 'claimName');
    if (scope.podName === '' || !created.includes(claim)) return;
    const text = 'must not reference a PVC that gets created for an ephemeral volume';
    found.push(invalidValue(`${at}.persistentVolumeClaim.claimName`, claim, text));
  });
  return valid;
}

const PORTAL_LENGTH_MAX = 64;

function checkSource(
  found: Findings,
  path: string,
  volume: JsonObject,
  { podName, isTemplate }: VolumeScope,
): void {
  const name = stringAt(volume, 'name');
  const sources = SOURCE_ORDER.filter((field) => volume[field] !== undefined);
  for (const [index, field] of sources.entries()) {
    const at = `${path}.${field === 'gcePersistentDisk' ? 'persistentDisk' : field}`;
    const source = objectAt(volume, field) ?? {};
    const blamed = `${path}.${ownMember(ODD_PATHS, field) ?? field}`;
    if (index > 0) found.push(forbiddenField(blamed, 'may not specify more than 1 volume type'));
    else if (field === 'image') checkImage(found, at, source, isTemplate);
    else ownMember(SOURCES, field)?.(found, at, source, false);
    if (field === 'ephemeral' && index === 0 && podName !== '' && name !== '') {
      const claim = `${podName}-${name}`;
      const faults = dnsSubdomainErrors(claim).map((text) => `PVC name "${claim}": ${text}`);
      invalidEach(found, `${path}.name`, name, faults);
    }
    const portal = `${name}:${stringAt(source, 'targetPortal')}`;
    if (field !== 'iscsi' || source['initiatorName'] === undefined) continue;
    if (portal.length <= PORTAL_LENGTH_MAX) continue;
    const text =
      `Total length of <volume name>:<iscsi.targetPortal> must be under ${PORTAL_LENGTH_MAX} ` +
      'characters if iscsi.initiatorName is specified.';
    found.push(invalidValue(`${path}.name`, name, text));
  }
  if (sources.length === 0) found.push(required(path, 'must specify a volume type'));
}

function checkImage(found: Findings, path: string, source: JsonObject, isTemplate: boolean): void {
  if (!isTemplate && stringAt(source, 'reference') === '')
    found.push(required(`${path}.reference`));
  const policies = ['Always', 'IfNotPresent', 'Never'];
  oneOf(found, `${path}.pullPolicy`, source['pullPolicy'], policies);
}

/** A claim that is made for the pod: a template of one, with labels and annotations alone. */
function checkEphemeral(found: Findings, path: string, source: JsonObject): void {
  const at = `${path}.volumeClaimTemplate`;
  const template = objectAt(source, 'volumeClaimTemplate');
  if (template === undefined) {
    found.push(required(at));
    return;
  }
  checkTemplateMetadata(found, `${at}.metadata`, objectAt(template, 'metadata'));
  checkClaimSpec(found, `${at}.spec`, objectAt(template, 'spec') ?? {});
}

function checkEmptyDir(found: Findings, path: string, source: JsonObject): void {
  const limit = source['sizeLimit'];
  const amount = typeof limit === 'string' ? parseQuantity(limit) : undefined;
  if (!(amount instanceof Quantity) || amount.sign >= 0) return;
  const text = 'SizeLimit field must be a valid resource quantity';
  found.push(forbiddenField(`${path}.sizeLimit`, text));
}
