/** Devices that drivers offer, and the pools and counters that they belong to. */
import { ownMember } from '@megaplane/base/members';
import { invalidValue, printed, required, tooLong, tooMany } from '../../meta/fielderrors.ts';
import { goForm, goValueOf } from '../../gotext/go-value-format.ts';
import { listAt, numberAt, objectAt, stringAt, valueAt } from '../../json/json.ts';
import { isObject, type JsonObject, type JsonValue } from '../../json/json-value.ts';
import { dnsSubdomainErrors } from '../../meta/names.ts';
import { checkNodeSelector } from '../pod/validation-affinity.ts';
import {
  checkDnsLabel,
  immutable,
  invalidEach,
  isSame,
  type Findings,
} from '../field/validation-rules.ts';
import { checkDriverName } from '../field/driver-name.ts';
import { checkCapacity } from './device-capacities.ts';
import { checkBounded, checkEntries, checkRepeats } from './device-lists.ts';
import {
  checkBindingConditions,
  checkDeviceTaint,
  checkPartName,
  checkPoolName,
} from './device-names.ts';

const DEVICES_MAX = 128;
const ADVANCED_DEVICES_MAX = 64;
const COUNTER_SETS_MAX = 8;
const COUNTERS_MAX = 32;
const CONSUMPTIONS_MAX = 2;
const PARTS_MAX = 32;
const VALUES_MAX = 48;
const VALUE_LENGTH_MAX = 64;
const TAINTS_MAX = 16;
const PART_NAME_LENGTH_MAX = 63 + 1 + 32;
const COUNTER_NAME_LENGTH_MAX = 63;
const NUMERIC = '(0|[1-9]\\d*)';
const BEFORE_RELEASE = '(0|[1-9]\\d*|\\d*[a-zA-Z-][0-9a-zA-Z-]*)';
const BUILD = '[0-9a-zA-Z-]+';
const SEMVER = new RegExp(
  `^${NUMERIC}\\.${NUMERIC}\\.${NUMERIC}(-${BEFORE_RELEASE}(\\.${BEFORE_RELEASE})*)?` +
    `(\\+${BUILD}(\\.${BUILD})*)?$`,
);

/** ResourceSlice; `previous` where there is an older one. */
export function checkSlice(found: Findings, slice: JsonObject, previous?: JsonObject): void {
  const spec = objectAt(slice, 'spec') ?? {};
  const before = objectAt(previous, 'spec');
  const driver = stringAt(spec, 'driver');
  checkDriverName(found, 'spec.driver', driver);
  checkPool(found, objectAt(spec, 'pool') ?? {});
  if (before !== undefined) {
    const [name, nameBefore] = [stringAt(spec, 'pool', 'name'), stringAt(before, 'pool', 'name')];
    immutable(found, 'spec.pool.name', name, nameBefore);
    immutable(found, 'spec.driver', driver, stringAt(before, 'driver'));
    immutable(found, 'spec.nodeName', spec['nodeName'], before['nodeName']);
  }
  checkWhere(found, spec);
  if (Array.isArray(spec['sharedCounters']) && Array.isArray(spec['devices'])) {
    const text = 'only one of `sharedCounters` or `devices` is allowed';
    found.push(invalidValue('spec', '', text));
  }
  const devices = listAt(spec, 'devices');
  const isAdvanced = devices.some(
    (one) => listAt(one, 'taints').length > 0 || listAt(one, 'consumesCounters').length > 0,
  );
  const max = isAdvanced ? ADVANCED_DEVICES_MAX : DEVICES_MAX;
  const nameOf = (one: JsonValue): string => stringAt(one, 'name');
  const isFine = checkBounded(found, 'spec.devices', devices, max, (device, at) => {
    const name = nameOf(device);
    const old = listAt(before, 'devices').find((one) => nameOf(one) === name);
    checkDevice(found, at, device, old, spec['perDeviceNodeSelection'] === true);
  });
  if (isFine) checkRepeats(found, 'spec.devices', devices, nameOf);
  const sets = listAt(spec, 'sharedCounters');
  const path = 'spec.sharedCounters';
  if (checkBounded(found, path, sets, COUNTER_SETS_MAX, checkCounters.bind(null, found, 'name'))) {
    checkRepeats(found, path, sets, nameOf);
  }
}

