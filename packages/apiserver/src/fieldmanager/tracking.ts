/** Keeps the owners of fields in objects that are written; see machinery's field manager. */
import { ownMember } from '@megaplane/base/members';
import {
  isShownAs,
  packManaged,
  packNew,
  shownManaged,
  unpackManaged,
} from '@megaplane/machinery/apply/field-templates';
import {
  trackApply,
  trackNewObject,
  trackUpdate,
  type FieldScope,
} from '@megaplane/machinery/apply/field-manager';
import { builtinSchema } from '@megaplane/machinery/apply/builtin-schema';
import { DEDUCED_SCHEMA } from '@megaplane/machinery/apply/field-schema';
import { typedFaults } from '@megaplane/machinery/apply/typed-faults';
import { emptyManaged, NO_MANAGER, type Managed } from '@megaplane/machinery/apply/managed-fields';
import { equals, objectAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { wireForm } from '@megaplane/machinery/empty-collections';
import type { Served } from '../storage/served.ts';
import { fieldScope, type Writer } from './field-scope.ts';
import { conversionFault } from './version-conversions.ts';
import { setManaged, setPacked } from '../managedfields/shown-fields.ts';
import type { RequestScope } from '../lister/request-scope.ts';

/** What objects that the server makes by itself name as their manager. */
const OWN_NAME = 'kube-apiserver';

/**
 * Whose the fields of a new object are, before the server adds its own. Where `sent` carries packed
 * owners, as an apply gives them, they stand; '' is nobody.
 */
export function trackNew(context: RequestScope, object: JsonObject, sent: JsonObject): void {
  const given = objectAt(sent, 'metadata')?.['managedFields'];
  if (typeof given === 'string') {
    setPacked(object, given === '' ? undefined : given);
    return;
  }
  if (hasUntypedRest(context.served, '', sent, null)) {
    setPacked(object, undefined);
    return;
  }
  const scope = fieldScope(context.served, context.call, '', 'Update');
  const isPlain = given === undefined || isReset(given);
  if (isPlain && trackPlain(scope, object)) return;
  const managed = isPlain ? emptyManaged() : unpackManaged(given);
  setManaged(object, trackUpdate(scope, null, wireForm(object), managed));
}

/** Gives a new object the server's own name for its owner. */
export function trackOwn(
  served: Served,
  object: JsonObject,
  nowMs: number,
  fieldManager: string = OWN_NAME,
): void {
  trackPlain(fieldScope(served, { fieldManager, nowMs }, '', 'Update'), object);
}

/** Gives what the server itself wrote into a status its own name for its owner. */
export function trackOwnStatus(
  served: Served,
  previous: JsonObject,
  next: JsonObject,
  nowMs: number,
): void {
  const scope = fieldScope(served, { fieldManager: OWN_NAME, nowMs }, 'status', 'Update');
  const live = objectAt(previous, 'metadata')?.['managedFields'];
  setManaged(next, trackUpdate(scope, previous, next, unpackManaged(live)));
}

/** The same where upstream applies it: `status` is what the writer wants to be there. */
export function trackAppliedStatus(
  served: Served,
  previous: JsonObject,
  next: JsonObject,
  status: JsonObject,
  writer: Writer,
): void {
  const { apiVersion, kind } = served.resource;
  const { managedFields, ...metadata } = objectAt(previous, 'metadata') ?? {};
  const config = { apiVersion, kind, metadata: { name: metadata['name'] ?? '' }, status };
  const scope = fieldScope(served, writer, 'status', 'Apply');
  const managed = unpackManaged(managedFields);
  const applied = trackApply(scope, { ...previous, metadata }, config, managed, kind, true);
  if (applied.ok) setManaged(next, applied.value.managed);
}

/** Whose the fields of a part are that is never stored, as they are shown. */
export function ownersOfPart(scope: FieldScope, object: JsonObject): JsonObject {
  const managed = trackUpdate(scope, null, wireForm(object), emptyManaged());
  const packed = packManaged(managed);
  return typeof packed === 'string' ? { managedFields: shownManaged(packed) } : {};
}

/** A new object without owners; false where there is no room for its template. */
function trackPlain(scope: FieldScope, object: JsonObject): boolean {
  const fields = trackNewObject(scope, wireForm(object));
  const { manager, nowSeconds } = scope;
  const name = manager.name === '' ? NO_MANAGER : manager.name;
  const packed = fields === null ? undefined : packNew({ ...manager, name }, fields, nowSeconds);
  if (packed === null) return false;
  setPacked(object, packed);
  return true;
}

/**
 * Whether what this way of writing leaves out of an object does not fit its schema: nobody owns
 * anything of such an object, and upstream looks before it leaves it out. Of built-in kinds only
 * the statuses of one group may lack what their lists are keyed by.
 */
function hasUntypedRest(
  served: Served,
  subresource: string,
  sent: JsonObject,
  previous: JsonObject | null,
): boolean {
  const { resource, custom, hasStatus } = served;
  if (custom === null) {
    const { status } = sent;
    if (resource.group !== 'flowcontrol.apiserver.k8s.io' || !isObject(status)) return false;
    const schema = builtinSchema(resource.apiVersion, resource.kind) ?? DEDUCED_SCHEMA;
    return typedFaults(schema, { status }, true).length > 0;
  }
  if (!hasStatus) return false;
  const rest = Object.entries(sent).filter(([name, value]) => {
    if (name === 'metadata' || (name === 'status') === (subresource === 'status')) return false;
    return isObject(value) || Array.isArray(value)
      ? !equals(value, ownMember(previous, name))
      : true;
  });
  if (rest.length === 0) return false;
  const schema = custom.schemas.schemaOf(custom).applySchema();
  return typedFaults(schema, Object.fromEntries(rest), true).length > 0;
}

/**
 * Whose they are after an update. `sent` is the object of the request: clients that send none of
 * its managedFields keep what there is, an empty entry ends the tracking.
 */
export function trackChange(
  context: RequestScope,
  subresource: string,
  previous: JsonObject,
  next: JsonObject,
  sent: JsonObject,
): void {
  const live = objectAt(previous, 'metadata')?.['managedFields'];
  const owners = objectAt(sent, 'metadata')?.['managedFields'];
  if (typeof owners === 'string') {
    setPacked(next, owners === '' ? undefined : owners);
    return;
  }
  if (hasUntypedRest(context.served, subresource, sent, previous)) {
    setPacked(next, undefined);
    return;
  }
  const scope = fieldScope(context.served, context.call, subresource, 'Update');
  const given = subresource === '' ? owners : undefined;
  const managed = chosen(live, given);
  const owned = trackUpdate(scope, previous, wireForm(next), managed);
  // as upstream's UpdateNoErrors does
  setManaged(next, conversionFault(context) === null ? owned : emptyManaged());
}

/** The owners that an update starts from. */
function chosen(live: JsonValue | undefined, sent: JsonValue | undefined): Managed {
  if (sent === undefined || sent === null) return unpackManaged(live);
  if (isReset(sent)) return emptyManaged();
  if (typeof live === 'string' && isShownAs(live, sent)) return unpackManaged(live);
  const own = unpackManaged(sent);
  return own.owners.size === 0 ? unpackManaged(live) : own;
}

/** No entry, or one without anything in it. */
function isReset(sent: JsonValue): boolean {
  if (!Array.isArray(sent) || sent.length > 1) return false;
  const [entry] = sent;
  return entry === undefined || (isObject(entry) && Object.keys(entry).length === 0);
}

/**
 * The owners as they were, where nothing but the time of an entry differs: a write that changes
 * nothing is none. Of updates only those can be such that leave the time of an entry out.
 */
export function settleTimes(previous: JsonObject, next: JsonObject, isApply: boolean): void {
  const before = objectAt(previous, 'metadata')?.['managedFields'];
  const after = objectAt(next, 'metadata')?.['managedFields'];
  if (before === undefined || after === undefined || before === after) return;
  if (!isApply && typeof after === 'string' && !TIMELESS.test(after)) return;
  if (!equals(untimed(before), untimed(after))) return;
  if (equals(unmanaged(previous), unmanaged(next))) {
    next['metadata'] = { ...objectAt(next, 'metadata'), managedFields: before };
  }
}

/** Of packed owners: one without a time. */
const TIMELESS = /(?:^|,)[^;,]*;(?:[;,]|$)/;

function untimed(owners: JsonValue): JsonValue {
  const shown = typeof owners === 'string' ? shownManaged(owners) : owners;
  if (!Array.isArray(shown)) return shown;
  return shown.map((entry) => (isObject(entry) ? { ...entry, time: null } : entry));
}

function unmanaged(object: JsonObject): JsonObject {
  const { managedFields: _, resourceVersion: __, ...metadata } = objectAt(object, 'metadata') ?? {};
  return { ...object, metadata };
}
