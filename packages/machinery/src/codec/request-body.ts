/** Bodies of requests to typed objects: JSON or protobuf in, objects in normal form out. */

import { isNumber, isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { syntaxError } from '../json/json-syntax.ts';
import { apiVersionOf, filledVersion, findKind, groupVersionOf } from '../scheme/kinds.ts';
import { quoted } from '../json/quoting.ts';
import { decodeProtobuf, UNREGISTERED_SCHEME } from '../serializer/protobuf.ts';
import { findTypeOfKind, versionRead, type Type } from '../scheme/schema.ts';
import { countMembers, strictErrors } from '../scheme/strict-json.ts';
import { countMembersIn, fitObject } from '../scheme/typed-json.ts';
import { parseWithLiterals, type NumberLiterals } from '../json/number-literals.ts';
import { decodedText } from '../json/json-text.ts';
import { keepRawTexts } from '../json/raw-text.ts';

/** What the URL of the request makes one expect. */
export interface ExpectedKind {
  readonly apiVersion: string;
  readonly kind: string;
}

/**
 * The object, or the message of a 400. `strictErrors` (`unknown field "spec.x"`, `duplicate field
 * "a"`) are found only when asked for; the caller makes warnings or a refusal of them. /
 */
export type Body =
  | { readonly ok: true; readonly object: JsonObject; readonly strictErrors: readonly string[] }
  | { readonly ok: false; readonly message: string };

/** Where upstream looks for options that name no version. */
const OPTIONS_VERSION = 'meta.k8s.io/v1';
const NO_ERRORS: readonly string[] = [];
/** Bytes of a body that error texts show. */
const SUMMARY_BYTES = 30;
const META_TYPE =
  'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; ' +
  'Kind string "json:\\"kind,omitempty\\"" }';

/**
 * Decodes JSON. Absent `kind` and `apiVersion` are taken from `expected`. With `hasVoids` empty
 * lists and maps stay (`voids.ts`).
 */
export function decodeJsonBody(
  bytes: Buffer,
  start: number,
  end: number,
  expected: ExpectedKind,
  isStrict: boolean,
  hasVoids = false,
): Body {
  const text = decodedText(bytes, start, end);
  const parsed = parse(text);
  const value = parsed?.value;
  const members = value === undefined ? 0 : countMembers(bytes, start, end);
  const isDeep = members < 0;
  const meta = value === undefined || isDeep ? syntaxError(text) : metaError(value);
  if (meta !== '' || value === undefined) {
    const cause = `couldn't get version/kind; json parse error: ${meta}`;
    return unrecognized(bytes, start, end, expected, cause);
  }
  const said = kindOf(value, expected);
  if (typeof said === 'string') return unrecognized(bytes, start, end, expected, said);
  const { kind } = said;
  const found = { kind, apiVersion: versionRead(said.apiVersion, kind, expected.apiVersion) };
  const refusal = kindError(found, expected);
  if (refusal !== '') return { ok: false, message: refusal };
  const type = findTypeOfKind(found.apiVersion, found.kind);
  if (type === undefined) {
    return { ok: false, message: unhandled(found, expected, unregistered(found)) };
  }
  keepRawTexts(text, value, kind);
  const fitted = fitObject(type, value ?? {}, true, parsed?.numbers, hasVoids, true);
  if (!fitted.ok) return { ok: false, message: unhandled(found, expected, fitted.message) };
  const object = withKind(fitted.object, found);
  if (!isStrict || fitted.members === members) {
    return { ok: true, object, strictErrors: NO_ERRORS };
  }
  return { ok: true, object, strictErrors: strictErrors(bytes, start, end, type) };
}

/** Decodes enveloped protobuf; such bodies have no unknown or doubled fields to report. */
export function decodeProtobufBody(
  bytes: Buffer,
  start: number,
  end: number,
  expected: ExpectedKind,
): Body {
  const decoded = decodeProtobuf(bytes, start, end, expected);
  if (!decoded.ok) {
    if (decoded.kind === '') return unrecognized(bytes, start, end, expected, decoded.message);
    return { ok: false, message: unhandled(decoded, expected, decoded.message) };
  }
  const refusal = kindError(kindOf(decoded.object, expected) as ExpectedKind, expected);
  if (refusal !== '') return { ok: false, message: refusal };
  return { ok: true, object: decoded.object, strictErrors: NO_ERRORS };
}

/**
 * Decodes options (DeleteOptions) in JSON. Upstream registers them for every group and version, so
 * that the kind alone counts, and says what is wrong without saying of what.
 */
export function decodeJsonOptions(bytes: Buffer, kind: string): Body {
  const text = decodedText(bytes);
  const parsed = parse(text);
  const value = parsed?.value;
  const meta = value === undefined ? syntaxError(text) : metaError(value);
  if (meta !== '' || value === undefined) {
    return { ok: false, message: `couldn't get version/kind; json parse error: ${meta}` };
  }
  const found = kindOf(value, { apiVersion: OPTIONS_VERSION, kind });
  if (typeof found === 'string') return { ok: false, message: found };
  const type = findTypeOfKind('v1', kind);
  if (found.kind !== kind || type === undefined) {
    return { ok: false, message: unregistered(found) };
  }
  const fitted = fitObject(type, value ?? {}, true, parsed?.numbers);
  if (!fitted.ok) return fitted;
  return { ok: true, object: fitted.object, strictErrors: NO_ERRORS };
}

/** The same in protobuf. */
export function decodeProtobufOptions(bytes: Buffer, kind: string): Body {
  const expected = { apiVersion: OPTIONS_VERSION, kind };
  const decoded = decodeProtobuf(bytes, 0, bytes.length, expected);
  if (!decoded.ok) return { ok: false, message: decoded.message };
  return { ok: true, object: decoded.object, strictErrors: NO_ERRORS };
}

/** Fits an object that was made here (a patched one) to its type, as if it had been sent. */
export function refit(
  type: Type,
  object: JsonObject,
  isStrict: boolean,
  numbers?: NumberLiterals,
  hasVoids = false,
  isSent = false,
): Body {
  const fitted = fitObject(type, object, true, numbers, hasVoids, isSent);
  if (!fitted.ok) return { ok: false, message: fitted.message };
  if (!isStrict || fitted.members === countMembersIn(object)) {
    return { ok: true, object: fitted.object, strictErrors: NO_ERRORS };
  }
  const bytes = Buffer.from(JSON.stringify(object));
  return {
    ok: true,
    object: fitted.object,
    strictErrors: strictErrors(bytes, 0, bytes.length, type),
  };
}

function parse(text: string): ReturnType<typeof parseWithLiterals> | undefined {
  try {
    return parseWithLiterals(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function metaError(value: JsonValue): string {
  if (value === null) return '';
  if (!isObject(value)) {
    const found = Array.isArray(value)
      ? 'array'
      : typeof value === 'boolean'
        ? 'bool'
        : isNumber(value)
          ? 'number'
          : typeof value;
    return `json: cannot unmarshal ${found} into Go value of type ${META_TYPE}`;
  }
  for (const name of ['apiVersion', 'kind']) {
    const member = value[name] ?? '';
    if (typeof member === 'string') continue;
    const found = Array.isArray(member)
      ? 'array'
      : typeof member === 'boolean'
        ? 'bool'
        : isNumber(member)
          ? 'number'
          : typeof member;
    return `json: cannot unmarshal ${found} into Go struct field .${name} of type string`;
  }
  return '';
}

/** What the object says it is, filled from what is expected; or why it says nothing usable. */
function kindOf(value: JsonValue, expected: ExpectedKind): ExpectedKind | string {
  const object = isObject(value) ? value : {};
  const said = typeof object['apiVersion'] === 'string' ? object['apiVersion'] : '';
  const kind = typeof object['kind'] === 'string' ? object['kind'] : '';
  const parts = groupVersionOf(said);
  if (parts === undefined) return `unexpected GroupVersion string: ${said}`;
  const apiVersion = filledVersion(said, expected.apiVersion);
  return { apiVersion, kind: kind === '' ? expected.kind : kind };
}

/** Refusals of objects of another kind or version than the URL's; '' if it may be decoded. */
function kindError(found: ExpectedKind, expected: ExpectedKind): string {
  if (found.apiVersion === expected.apiVersion && found.kind === expected.kind) return '';
  const isKnown = findTypeOfKind(found.apiVersion, found.kind) !== undefined;
  if (isKnown && found.kind === expected.kind && isSameStorage(found, expected)) {
    const [said, wanted] = [found.apiVersion, expected.apiVersion];
    const text = `does not match the expected API version (${wanted})`;
    return `the API version in the data (${said}) ${text}`;
  }
  return unhandled(found, expected, kindFault(found, expected));
}

/** Why an object of one kind cannot be read as another; '' if it can. */
function kindFault(found: ExpectedKind, expected: ExpectedKind): string {
  if (found.apiVersion === expected.apiVersion && found.kind === expected.kind) return '';
  const type = findTypeOfKind(found.apiVersion, found.kind);
  if (type === undefined) return unregistered(found);
  if (found.kind === expected.kind && isSameStorage(found, expected)) return '';
  const wanted = findTypeOfKind(expected.apiVersion, expected.kind);
  const group = wanted?.name.split('.')[0] ?? '';
  return `converting (${type.goType}) to (${group}.${expected.kind}): unknown conversion`;
}

/** Why what a patch made cannot be read as an object of the kind that it was; '' if it can. */
export function patchedKindFault(patched: JsonObject, expected: ExpectedKind): string {
  const meta = metaError(patched);
  if (meta !== '') return `couldn't get version/kind; json parse error: ${meta}`;
  const found = kindOf(patched, expected);
  if (typeof found === 'string') return found;
  if (!lacksVersion(patched)) return kindFault(found, expected);
  if (found.kind === expected.kind) return '';
  const group = groupVersionOf(expected.apiVersion)?.group ?? '';
  const cause = `no kind "${found.kind}" is registered for the internal version of group`;
  return `${cause} "${group}" in scheme "${UNREGISTERED_SCHEME}"`;
}

/**
 * True for what a patch took the version of: upstream reads it as the internal form of its kind,
 * which has none of the fields that the versions have.
 */
export function lacksVersion(patched: JsonObject): boolean {
  const { apiVersion = '' } = patched;
  return apiVersion === '' || apiVersion === '/' || apiVersion === null;
}

/** What strict decoding says of an object without a version. */
export function unversionedErrors(patched: JsonObject): string[] {
  const names = Object.keys(patched).filter((name) => name !== 'kind' && name !== 'apiVersion');
  return names.map((name) => `unknown field ${quoted(name)}`);
}

function isSameStorage(left: ExpectedKind, right: ExpectedKind): boolean {
  const found = findKind(left.apiVersion, left.kind);
  const wanted = findKind(right.apiVersion, right.kind);
  if (found !== undefined && wanted !== undefined) return found.storage === wanted.storage;
  return groupVersionOf(left.apiVersion)?.group === groupVersionOf(right.apiVersion)?.group;
}

function unregistered(found: ExpectedKind): string {
  const parts = groupVersionOf(found.apiVersion) ?? { group: '', version: found.apiVersion };
  const version = apiVersionOf(parts.group, parts.version);
  const cause = `no kind "${found.kind}" is registered for version "${version}"`;
  return `${cause} in scheme "${UNREGISTERED_SCHEME}"`;
}

function unhandled(found: ExpectedKind, expected: ExpectedKind, cause: string): string {
  const version = groupVersionOf(found.apiVersion)?.version ?? found.apiVersion;
  return `${found.kind} in version "${version}" cannot be handled as a ${expected.kind}: ${cause}`;
}

/** Why what was sent is no object at all, with the beginning of it. */
export function unrecognized(
  bytes: Buffer,
  start: number,
  end: number,
  expected: ExpectedKind,
  cause: string,
): { readonly ok: false; readonly message: string } {
  const summary = summaryOf(bytes, start, end);
  const head = `the object provided is unrecognized (must be of type ${expected.kind})`;
  return { ok: false, message: `${head}: ${cause} (${summary})` };
}

function summaryOf(bytes: Buffer, start: number, end: number): string {
  if (start === end) return '<empty>';
  const encoding = bytes[start] === 0x7b ? 'utf8' : 'hex';
  const text = bytes.toString(encoding, start, Math.min(end, start + SUMMARY_BYTES));
  return end - start > SUMMARY_BYTES ? `${text} ...` : text;
}

/** With `kind` and `apiVersion` first, whether they were sent or not. */
function withKind(object: JsonObject, found: ExpectedKind): JsonObject {
  const { kind, apiVersion } = found;
  if (object['kind'] === kind && object['apiVersion'] === apiVersion) return object;
  const { kind: _kind, apiVersion: _version, ...withoutKind } = object;
  return { kind, apiVersion, ...withoutKind };
}