function checkPool(found: Findings, pool: JsonObject): void {
  checkPoolName(found, 'spec.pool.name', stringAt(pool, 'name'));
  const slices = numberAt(pool, 'resourceSliceCount');
  if (slices <= 0) {
    found.push(invalidValue('spec.pool.resourceSliceCount', slices, 'must be greater than zero'));
  }
  const generation = numberAt(pool, 'generation');
  if (generation >= 0) return;
  const text = 'must be greater than or equal to zero';
  found.push(invalidValue('spec.pool.generation', generation, text));
}

const TERM_TYPE = 'core.v1.NodeSelectorTerm';
const ONE_OF =
  'exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required';
const ONE_OF_DEVICE =
  'exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when ' +
  '`perDeviceNodeSelection` is set to true in the ResourceSlice spec';

/** Nodes that reach all devices of a slice. */
function checkWhere(found: Findings, spec: JsonObject): void {
  const places: string[] = [];
  const empty = 'must be either unset or set to a non-empty string';
  checkPlaces(found, 'spec', spec, places, empty);
  const terms = listAt(spec, 'nodeSelector', 'nodeSelectorTerms');
  if (objectAt(spec, 'nodeSelector') !== undefined && terms.length !== 1) {
    const at = 'spec.nodeSelector.nodeSelectorTerms';
    const shown = terms.map((one) => goValueOf(TERM_TYPE, one));
    const isList = Array.isArray(valueAt(spec, 'nodeSelector', 'nodeSelectorTerms'));
    const value = isList ? printed(JSON.stringify(shown)) : null;
    found.push(invalidValue(at, value, 'must have exactly one node selector term'));
  }
  checkTrue(found, 'spec', spec, 'allNodes', places);
  checkTrue(found, 'spec', spec, 'perDeviceNodeSelection', places);
  if (places.length === 0) found.push(required('spec', ONE_OF));
  else if (places.length > 1) {
    const value = `{${places.join(', ')}}`;
    found.push(invalidValue('spec', value, `${ONE_OF}, but multiple fields are set`));
  }
}

function checkPlaces(
  found: Findings,
  path: string,
  owner: JsonObject,
  places: string[],
  emptyText: string,
): void {
  const { nodeName } = owner;
  if (typeof nodeName === 'string') {
    if (nodeName === '') found.push(invalidValue(`${path}.nodeName`, nodeName, emptyText));
    else {
      places.push('`nodeName`');
      invalidEach(found, `${path}.nodeName`, nodeName, dnsSubdomainErrors(nodeName));
    }
  }
  const selector = objectAt(owner, 'nodeSelector');
  if (selector === undefined) return;
  places.push('`nodeSelector`');
  checkNodeSelector(found, `${path}.nodeSelector`, selector);
}

function checkTrue(
  found: Findings,
  path: string,
  owner: JsonObject,
  field: string,
  places: string[],
): void {
  const value = ownMember(owner, field);
  if (value === true) places.push(`\`${field}\``);
  else if (value === false) {
    found.push(invalidValue(`${path}.${field}`, value, 'must be either unset or set to true'));
  }
}

/** Counters that devices share; a set has a name, or names the set that it draws on. */
function checkCounters(
  found: Findings,
  nameField: 'name' | 'counterSet',
  set: JsonObject,
  path: string,
): void {
  const name = stringAt(set, nameField);
  if (name === '') found.push(required(`${path}.${nameField}`));
  else checkDnsLabel(found, `${path}.${nameField}`, name);
  const counters = objectAt(set, 'counters') ?? {};
  const at = `${path}.counters`;
  const count = Object.keys(counters).length;
  if (count === 0) found.push(required(at));
  else if (checkCount(found, at, count)) {
    checkEntries(found, at, counters, COUNTER_NAME_LENGTH_MAX, (key) => {
      checkDnsLabel(found, at, key);
    });
  }
}

function checkCount(found: Findings, path: string, count: number): boolean {
  if (count > COUNTERS_MAX) found.push(tooMany(path, count, COUNTERS_MAX));
  return count <= COUNTERS_MAX;
}

