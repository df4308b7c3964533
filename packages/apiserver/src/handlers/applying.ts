/** Server-side apply: PATCH with a configuration that its manager wants to be so. */
import { trackApply } from '@megaplane/machinery/apply/field-manager';
import { packManaged, unpackManaged } from '@megaplane/machinery/apply/field-templates';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import { JSON_DEPTH_MAX } from '@megaplane/base/nested-json';
import { parseJson } from '@megaplane/machinery/json-text';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import {
  badRequest,
  conflict,
  failed,
  success,
  unclassified,
  type Result,
} from '@megaplane/machinery/status';
import { countMembers } from '@megaplane/machinery/strict-json';
import { countMembersIn } from '@megaplane/machinery/typed-json';
import { unstructuredFault, unstructuredText } from '@megaplane/machinery/unstructured';
import { checkSize } from '../serializer/body.ts';
import type { Call } from '../request/call.ts';
import { wordOf } from '../apiextensions/schema/custom-objects.ts';
import { checkName, checkNamespace } from '../registry/rest/object-meta.ts';
import { refittedApplied, typeOf } from '../registry/rest/schema-gate.ts';
import type { Change } from './updating.ts';
import type { WriteOptions } from '../request/options/write-options.ts';
import type { WriteContext } from './writing.ts';
import { readYaml } from '../request/yaml/yaml-body.ts';
import { fieldScope } from '../fieldmanager/field-scope.ts';
import { conversionFault } from '../fieldmanager/version-conversions.ts';

export const APPLY_TYPE = 'application/apply-patch+yaml';

const TOO_DEEP =
  'error decoding YAML: error converting YAML to JSON: yaml: values are nested too deeply';
const STRICT_HEAD = 'error converting YAML to JSON: yaml: unmarshal errors:';

/** The change that an apply makes of the stored object, or of `{}` where there is none. */
export function readApply(
  context: WriteContext,
  subresource: string,
  options: WriteOptions,
): Result<Change> {
  const size = checkSize(context.call);
  if (!size.ok) return size;
  const { call } = context;
  const plain = call.json ?? readPlainJson(call.body);
  const config = plain === undefined ? readConfig(call) : configOf(plain);
  if (!config.ok) return config;
  return success((previous) => {
    const applied = applyTo(context, subresource, options, previous, config.value);
    if (!applied.ok || plain !== undefined) return applied;
    const strict = checkDoubles(context, options);
    return strict.ok ? applied : strict;
  });
}

/**
 * JSON is YAML, and what kubectl sends; the library is for what people write, and for members that
 * are there twice. Undefined for these.
 */
export function readPlainJson(body: Buffer): JsonValue | undefined {
  const json = jsonOf(body);
  return json !== undefined && hasEachMember(body, json) ? json : undefined;
}

/** As many as were read: looking for doubled ones by the library takes ten times as long. */
function hasEachMember(body: Buffer, json: JsonValue): boolean {
  const members = countMembers(body, 0, body.length);
  return members >= 0 && members === countMembersIn(json);
}

/** What is applied, in JSON or YAML. */
export function readConfig(call: Call): Result<JsonObject> {
  const json = jsonOf(call.body);
  if (json !== undefined) return configOf(json);
  const read = (call.yaml ??= readYaml(call.body));
  if (!('error' in read)) {
    const value = parsed(textOf(read.json));
    return value === undefined ? failed(badRequest(TOO_DEEP)) : configOf(value);
  }
  const why = `error converting YAML to JSON: ${read.error}`;
  return failed(badRequest(`error decoding YAML: ${why}`));
}

function textOf({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString('utf8');
}

function configOf(value: JsonValue): Result<JsonObject> {
  if (isTooDeep(value)) {
    return failed(badRequest(TOO_DEEP));
  }
  if (value === null) return success({});
  if (isObject(value)) return success(value);
  const found = wordOf(value);
  const why = `json: cannot unmarshal ${found} into Go value of type map[string]interface {}`;
  const where = 'error unmarshaling JSON: while decoding JSON';
  return failed(badRequest(`error decoding YAML: ${where}: ${why}`));
}

/** Whether a value goes deeper than those who follow it by recursion can. */
function isTooDeep(value: JsonValue): boolean {
  let level: JsonValue[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > JSON_DEPTH_MAX) return true;
    const next: JsonValue[] = [];
    for (const one of level) {
      if (typeof one !== 'object' || one === null) continue;
      for (const inner of Object.values(one)) {
        if (typeof inner === 'object' && inner !== null) next.push(inner);
      }
    }
    level = next;
  }
  return false;
}

