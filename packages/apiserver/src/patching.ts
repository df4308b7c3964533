/** PATCH: the body as a change of the stored object. */
import { objectAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import {
  applyPatch,
  parsePatch,
  patchKindOf,
  patchResultInvalid,
  type Patch,
} from '@megaplane/machinery/patch';

import { refit } from '@megaplane/machinery/request-body';
import type { Type } from '@megaplane/machinery/schema';
import {
  failed,
  success,
  unsupportedMediaType,
  unsupportedPatchType,
  type Result,
} from '@megaplane/machinery/status';
import { checkSize, mediaTypeOf } from './body.ts';
import { checkName, checkNamespace } from './object-meta.ts';
import { APPLY_TYPE, readApply } from './managed/applying.ts';
import { shownObject } from './managed/tracking.ts';
import { refitted, typeOf } from './schema-gate.ts';
import type { Served } from './served.ts';
import { updateObject, type Change } from './updating.ts';
import type { WriteOptions } from './write-options.ts';
import type { WriteContext } from './writing.ts';

const CUSTOM_PATCHES: readonly string[] = [
  'application/json-patch+json',
  'application/merge-patch+json',
  APPLY_TYPE,
];

/** Answers PATCH of an object or of a subresource that shows it whole. */
export function patchObject(
  context: WriteContext,
  subresource: string,
  options: WriteOptions,
): void {
  const isApply = mediaTypeOf(context.call) === APPLY_TYPE;
  const read = isApply ? readApply : readPatch;
  const change = read(context, subresource, options);
  if (!change.ok) {
    context.call.fail(change.status);
    return;
  }
  updateObject(context, { subresource, change: change.value, isPut: false, isApply });
}

/** Reads the patch once; the change that it gives may be tried on several stored objects. */
function readPatch(
  context: WriteContext,
  subresource: string,
  options: WriteOptions,
): Result<Change> {
  const { call, served } = context;
  const size = checkSize(call);
  if (!size.ok) return size;
  const kind = patchKindOf(mediaTypeOf(call));
  if (kind === undefined) return failed(unsupportedPatchType());
  const isCustom = served.custom !== null;
  if (isCustom && kind === 'strategic') return failed(unsupportedMediaType(CUSTOM_PATCHES));
  const patch = parsePatch(kind, call.body.toString('utf8'));
  if (!patch.ok) return patch;
  const type = typeOf(served);
  if (type === undefined && !isCustom) return failed(unsupportedPatchType());
  const isChecked = options.fieldValidation === 'Ignore' || isClean(patch.value, type);
  const isPart = subresource === 'status' && isAboutStatus(patch.value);
  const namesOwners = call.body.includes('managedFields');
  return success((previous) => {
    const live = namesOwners ? shownObject(previous) : withoutOwners(previous);
    const patched = applyPatch(patch.value, isPart ? statusPart(live) : live, type);
    if (!patched.ok) return patched;
    const form = resultForm(served, patched.value, options, isChecked, (text) => call.warn(text));
    if (!form.ok) return form;
    return checkIdentity(withReset(form.value, patched.value), context);
  });
}

/** An empty list of owners, which ends the tracking, is lost when the result is decoded. */
function withReset(form: JsonObject, patched: JsonObject): JsonObject {
  const { managedFields } = objectAt(patched, 'metadata') ?? {};
  if (!Array.isArray(managedFields) || managedFields.length > 0) return form;
  return { ...form, metadata: { ...objectAt(form, 'metadata'), managedFields: [{}] } };
}

/** A patch that does not name the owners of fields is made without them. */
function withoutOwners(object: JsonObject): JsonObject {
  const { managedFields: _, ...metadata } = objectAt(object, 'metadata') ?? {};
  return { ...object, metadata };
}

function resultForm(
  served: Served,
  patched: JsonObject,
  options: WriteOptions,
  isChecked: boolean,
  warn: (text: string) => void,
): Result<JsonObject> {
  const form = refitted(served, patched, !isChecked);
  if (form === null) return failed(unsupportedPatchType());
  if (!form.ok) return failed(patchResultInvalid(JSON.stringify(patched), form.message));
  if (form.strictErrors.length > 0 && options.fieldValidation === 'Strict') {
    const text = `strict decoding error: ${form.strictErrors.join(', ')}`;
    return failed(patchResultInvalid(JSON.stringify(patched), text));
  }
  form.strictErrors.forEach(warn);
  return success(form.object);
}

/**
 * True where the patch itself has no field that strict decoding would complain about. What is
 * stored has none, so then the result has none either, and need not be looked through.
 */
function isClean(patch: Patch, type: Type | undefined): boolean {
  if (type === undefined || patch.kind === 'json' || hasDirective(patch.body)) return false;
  const form = refit(type, patch.body, true);
  return form.ok && form.strictErrors.length === 0;
}

/** Directives of strategic patches are fields of no type. */
function hasDirective(value: JsonValue | undefined): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return value.some(hasDirective);
  return Object.entries(value).some(([name, inner]) => name.startsWith('$') || hasDirective(inner));
}

/** Patches of the status that name nothing else need not look at the rest of the object. */
function isAboutStatus(patch: Patch): boolean {
  if (patch.kind === 'json') return false;
  const names = Object.keys(patch.body);
  return names.every((name) => ['kind', 'apiVersion', 'metadata', 'status'].includes(name));
}

function statusPart({ kind, apiVersion, metadata, status }: JsonObject): JsonObject {
  return {
    kind: kind ?? '',
    apiVersion: apiVersion ?? '',
    metadata: metadata ?? {},
    ...(status === undefined ? {} : { status }),
  };
}

/** A patch may not rename or move the object. */
function checkIdentity(next: JsonObject, context: WriteContext): Result<JsonObject> {
  const { call, served } = context;
  const fault =
    checkName(next, call.info.name) ??
    (served.resource.namespaced ? checkNamespace(next, call.info.namespace) : null);
  if (fault !== null) return failed(fault);
  return success({ ...next, metadata: objectAt(next, 'metadata') ?? {} });
}
