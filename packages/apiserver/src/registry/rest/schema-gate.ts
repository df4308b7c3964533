/** Defaults and rules of kinds, as the writers use them. */
import {
  applyDefaults,
  applyOwnDefaults,
  applyTypeDefaults,
} from '@megaplane/machinery/defaulting';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import { refit, type Body } from '@megaplane/machinery/request-body';
import { findKind } from '@megaplane/machinery/kinds';
import { findTypeOfKind, type Type } from '@megaplane/machinery/schema';
import type { Qualified } from '@megaplane/machinery/status';
import { validateCreate, validateUpdate } from '@megaplane/machinery/validation';
import { createWarnings, updateWarnings } from '@megaplane/machinery/warnings/warnings';
import type { NumberLiterals } from '@megaplane/machinery/number-literals';
import type { FieldError } from '@megaplane/machinery/fielderrors';
import type { JsonObject } from '@megaplane/machinery/json-value';
import {
  customFaults,
  defaultCustom,
  formApplied,
  formCustom,
  type Warn,
} from '../../apiextensions/schema/custom-objects.ts';
import { OLD_DEVICES, settleDevices, stableDevices } from '../../storage/device-conversion.ts';
import { scalerToV2, settleScaler } from '../../storage/scaler-conversion.ts';
import { findServed, type Served } from '../../storage/served.ts';
import { withFittedIntegers } from '@megaplane/machinery/unstructured';

/** What says which form an object has. */
interface Formed {
  readonly custom: Served['custom'];
  readonly resource: { readonly apiVersion: string; readonly kind: string };
}

/** Fills in the defaults of the object's kind, in place. */
export function withDefaults({ custom }: Pick<Served, 'custom'>, object: JsonObject): JsonObject {
  if (custom !== null) return defaultCustom(custom, object);
  applyDefaults(object);
  settle(object);
  return object;
}

/**
 * An object that was made here (a patched one) in the form of its kind, as if it had been sent,
 * with its empty lists and maps; null where nothing is known of the kind.
 */
export function refitted(
  { custom, resource }: Formed,
  object: JsonObject,
  isStrict: boolean,
  numbers?: NumberLiterals,
): Body | null {
  if (custom !== null) return formCustom(custom, object, isStrict);
  const type = findTypeOfKind(resource.apiVersion, resource.kind);
  return type === undefined ? null : refit(type, object, isStrict, numbers, true);
}

/**
 * The same of what was untyped before, as a strategic patch has it: whole numbers that do not fit
 * into their fields are made to.
 */
export function refittedUntyped(
  formed: Formed,
  object: JsonObject,
  isStrict: boolean,
): Body | null {
  const form = refitted(formed, object, isStrict);
  if (form === null || form.ok || formed.custom !== null) return form;
  const type = typeOf(formed);
  if (type === undefined) return form;
  const fitted = refitted(formed, withFittedIntegers(type, object), isStrict);
  return fitted?.ok === true ? fitted : form;
}

/** The same of what an apply made, of which custom kinds drop nothing. */
export function refittedApplied(formed: Formed, object: JsonObject): Body | null {
  return formed.custom === null
    ? refittedUntyped(formed, object, false)
    : formApplied(object, false);
}

/** What is known of the kind, for strategic patches; undefined for custom resources. */
export function typeOf({ resource }: Formed): Type | undefined {
  return findTypeOfKind(resource.apiVersion, resource.kind);
}

/** The kind that refusals of an object name: custom resources may say to be of another. */
export function faultyKind(served: Served, object: JsonObject): Qualified {
  if (served.custom === null) return served.kind;
  const apiVersion = stringAt(object, 'apiVersion');
  const group = apiVersion.slice(0, Math.max(0, apiVersion.indexOf('/')));
  return { group, name: stringAt(object, 'kind') };
}

/**
 * Fills in the defaults of the object's status and of what the object says of itself, in place;
 * the rest is as it was stored.
 */
export function withStatusDefaults(served: Served, object: JsonObject): void {
  const { apiVersion, kind } = served.resource;
  if (served.custom !== null) defaultCustom(served.custom, object);
  const type = findTypeOfKind(apiVersion, kind);
  if (type !== undefined) applyOwnDefaults(type, object);
  const shape = type?.field('status')?.shape;
  const status = objectAt(object, 'status');
  if (shape?.kind === 'object' && status !== undefined) applyTypeDefaults(shape.type, status);
  settle(object);
}

const SCALER = 'HorizontalPodAutoscaler';

/** What a write becomes whose version has another form than what is stored, in place. */
function settle(object: JsonObject): void {
  if (object['kind'] === SCALER) settleScaler(object);
  else if (object['apiVersion'] === OLD_DEVICES) settleDevices(object);
}

/** What is older in form is judged in the newer version, which has all that the older one says. */
function judgedForm(
  { resource }: Served,
  object: JsonObject,
): { readonly resource: Served['resource']; readonly object: JsonObject } {
  if (resource.apiVersion === OLD_DEVICES) {
    const { apiVersion, kind } = resource.storage;
    const stored = findKind(apiVersion, kind);
    if (stored === undefined) return { resource, object };
    return { resource: stored, object: { ...stableDevices(kind, object), apiVersion } };
  }
  const newer =
    resource.kind === SCALER && resource.version === 'v1'
      ? findServed(resource.group, 'v2', resource.resource)
      : undefined;
  if (newer === undefined) return { resource, object };
  return { resource: newer.resource, object: scalerToV2(object) };
}

/** What is wrong with a new object; `warn` is told what is let through, and should not be there. */
export function newFaults(served: Served, object: JsonObject, warn: Warn): readonly FieldError[] {
  if (served.custom !== null) return customFaults(served.custom, object, null, '', warn);
  const { resource, object: judged } = judgedForm(served, object);
  const faults = validateCreate(resource, judged);
  if (faults.length === 0) for (const text of createWarnings(served.resource, object)) warn(text);
  return faults;
}

/**
 * What is wrong with a change; `subresource` is '' for the object itself. The revision is stripped
 * from objects that are to be stored, and looked for by the rules.
 */
export function changeFaults(
  served: Served,
  next: JsonObject,
  previous: JsonObject,
  subresource: string,
  warn: Warn,
): readonly FieldError[] {
  const { custom } = served;
  if (custom !== null) return customFaults(custom, next, previous, subresource, warn);
  const resourceVersion = stringAt(previous, 'metadata', 'resourceVersion');
  const revised = { ...next, metadata: { ...objectAt(next, 'metadata'), resourceVersion } };
  const { resource, object: judged } = judgedForm(served, revised);
  const faults = validateUpdate(resource, judged, judgedForm(served, previous).object, subresource);
  if (faults.length > 0) return faults;
  for (const text of updateWarnings(served.resource, next, previous, subresource)) warn(text);
  return faults;
}
