/**
 * Kinds of `resource.k8s.io/v1beta1`, as upstream converts them to and from the stable version:
 * what a request asks of one class stands in the request itself there, and what a device offers in
 * a part `basic` of it; a slice leaves out what v1 says with an empty name or `false`.
 */
import { ownMember, putMember } from '@megaplane/base/members';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';

/** The version whose objects have a form of their own. */
export const OLD_DEVICES = 'resource.k8s.io/v1beta1';

/** Fields of a request in v1beta1 that v1 has in `exactly`, in the order of both. */
const ASKED = [
  'deviceClassName',
  'selectors',
  'allocationMode',
  'count',
  'adminAccess',
  'tolerations',
  'capacity',
] as const;
/** The order in which v1beta1 has what is not asked of one class only. */
const ALTERNATIVES = 'firstAvailable';
const BEFORE_ALTERNATIVES = 5;

type Change = (part: JsonObject) => JsonObject;

/** How the parts of one kind change, by kind: where they are, and what becomes of them. */
interface Form {
  readonly toStable: Change;
  readonly toOld: Change;
}

/** What Go calls set: a name or number that is zero is not. */
function isSet(value: JsonValue | undefined): boolean {
  return value !== undefined && value !== null && value !== '' && value !== 0;
}

/** Copies those of the fields that are set. */
function copySet(from: JsonObject, to: JsonObject, fields: readonly string[]): void {
  for (const field of fields) {
    const value = ownMember(from, field);
    if (value !== undefined && isSet(value)) putMember(to, field, value);
  }
}

function stableRequest(request: JsonObject): JsonObject {
  const { name, [ALTERNATIVES]: alternatives } = request;
  const stable: JsonObject = name === undefined ? {} : { name };
  if (ASKED.some((field) => isSet(ownMember(request, field)))) {
    const exactly: JsonObject = { deviceClassName: stringAt(request, 'deviceClassName') };
    copySet(request, exactly, ASKED);
    stable['exactly'] = exactly;
  }
  if (alternatives !== undefined) stable[ALTERNATIVES] = alternatives;
  return stable;
}

function oldRequest(request: JsonObject): JsonObject {
  const { name, [ALTERNATIVES]: alternatives } = request;
  const exactly = objectAt(request, 'exactly') ?? {};
  const old: JsonObject = name === undefined ? {} : { name };
  old['deviceClassName'] = stringAt(exactly, 'deviceClassName');
  copySet(exactly, old, ASKED.slice(1, BEFORE_ALTERNATIVES));
  if (alternatives !== undefined) old[ALTERNATIVES] = alternatives;
  copySet(exactly, old, ASKED.slice(BEFORE_ALTERNATIVES));
  return old;
}

function stableDevice({ name, basic }: JsonObject): JsonObject {
  const stable: JsonObject = name === undefined ? {} : { name };
  return isObject(basic) ? { ...stable, ...basic } : stable;
}

function oldDevice({ name, ...basic }: JsonObject): JsonObject {
  return name === undefined ? { basic } : { name, basic };
}

/** A list of objects with each changed; what is no list of objects stays. */
function changedList(value: JsonValue | undefined, change: Change): JsonValue | undefined {
  if (!Array.isArray(value)) return value;
  return value.map((one) => (isObject(one) ? change(one) : one));
}

/** The same object with one field of it changed, where it stands. */
function withField(
  object: JsonObject,
  field: string,
  change: (value: JsonValue | undefined) => JsonValue | undefined,
): JsonObject {
  const value = ownMember(object, field);
  if (value === undefined) return object;
  const changed = change(value);
  return changed === undefined ? object : { ...object, [field]: changed };
}

const inField =
  (field: string, change: Change): Change =>
  (object) =>
    withField(object, field, (value) => (isObject(value) ? change(value) : value));

const inList =
  (field: string, change: Change): Change =>
  (object) =>
    withField(object, field, (value) => changedList(value, change));

/** A slice's `nodeName: ''` and `allNodes: false` are said in one version only. */
const oldSlice: Change = (spec) => {
  const { nodeName, allNodes, ...others } = spec;
  if (nodeName !== '' && allNodes !== false) return spec;
  const kept = { ...spec };
  if (!isSet(nodeName)) delete kept['nodeName'];
  if (allNodes !== true) delete kept['allNodes'];
  return Object.keys(kept).length === 0 ? others : kept;
};

const claim = (change: Change): Change => inField('devices', inList('requests', change));
const slice =
  (change: Change): Change =>
  (spec) =>
    inList('devices', change)(oldSlice(spec));

const FORMS: Readonly<Record<string, Form>> = {
  ResourceClaim: {
    toStable: inField('spec', claim(stableRequest)),
    toOld: inField('spec', claim(oldRequest)),
  },
  ResourceClaimTemplate: {
    toStable: inField('spec', inField('spec', claim(stableRequest))),
    toOld: inField('spec', inField('spec', claim(oldRequest))),
  },
  ResourceSlice: {
    toStable: inField('spec', slice(stableDevice)),
    toOld: inField('spec', slice(oldDevice)),
  },
};

function formOf(kind: string): Form | undefined {
  return Object.hasOwn(FORMS, kind) ? FORMS[kind] : undefined;
}

/** An object of v1beta1 in the form of v1; its `apiVersion` stays as it is. */
export function stableDevices(kind: string, object: JsonObject): JsonObject {
  return formOf(kind)?.toStable(object) ?? object;
}

/** An object of v1 in the form of v1beta1; its `apiVersion` stays as it is. */
export function oldDevices(kind: string, object: JsonObject): JsonObject {
  return formOf(kind)?.toOld(object) ?? object;
}

/**
 * What a write in v1beta1 becomes before anybody looks at it, in place: as if it had been read,
 * since upstream works on one form of all versions.
 */
export function settleDevices(object: JsonObject): void {
  const kind = stringAt(object, 'kind');
  if (object['apiVersion'] !== OLD_DEVICES || formOf(kind) === undefined) return;
  const { spec } = oldDevices(kind, stableDevices(kind, object));
  if (spec !== undefined) object['spec'] = spec;
}

/** Devices of a slice of any version: the part of each that says what it offers. */
export function offersOf(slice: JsonObject): JsonObject[] {
  const devices = listAt(slice, 'spec', 'devices').filter(isObject);
  if (slice['apiVersion'] !== OLD_DEVICES) return devices;
  return devices.map((device) => objectAt(device, 'basic') ?? {});
}