/** A device; `previous` is the one of its name before. */
function checkDevice(
  found: Findings,
  path: string,
  device: JsonObject,
  previous: JsonValue | undefined,
  choosesNodes: boolean,
): void {
  checkDnsLabel(found, `${path}.name`, stringAt(device, 'name'));
  checkParts(found, path, device);
  const taints = listAt(device, 'taints');
  const before = isObject(previous) ? previous : undefined;
  if (before === undefined || !isSame(before['taints'], device['taints'])) {
    const at = `${path}.taints`;
    checkBounded(found, at, taints, TAINTS_MAX, (taint, each) => {
      checkDeviceTaint(found, each, taint);
    });
  }
  const drawn = listAt(device, 'consumesCounters');
  const at = `${path}.consumesCounters`;
  const check = checkCounters.bind(null, found, 'counterSet');
  if (checkBounded(found, at, drawn, CONSUMPTIONS_MAX, check)) {
    checkRepeats(found, at, drawn, (one) => stringAt(one, 'counterSet'));
  }
  checkDeviceNodes(found, path, device, choosesNodes);
  checkBindingConditions(found, path, device);
}

/** Attributes and capacities. */
function checkParts(found: Findings, path: string, device: JsonObject): void {
  const attributes = objectAt(device, 'attributes') ?? {};
  const capacity = objectAt(device, 'capacity') ?? {};
  const parts = Object.keys(attributes).length + Object.keys(capacity).length;
  if (parts > PARTS_MAX) {
    const text = `the total number of attributes and capacities must not exceed ${PARTS_MAX}`;
    found.push(invalidValue(path, parts, text));
  }
  const values = Object.keys(attributes).length;
  if (values > VALUES_MAX) {
    const text = `the total number of attribute values must not exceed ${VALUES_MAX}`;
    found.push(invalidValue(path, values, text));
  }
  const checkKey = (key: string, at: string): void => checkPartName(found, at, key);
  const attributesAt = `${path}.attributes`;
  const max = PART_NAME_LENGTH_MAX;
  checkEntries(found, attributesAt, attributes, max, checkKey, (attribute, at) => {
    checkAttribute(found, at, attribute);
  });
  const isShared = device['allowMultipleAllocations'] === true;
  checkEntries(found, `${path}.capacity`, capacity, max, checkKey, (one, at) => {
    checkCapacity(found, at, one, isShared);
  });
}

function checkAttribute(found: Findings, path: string, attribute: JsonObject): void {
  const { string, version } = attribute;
  if (typeof string === 'string') checkLength(found, `${path}.string`, string);
  if (typeof version === 'string') {
    const at = `${path}.version`;
    if (!SEMVER.test(version)) {
      const text = 'must be a string compatible with semver.org spec 2.0.0';
      found.push(invalidValue(at, version, text));
    }
    checkLength(found, at, version);
  }
  const fields = ['bool', 'int', 'string', 'version'].filter(
    (field) => attribute[field] !== undefined && attribute[field] !== null,
  );
  const text = 'exactly one value must be specified';
  if (fields.length === 0) found.push(invalidValue(path, '', text));
  else if (fields.length > 1) {
    found.push(invalidValue(path, goForm('resource.v1.DeviceAttribute', attribute), text));
  }
}

function checkLength(found: Findings, path: string, text: string): void {
  if (Buffer.byteLength(text) > VALUE_LENGTH_MAX) found.push(tooLong(path, VALUE_LENGTH_MAX));
}

/** Nodes that reach a device, where its slice leaves that to each device. */
function checkDeviceNodes(
  found: Findings,
  path: string,
  device: JsonObject,
  choosesNodes: boolean,
): void {
  if (!choosesNodes) {
    const isSet = ['nodeName', 'nodeSelector', 'allNodes'].some(
      (field) => device[field] !== undefined && device[field] !== null,
    );
    const text =
      '`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` ' +
      'is set to true in the ResourceSlice spec';
    if (isSet) found.push(invalidValue(path, null, text));
    return;
  }
  const places: string[] = [];
  checkPlaces(found, path, device, places, 'must not be empty');
  checkTrue(found, path, device, 'allNodes', places);
  if (places.length === 0) found.push(required(path, ONE_OF_DEVICE));
  else if (places.length > 1) {
    found.push(invalidValue(path, `{${places.join(', ')}}`, ONE_OF_DEVICE));
  }
}
