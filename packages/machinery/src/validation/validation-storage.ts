/** The storage group, and persistent volumes. */

import { ownMember } from '@megaplane/base/members';
import {
  duplicate,
  forbiddenField,
  invalidValue,
  notSupported,
  required,
  tooLong,
} from '../meta/fielderrors.ts';
import { selectorForm } from '../gotext/go-value-format.ts';
import { listAt, numberAt, objectAt, stringAt } from '../json/json.ts';
import { isNumber, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { dnsSubdomainErrors, qualifiedNameErrors, rangeText } from '../meta/names.ts';
import {
  checkSelector,
  eachObject,
  immutable,
  invalidEach,
  isSame,
  nonNegative,
  nonNegativeAmount,
  oneOfSet,
  type Findings,
} from './field/validation-rules.ts';
import { changeVolume, checkInlineVolume, checkVolume } from './validation-persistent-volumes.ts';
import { checkDriverName } from './field/driver-name.ts';
import type { RuleTable } from './field/rule-table.ts';

const PARAMETERS_MAX = 512;
const PARAMETERS_BYTES_MAX: number = 256 * 1024;
const NODE_ID_LENGTH_MAX = 256;
const TOKEN_SECONDS_MIN = 600;
const TOKEN_SECONDS_MAX: number = 2 ** 32;
const UPDATE_SECONDS_MIN = 10;
const INT32_MAX = 2147483647;

export const STORAGE_RULES: RuleTable = {
  persistentvolumes: { create: checkVolume, change: changeVolume },
  'storageclasses.storage.k8s.io': { create: checkStorageClass, change: keepStorageClass },
  'volumeattachments.storage.k8s.io': {
    create: checkAttachment,
    change: (found, next, previous) =>
      immutable(found, 'spec', next['spec'], previous['spec'], 'storage.v1.VolumeAttachmentSpec'),
    subresources: {
      status: (found, next, previous) => {
        checkAttachment(found, next);
        const type = 'storage.v1.VolumeAttachmentSpec';
        immutable(found, 'spec', next['spec'], previous['spec'], type);
      },
    },
  },
  'csidrivers.storage.k8s.io': { create: checkDriver, change: keepDriver },
  'csinodes.storage.k8s.io': { create: checkNodeDrivers, change: keepNodeDrivers },
  'csistoragecapacities.storage.k8s.io': { create: checkCapacity, change: keepCapacity },
  'volumeattributesclasses.storage.k8s.io': {
    create: checkAttributesClass,
    change: keepAttributesClass,
  },
};

function checkStorageClass(found: Findings, storageClass: JsonObject): void {
  checkProvisioner(found, 'provisioner', stringAt(storageClass, 'provisioner'));
  checkParameters(found, storageClass, true);
  const policy = storageClass['reclaimPolicy'];
  if (policy !== '') oneOfSet(found, 'reclaimPolicy', policy, ['Delete', 'Retain']);
  const modes = ['Immediate', 'WaitForFirstConsumer'];
  const mode = storageClass['volumeBindingMode'];
  if (typeof mode === 'string') oneOfSet(found, 'volumeBindingMode', mode, modes);
  else found.push(required('volumeBindingMode'));
  checkTopologies(found, listAt(storageClass, 'allowedTopologies'));
}

function checkProvisioner(found: Findings, path: string, name: string): void {
  if (name === '') found.push(required(path));
  else {
    const lower = name.toLowerCase();
    invalidEach(found, path, lower, qualifiedNameErrors(lower));
  }
}

function checkParameters(found: Findings, object: JsonObject, mayBeEmpty: boolean): void {
  const parameters = Object.entries(objectAt(object, 'parameters') ?? {});
  if (parameters.length > PARAMETERS_MAX) {
    found.push(tooLong('parameters', PARAMETERS_MAX));
    return;
  }
  let size = 0;
  for (const [name, value] of parameters) {
    if (name === '') found.push(invalidValue('parameters', name, 'field can not be empty.'));
    size += Buffer.byteLength(name) + Buffer.byteLength(typeof value === 'string' ? value : '');
  }
  if (size > PARAMETERS_BYTES_MAX) found.push(tooLong('parameters', PARAMETERS_BYTES_MAX));
  if (!mayBeEmpty && parameters.length === 0) {
    found.push(required('parameters', 'must contain at least one key/value pair'));
  }
}

function checkTopologies(found: Findings, terms: readonly JsonValue[]): void {
  // upstream begins with as many empty terms as there are terms, so that an empty one comes again
  const seen = terms.map(() => '{}');
  eachObject(terms, 'allowedTopologies', (term, at) => {
    const keys = new Set<string>();
    eachObject(
      listAt(term, 'matchLabelExpressions'),
      `${at}.matchLabelExpressions`,
      (one, path) => {
        const key = stringAt(one, 'key');
        const values = listAt(one, 'values');
        const valuesPath = `${path}.values`;
        if (values.length === 0) found.push(required(valuesPath));
        for (const [index, value] of values.entries()) {
          if (values.indexOf(value) < index)
            found.push(duplicate(`${valuesPath}[${index}]`, value));
        }
        invalidEach(found, `${path}.key`, key, qualifiedNameErrors(key));
        if (keys.has(key)) found.push(duplicate(`${path}.key`, key));
        keys.add(key);
      },
    );
    const text = topologyText(term);
    for (const other of seen) {
      if (other === text) found.push(duplicate(`${at}.matchLabelExpressions`, ''));
    }
    seen.push(text);
  });
}

/** Terms with the same values of the same keys are one, in whatever order. */
function topologyText(term: JsonObject): string {
  const expressions = listAt(term, 'matchLabelExpressions').map((one): [string, JsonValue] => {
    const values = listAt(one, 'values').map(String);
    return [stringAt(one, 'key'), [...new Set(values)].sort()];
  });
  const sorted = [...new Map(expressions)].sort(([left], [right]) => (left < right ? -1 : 1));
  return JSON.stringify(Object.fromEntries(sorted));
}

function keepStorageClass(found: Findings, next: JsonObject, previous: JsonObject): void {
  for (const field of ['parameters', 'provisioner', 'reclaimPolicy', 'volumeBindingMode']) {
    immutable(found, field, next[field], previous[field]);
  }
}

function checkAttachment(found: Findings, attachment: JsonObject): void {
  const spec = objectAt(attachment, 'spec') ?? {};
  checkDriverName(found, 'spec.attacher', stringAt(spec, 'attacher'));
  const source = objectAt(spec, 'source') ?? {};
  const name = source['persistentVolumeName'];
  const text = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName';
  const hasInline = source['inlineVolumeSpec'] !== undefined;
  if (name === undefined && !hasInline) found.push(required('spec.source', text));
  else if (name !== undefined && hasInline) found.push(forbiddenField('spec.source', text));
  else if (name === '') {
    const detail = 'must specify non empty persistentVolumeName';
    found.push(required('spec.source.persistentVolumeName', detail));
  }
  const inline = objectAt(source, 'inlineVolumeSpec');
  if (name === undefined && inline !== undefined) {
    checkInlineVolume(found, 'spec.source.inlineVolumeSpec', inline);
  }
  const node = stringAt(spec, 'nodeName');
  invalidEach(found, 'spec.nodeName', node, dnsSubdomainErrors(node));
  if (typeof name === 'string') {
    invalidEach(found, 'spec.source.persistentVolumeName', name, dnsSubdomainErrors(name));
  }
  for (const field of ['attachError', 'detachError'])
    checkAttachmentError(found, field, attachment);
}

const ERROR_BYTES_MAX = 1024;
const ATTACHMENT_BYTES_MAX: number = 256 * 1024;

function checkAttachmentError(found: Findings, field: string, attachment: JsonObject): void {
  const fault = objectAt(attachment, 'status', field);
  const path = `status.${field}`;
  // the limit that is told is upstream's, and that of something else
  if (Buffer.byteLength(stringAt(fault, 'message')) > ERROR_BYTES_MAX) {
    found.push(tooLong(`${path}.message`, ATTACHMENT_BYTES_MAX));
  }
  const code = numberAt(fault, 'errorCode');
  if (code < 0) found.push(invalidValue(`${path}.errorCode`, code, rangeText(0, INT32_MAX)));
}

function checkDriver(found: Findings, driver: JsonObject): void {
  const spec = objectAt(driver, 'spec') ?? {};
  const isSet = (field: string, path: string): void => {
    if (typeof ownMember(spec, field) !== 'boolean') found.push(required(`spec.${path}`));
  };
  // the first path is upstream's, and not the field's name
  isSet('attachRequired', 'attachedRequired');
  isSet('podInfoOnMount', 'podInfoOnMount');
  isSet('storageCapacity', 'storageCapacity');
  const policies = ['File', 'None', 'ReadWriteOnceWithFSType'];
  oneOfSet(found, 'spec.fsGroupPolicy', spec['fsGroupPolicy'], policies);
  checkTokenRequests(found, listAt(spec, 'tokenRequests'));
  const modes = ['Persistent', 'Ephemeral'];
  for (const mode of listAt(spec, 'volumeLifecycleModes')) {
    if (typeof mode === 'string' && modes.includes(mode)) continue;
    found.push(notSupported('spec.volumeLifecycleModes', mode, modes));
  }
  isSet('seLinuxMount', 'seLinuxMount');
  const period = spec['nodeAllocatableUpdatePeriodSeconds'];
  if (isNumber(period) && period < UPDATE_SECONDS_MIN) {
    const text = 'must be greater than or equal to 10 seconds';
    found.push(invalidValue('spec.nodeAllocatableUpdatePeriodSeconds', period, text));
  }
  const inSecrets = spec['serviceAccountTokenInSecrets'];
  if (inSecrets !== undefined && listAt(spec, 'tokenRequests').length === 0) {
    const text = 'serviceAccountTokenInSecrets is set but no tokenRequests are specified';
    found.push(invalidValue('spec.serviceAccountTokenInSecrets', inSecrets, text));
  }
}

function checkTokenRequests(found: Findings, requests: readonly JsonValue[]): void {
  const seen = new Set<string>();
  eachObject(requests, 'spec.tokenRequests', (request, at) => {
    const audience = stringAt(request, 'audience');
    if (seen.has(audience)) {
      found.push(duplicate(`${at}.audience`, audience));
      return;
    }
    seen.add(audience);
    const seconds = request['expirationSeconds'];
    if (!isNumber(seconds)) return;
    const path = `${at}.expirationSeconds`;
    if (seconds < TOKEN_SECONDS_MIN) {
      found.push(invalidValue(path, seconds, 'may not specify a duration less than 10 minutes'));
    }
    if (seconds > TOKEN_SECONDS_MAX) {
      const text = 'may not specify a duration larger than 2^32 seconds';
      found.push(invalidValue(path, seconds, text));
    }
  });
}

function keepDriver(found: Findings, next: JsonObject, previous: JsonObject): void {
  const [after, before] = [objectAt(next, 'spec'), objectAt(previous, 'spec')];
  const same = (field: string, path: string): void =>
    immutable(found, `spec.${path}`, ownMember(after, field), ownMember(before, field));
  same('attachRequired', 'attachedRequired');
  same('volumeLifecycleModes', 'volumeLifecycleModes');
}

function checkNodeDrivers(found: Findings, node: JsonObject): void {
  const names = new Set<string>();
  eachObject(listAt(node, 'spec', 'drivers'), 'spec.drivers', (driver, at) => {
    const name = stringAt(driver, 'name');
    checkDriverName(found, `${at}.name`, name);
    const id = stringAt(driver, 'nodeID');
    if (id === '') found.push(required(`${at}.nodeID`));
    if (id.length > NODE_ID_LENGTH_MAX) {
      const text = `must be ${NODE_ID_LENGTH_MAX} characters or less`;
      found.push(invalidValue(`${at}.nodeID`, id, text));
    }
    const count = objectAt(driver, 'allocatable')?.['count'];
    nonNegative(found, `${at}.allocatable.count`, count);
    if (names.has(name)) found.push(duplicate(`${at}.name`, name));
    names.add(name);
    const keys = new Set<string>();
    for (const value of listAt(driver, 'topologyKeys')) {
      const key = typeof value === 'string' ? value : '';
      if (key === '') found.push(required(at));
      if (keys.has(key)) found.push(duplicate(at, key));
      keys.add(key);
      invalidEach(found, at, key, qualifiedNameErrors(key));
    }
  });
}

/** A driver that stays is as it was, but for how many volumes it takes. */
function keepNodeDrivers(found: Findings, next: JsonObject, previous: JsonObject): void {
  for (const before of listAt(previous, 'spec', 'drivers')) {
    for (const after of listAt(next, 'spec', 'drivers')) {
      if (stringAt(after, 'name') !== stringAt(before, 'name')) continue;
      const frozen = (driver: JsonValue): JsonObject => {
        const { allocatable: _, ...rest } = objectAt(driver) ?? {};
        return rest;
      };
      immutable(found, 'spec.drivers', frozen(after), frozen(before), 'storage.v1.CSINodeDriver');
    }
  }
}

function checkCapacity(found: Findings, capacity: JsonObject): void {
  checkSelector(found, 'nodeTopology', objectAt(capacity, 'nodeTopology'));
  const name = stringAt(capacity, 'storageClassName');
  invalidEach(found, 'storageClassName', name, dnsSubdomainErrors(name));
  nonNegativeAmount(found, 'capacity', capacity['capacity']);
}

function keepCapacity(found: Findings, next: JsonObject, previous: JsonObject): void {
  const [after, before] = [next['nodeTopology'], previous['nodeTopology']];
  immutable(found, 'nodeTopology', selectorForm(after), selectorForm(before));
  const name = 'storageClassName';
  immutable(found, name, next[name], previous[name]);
}

function checkAttributesClass(found: Findings, attributes: JsonObject): void {
  checkProvisioner(found, 'driverName', stringAt(attributes, 'driverName'));
  checkParameters(found, attributes, false);
}

function keepAttributesClass(found: Findings, next: JsonObject, previous: JsonObject): void {
  for (const field of ['driverName', 'parameters']) {
    if (isSame(next[field], previous[field])) continue;
    found.push(forbiddenField(field, `updates to ${field} are forbidden.`));
  }
}
