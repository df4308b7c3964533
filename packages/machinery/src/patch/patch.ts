/**
 * The patches that built-in resources take, by Content-Type. Each works on JSON-shaped objects,
 * leaves its inputs alone, so that one patch can be tried again on a newer object, and answers a
 * Status where upstream refuses. Server-side apply is a chapter of its own, not a patch like these.
 */
import { applyJsonPatch, JSON_PATCH_OPERATIONS_MAX, placeOf } from './patch-json.ts';
import { applyMergePatch } from './patch-merge.ts';
import { applyStrategicPatch } from './patch-strategic.ts';
import { invalidValue } from '../meta/fielderrors.ts';
import { infiniteNumber } from '../json/json-reader.ts';
import { syntaxError } from '../json/json-syntax.ts';
import { isNumber, isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import type { Type } from '../scheme/schema.ts';
import {
  badRequest,
  failed,
  generic,
  invalid,
  requestEntityTooLarge,
  success,
  unclassified,
  type Result,
  type Status,
} from '../meta/status.ts';
import { duplicateFields } from '../scheme/strict-json.ts';
import { carriedNumbers, parseWithLiterals, type NumberLiterals } from '../json/number-literals.ts';

export type PatchKind = 'json' | 'merge' | 'strategic';

const KINDS: ReadonlyMap<string, PatchKind> = new Map([
  ['application/json-patch+json', 'json'],
  ['application/merge-patch+json', 'merge'],
  ['application/strategic-merge-patch+json', 'strategic'],
]);

/** The kind of patch that a media type (without parameters) announces. */
export function patchKindOf(mediaType: string): PatchKind | undefined {
  return KINDS.get(mediaType);
}

/**
 * A patch read once, to be applied any number of times. `strictErrors` is what strict decoding says
 * of the patch itself, before it is applied; absent for none. `numbers` tells how its unusual
 * numbers were written.
 */
export type Patch = {
  readonly strictErrors?: readonly string[];
  readonly numbers?: NumberLiterals;
} & (
  | { readonly kind: 'json'; readonly operations: readonly JsonObject[] }
  | { readonly kind: 'merge' | 'strategic'; readonly body: JsonObject }
);

/**
 * Reads the body of a PATCH. What is no JSON, or no patch of this kind, is a 400. `isStrict` looks
 * for fields that stand twice, or that the operations of a JSON patch do not have: fieldValidation
 * Warn and Strict do. The numbers that no double holds are refused where the body is decoded before
 * it is applied, which upstream does only then, and for strategic patches always.
 */
export function parsePatch(kind: PatchKind, text: string, isStrict = true): Result<Patch> {
  const parsed = parseJson(text, isStrict || kind === 'strategic');
  const isPrefixed = kind === 'merge' || (kind === 'json' && isStrict);
  const prefix = isPrefixed ? 'error decoding patch: ' : '';
  if ('error' in parsed) return failed(badRequest(prefix + parsed.error));
  const doubles = isStrict ? duplicateFields(text, parsed.value) : [];
  const { numbers } = parsed;
  if (kind === 'json') {
    const read = jsonPatchOf(parsed.value, isStrict, doubles);
    return read.ok ? success({ ...read.value, numbers }) : read;
  }
  const body = parsed.value === null && kind === 'strategic' ? {} : parsed.value;
  if (isObject(body)) return success({ kind, body, strictErrors: doubles, numbers });
  if (parsed.value === null) return failed(badRequest('Invalid JSON Patch'));
  const found = goTypeName(parsed.value);
  const text400 = `json: cannot unmarshal ${found} into Go value of type map[string]interface {}`;
  return failed(badRequest(prefix + text400));
}

function parseJson(
  text: string,
  isDecoded: boolean,
): ReturnType<typeof parseWithLiterals> | { readonly error: string } {
  try {
    const parsed = parseWithLiterals(text);
    const infinite = isDecoded ? infiniteNumber(text) : undefined;
    if (infinite === undefined) return parsed;
    return { error: `json: cannot unmarshal number ${infinite} into Go value of type float64` };
  } catch (error) {
    return { error: syntaxError(text) || String(error) };
  }
}

const OPERATION_FIELDS: readonly string[] = ['op', 'path', 'from', 'value'];

function jsonPatchOf(
  value: JsonValue,
  isStrict: boolean,
  doubles: readonly string[],
): Result<Patch> {
  const operations: JsonObject[] = [];
  const strictErrors: string[] = [];
  const into = isStrict ? 'handlers.jsonPatchOp' : 'jsonpatch.Operation';
  const whole = isStrict ? '[]handlers.jsonPatchOp' : 'jsonpatch.Patch';
  if (value !== null && !Array.isArray(value))
    return failed(unfit(value, `value of type ${whole}`));
  for (const [index, item] of (value ?? []).entries()) {
    if (item !== null && !isObject(item)) return failed(unfit(item, `value of type ${into}`));
    operations.push(item ?? {});
    if (!isStrict || item === null) continue;
    for (const [name, member] of Object.entries(item)) {
      if (!OPERATION_FIELDS.includes(name)) {
        strictErrors.push(`json patch unknown field "[${index}].${name}"`);
      } else if (name !== 'value' && typeof member !== 'string' && member !== null) {
        const field = `struct field jsonPatchOp.${name} of type string`;
        return failed(unfit(member ?? null, field));
      }
    }
  }
  if (operations.length > JSON_PATCH_OPERATIONS_MAX) {
    const limit = `The allowed maximum operations in a JSON patch is ${JSON_PATCH_OPERATIONS_MAX}`;
    return failed(requestEntityTooLarge(`${limit}, got ${operations.length}`));
  }
  strictErrors.push(...doubles.map((text) => `json patch ${text}`));
  return success({ kind: 'json', operations, strictErrors });

  function unfit(found: JsonValue, expected: string): Status {
    const prefix = isStrict ? 'error decoding patch: ' : '';
    const text = `json: cannot unmarshal ${goTypeName(found)} into Go ${expected}`;
    return badRequest(prefix + text);
  }
}

function goTypeName(value: JsonValue): string {
  if (Array.isArray(value)) return 'array';
  if (value === null) return 'null';
  return typeof value === 'boolean' ? 'bool' : isNumber(value) ? 'number' : typeof value;
}

/**
 * The unusual numbers of a patch in what came out of it, which is then decoded as a body is. Only a
 * strategic patch reads all numbers as doubles first, and makes integers of them again.
 */
export function patchedNumbers(patch: Patch, patched: JsonObject): NumberLiterals | undefined {
  const { numbers } = patch;
  if (numbers === undefined || numbers.size === 0) return undefined;
  if (patch.kind === 'json') {
    const moves = patch.operations.flatMap((from) => {
      const found = placeOf(patched, from['path']);
      return found === undefined ? [] : [{ from, member: 'value', ...found }];
    });
    return carriedNumbers(numbers, moves);
  }
  if (patch.kind === 'strategic') return undefined;
  const from = patch.body;
  const moves = Object.keys(from).map((place) => ({ from, member: place, to: patched, place }));
  return carriedNumbers(numbers, moves);
}

/**
 * Applies a patch. `type` is that of the object; strategic patches need it for their merge keys.
 * The result is not yet checked against the type: the caller decodes it as it would a body.
 */
export function applyPatch(
  patch: Patch,
  original: JsonObject,
  type: Type | undefined,
): Result<JsonObject> {
  switch (patch.kind) {
    case 'json': {
      const patched = applyJsonPatch(original, patch.operations);
      // The library's own words are lost upstream, and with them which operation failed.
      return isObject(patched) ? success(patched) : failed(generic('Invalid'));
    }
    case 'merge':
      return success(applyMergePatch(original, patch.body));
    case 'strategic':
      if (type === undefined) return failed(generic('UnsupportedMediaType'));
      return strategic(original, patch.body, type);
  }
}

function strategic(original: JsonObject, body: JsonObject, type: Type): Result<JsonObject> {
  const patched = applyStrategicPatch(original, body, type);
  if (!('failure' in patched)) return success(patched.value);
  const { kind, text } = patched.failure;
  if (kind === 'badFormat') return failed(badRequest(text));
  return failed(kind === 'unprocessable' ? generic('Invalid') : unclassified(text));
}

/** The patch applied, and gave something that is no object of its kind: upstream's 422. */
export function patchResultInvalid(patched: string, why: string): Status {
  return invalid({ group: '', name: '' }, '', [invalidValue('patch', patched, why)]);
}
