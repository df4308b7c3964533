/** PATCH: the body as a change of the stored object. */
import { putMember } from '@megaplane/base/members';
import { goJson } from '@megaplane/machinery/custom/go-texts';
import { versionedForm } from '@megaplane/machinery/go-value-format';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import {
  applyPatch,
  parsePatch,
  patchedNumbers,
  patchKindOf,
  patchResultInvalid,
  type Patch,
} from '@megaplane/machinery/patch';
import { patchedDocument } from '@megaplane/machinery/patch-document';
import { goText } from '@megaplane/machinery/patch-strategic';
import { escapedJson } from '@megaplane/machinery/quoting';
import {
  lacksVersion,
  patchedKindFault,
  refit,
  unversionedErrors,
  type Body,
} from '@megaplane/machinery/request-body';
import type { Type } from '@megaplane/machinery/schema';
import {
  failed,
  success,
  unsupportedMediaType,
  unsupportedPatchType,
  type Result,
  type Status,
} from '@megaplane/machinery/status';
import { unstructuredFault, unstructuredText } from '@megaplane/machinery/unstructured';
import { checkSize, mediaTypeOf } from '../serializer/body.ts';
import type { Call } from '../request/call.ts';
import { checkName, checkNamespace } from '../registry/rest/object-meta.ts';
import { APPLY_TYPE, readApply } from './applying.ts';
import { refitted, refittedUntyped, typeOf } from '../registry/rest/schema-gate.ts';
import type { Served } from '../storage/served.ts';
import { updateObject, type Change } from './updating.ts';
import type { WriteOptions } from '../request/options/write-options.ts';
import type { WriteContext } from './writing.ts';
import { decodedText } from '@megaplane/machinery/json-text';
import { shownObject } from '../managedfields/shown-fields.ts';

const PATCHES: readonly string[] = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  APPLY_TYPE,
];
const CUSTOM_PATCHES: readonly string[] = [
  'application/json-patch+json',
  'application/merge-patch+json',
  APPLY_TYPE,
];

/** Refuses a kind of patch that the resource does not take; upstream looks at nothing before. */
export function checkPatchType(call: Call, { custom }: Served): Status | null {
  const type = mediaTypeOf(call);
  if (custom === null) return PATCHES.includes(type) ? null : unsupportedPatchType();
  return CUSTOM_PATCHES.includes(type) ? null : unsupportedMediaType(CUSTOM_PATCHES);
}

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
  const update = { subresource, change: change.value, isPut: false, isApply };
  context.admission.pause(context, context.call.body.length, () => updateObject(context, update));
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
  const isStrict = options.fieldValidation !== 'Ignore';
  const patch = parsePatch(kind, decodedText(call.body), isStrict);
  // whether there is an object to patch comes first
  if (!patch.ok) return success(() => patch);
  const type = typeOf(served);
  if (type === undefined && !isCustom) return failed(unsupportedPatchType());
  const isChecked = options.fieldValidation === 'Ignore' || isClean(patch.value, type);
  const isPart = subresource === 'status' && isAboutStatus(patch.value);
  const namesOwners = call.body.includes('managedFields');
  return success((previous) => {
    const live = namesOwners ? shownObject(previous) : withoutOwners(previous);
    const patched = applyPatch(patch.value, isPart ? statusPart(live) : live, type);
    if (!patched.ok) return patched;
    const document = (): JsonObject => documentOf(patch.value, shownObject(previous), type);
    const result = { patch: patch.value, patched: patched.value, isChecked, document };
    const form = resultForm(served, result, options, (text) => call.warn(text));
    if (!form.ok) return form;
    const next = checkIdentity(form.value, context);
    if (isPart && next.ok) addRest(next.value, previous);
    return next;
  });
}

/** A patch that does not name the owners of fields is made without them. */
function withoutOwners(object: JsonObject): JsonObject {
  const { managedFields: _, ...metadata } = objectAt(object, 'metadata') ?? {};
  return { ...object, metadata };
}

/** What a patch has to give. */
export interface PatchTarget {
  readonly custom: Served['custom'];
  readonly resource: { readonly apiVersion: string; readonly kind: string };
}

interface PatchResult {
  readonly patch: Patch;
  readonly patched: JsonObject;
  /** Known to have no field that strict decoding would complain about. */
  readonly isChecked: boolean;
  /** The whole result with its members in upstream's order; refusals show it. */
  readonly document: () => JsonObject;
}

/** What comes out of a patch of the `live` object, as upstream has it before decoding. */
export function documentOf(patch: Patch, live: JsonObject, type: Type | undefined): JsonObject {
  const whole = applyPatch(patch, live, type);
  const ordered = type === undefined ? undefined : versionedForm(type, live);
  const document = ordered === undefined ? undefined : patchedDocument(patch, ordered);
  return document ?? (whole.ok ? whole.value : live);
}