/**
 * What YAML reads otherwise than JSON: halves of characters, which it refuses, and so controls and
 * bytes that are no UTF-8; breaks of lines within texts; numbers that no double holds.
 */
const OTHERWISE =
  /\\u[dD][89a-fA-F]|[\u007f-\u009f\u2028\u2029\ufffd-\uffff]|\d[eE]\+?\d{3}|\d{309}/;

/** Bodies are YAML, always; undefined for those that have to be read as such. */
function jsonOf(body: Buffer): JsonValue | undefined {
  const text = body.toString('utf8');
  return text.trimStart().startsWith('{') && !OTHERWISE.test(text) ? parsed(text) : undefined;
}

/** Undefined for what is no JSON, or nested too deep; of well-formed texts only the latter. */
function parsed(text: string): JsonValue | undefined {
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Keys that a document has twice: refused where asked for, else told. */
function checkDoubles({ call }: WriteContext, { fieldValidation }: WriteOptions): Result<true> {
  if (fieldValidation === 'Ignore') return success(true);
  const read = (call.yaml ??= readYaml(call.body));
  const doubles = 'doubles' in read ? read.doubles : [];
  if (doubles.length === 0) return success(true);
  if (fieldValidation === 'Strict') {
    const lines = doubles.map((line) => `\n  ${line}`).join('');
    return failed(badRequest(`error strict decoding YAML: ${STRICT_HEAD}${lines}`));
  }
  for (const line of doubles) call.warn(line);
  return success(true);
}

function applyTo(
  context: WriteContext,
  subresource: string,
  options: WriteOptions,
  previous: JsonObject,
  config: JsonObject,
): Result<JsonObject> {
  const { call, served } = context;
  const { apiVersion, kind } = served.resource;
  const isNew = previous['metadata'] === undefined;
  const { managedFields, ...metadata } = objectAt(previous, 'metadata') ?? {};
  const live = isNew ? null : { ...previous, metadata };
  const scope = fieldScope(served, call, subresource, 'Apply');
  const managed = unpackManaged(managedFields);
  const applied = trackApply(scope, live, config, managed, kind, options.force);
  const fault = conversionFault(context);
  if (fault !== null) return failed(unclassified(fault));
  if (!applied.ok) return applied;
  const packed = packManaged(applied.value.managed) ?? '';
  const { object } = applied.value;
  const current = object ?? live ?? scope.empty;
  const form = refittedApplied(served, current);
  if (form === null) return failed(unclassified(`no type of ${apiVersion} ${kind}`));
  if (!form.ok) {
    const own = objectAt(config, 'metadata');
    const version = apiVersion.includes('/') ? apiVersion : `/${apiVersion}`;
    const what = `${version}, Kind=${kind}`;
    const who = `${stringAt(own, 'namespace')}/${stringAt(own, 'name')}; ${what}`;
    const text = `failed to convert new object (${who}) to proper version`;
    const type = typeOf(served);
    const cause = (type && unstructuredFault(type, current)) ?? unstructuredText(form.message);
    const why = `unable to convert unstructured object to ${what}: ${cause}`;
    return failed(unclassified(`${text}: ${why}`));
  }
  const refusal = checkIdentity(context, form.object, isNew);
  if (refusal !== null) return refusal;
  const own = objectAt(form.object, 'metadata') ?? {};
  return success({ ...form.object, metadata: { ...own, managedFields: packed } });
}

function checkIdentity(
  { call, served }: WriteContext,
  object: JsonObject,
  isNew: boolean,
): { readonly ok: false; readonly status: ReturnType<typeof badRequest> } | null {
  const { name, namespace } = call.info;
  const uid = stringAt(object, 'metadata', 'uid');
  if (isNew && uid !== '') {
    const text = `uid mismatch: the provided object specified uid ${uid}`;
    return failed(conflict(served.plural, name, `${text}, and no existing object was found`));
  }
  const moved = served.resource.namespaced ? checkNamespace(object, namespace) : null;
  if (moved !== null) return failed(moved);
  if (stringAt(object, 'metadata', 'name') === '') {
    const who = `the name of the object (${name} based on URL)`;
    return failed(badRequest(`${who} was undeterminable: name must be provided`));
  }
  const renamed = checkName(object, name);
  return renamed === null ? null : failed(renamed);
}