/** The outcome of a patch in the form of its kind; `warn` is told what strict decoding says. */
export function resultForm(
  served: PatchTarget,
  result: PatchResult,
  options: WriteOptions,
  warn: (text: string) => void,
): Result<JsonObject> {
  const { patch, patched } = result;
  const { apiVersion, kind } = served.resource;
  const isBuiltIn = served.custom === null;
  const isTyped = isBuiltIn && patch.kind !== 'strategic';
  const fault = isTyped ? patchedKindFault(patched, { apiVersion, kind }) : '';
  const shown = (): string => shownResult(served, result);
  if (fault !== '') return failed(patchResultInvalid(shown(), fault));
  if (!isBuiltIn && stringAt(patched, 'kind') === '') {
    return failed(patchResultInvalid(shown(), `Object 'Kind' is missing in '${shown()}'`));
  }
  const isUnversioned = isTyped && lacksVersion(patched);
  const object = isBuiltIn ? { ...patched, kind, apiVersion } : patched;
  const numbers = patchedNumbers(patch, object);
  const form = isUnversioned
    ? unversioned(result, options.fieldValidation === 'Ignore')
    : patch.kind === 'strategic'
      ? refittedUntyped(served, object, !result.isChecked)
      : refitted(served, object, !result.isChecked, numbers);
  if (form === null) return failed(unsupportedPatchType());
  const told = isTyped && !isUnversioned ? toldInOrder(served, result, form) : form;
  if (!form.ok) return failed(unfit(served, result, told.ok ? form.message : told.message));
  const strictErrors = told.ok ? told.strictErrors : form.strictErrors;
  // Upstream converts the result of a strategic patch in another way, which sorts.
  const found = patch.kind === 'strategic' ? strictErrors.toSorted() : strictErrors;
  const faults = [...(patch.strictErrors ?? []), ...found];
  if (faults.length > 0 && options.fieldValidation === 'Strict') {
    const text = `strict decoding error: ${faults.join(', ')}`;
    return failed(patchResultInvalid(shown(), text));
  }
  faults.forEach(warn);
  return success(form.object);
}

/** What decoding tells of the result in upstream's order; `form` where there is nothing to tell. */
function toldInOrder(served: PatchTarget, result: PatchResult, form: Body): Body {
  if (form.ok && form.strictErrors.length === 0) return form;
  const type = typeOf(served);
  if (type === undefined) return form;
  const document = result.document();
  const numbers = patchedNumbers(result.patch, document);
  return refit(type, document, !result.isChecked, numbers, false, true);
}

/** Nothing is left of an object without a version. */
function unversioned({ patched }: PatchResult, isLenient: boolean): Body {
  return { ok: true, object: {}, strictErrors: isLenient ? [] : unversionedErrors(patched) };
}

function unfit(served: PatchTarget, result: PatchResult, message: string): Status {
  const type = result.patch.kind === 'strategic' ? typeOf(served) : undefined;
  const fault = type === undefined ? undefined : unstructuredFault(type, result.patched);
  const shown = shownResult(served, result);
  return patchResultInvalid(shown, fault ?? (type ? unstructuredText(message) : message));
}

/** What refusals of the result show: of a strategic patch the patch, otherwise what came of it. */
function shownResult({ custom }: PatchTarget, { patch, document }: PatchResult): string {
  if (custom !== null) return goJson(document());
  return patch.kind === 'strategic' ? goText(merged(patch.body)) : escapedJson(document());
}

/** A strategic patch as upstream has it after merging, which takes `$retainKeys` out of it. */
function merged(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const kept = Object.entries(value).filter(([name]) => name !== '$retainKeys');
  return Object.fromEntries(kept.map(([name, inner]) => [name, merged(inner ?? null)]));
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

const STATUS_PART: ReadonlySet<string> = new Set(['kind', 'apiVersion', 'metadata', 'status']);

/** Patches of the status that name nothing else need not look at the rest of the object. */
function isAboutStatus(patch: Patch): boolean {
  if (patch.kind === 'json') return false;
  const names = Object.keys(patch.body);
  // without a version nothing fits, which is told of all that there is
  if (names.includes('apiVersion') && lacksVersion(patch.body)) return false;
  return names.every((name) => STATUS_PART.has(name));
}

function statusPart({ kind, apiVersion, metadata, status }: JsonObject): JsonObject {
  return {
    kind: kind ?? '',
    apiVersion: apiVersion ?? '',
    metadata: metadata ?? {},
    ...(status === undefined ? {} : { status }),
  };
}

/** What a patch of the status left aside is sent with it: admission looks at all of it. */
function addRest(next: JsonObject, previous: JsonObject): void {
  for (const name of Object.keys(previous)) {
    const value = previous[name];
    if (value !== undefined && !STATUS_PART.has(name)) putMember(next, name, value);
  }
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
