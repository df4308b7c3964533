/**
 * Whether a schema is structural (KEP-1979): every field that it names is specified outside of
 * `allOf`, `anyOf`, `oneOf` and `not`, with a type, and within those there is nothing but checks of
 * values.
 */
import { ownMember } from '@megaplane/base/members';
import {
  fieldErrorText,
  forbiddenField,
  invalidValue,
  required,
  type FieldError,
} from '../meta/fielderrors.ts';
import { compilePattern } from '../cel/library/regex-library.ts';
import { equals, listAt, objectAt, stringAt } from '../json/json.ts';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import type { Findings } from '../validation/field/validation-rules.ts';
import { schemaMap } from '../structural/schema/schema-json.ts';

type Level = 'root' | 'item' | 'field';

const INT_OR_STRING: JsonValue = [{ type: 'integer' }, { type: 'string' }];

/** What is not structural about a schema, in order of the texts; a part of it with each step. */
export function* structuralSteps(
  schema: JsonObject,
  path: string,
): Generator<void, readonly FieldError[]> {
  const found: Findings = [];
  yield* nodeSteps(found, schema, 'root', path);
  checkComplete(found, schema, schema, path, path);
  const texts = new Map(found.map((error) => [error, fieldErrorText(error)]));
  return found.sort((a, b) => ((texts.get(a) ?? '') < (texts.get(b) ?? '') ? -1 : 1));
}

const MISSING_TYPE = {
  root: 'must not be empty at the root',
  item: 'must not be empty for specified array items',
  field: 'must not be empty for specified object fields',
} as const satisfies Record<Level, string>;

function* nodeSteps(
  found: Findings,
  schema: JsonObject,
  level: Level,
  path: string,
): Generator<void, void> {
  const type = stringAt(schema, 'type');
  const items = objectAt(schema, 'items');
  if (type === 'array' && items === undefined) {
    found.push(required(`${path}.items`, 'must be specified'));
  }
  if (items !== undefined) yield* nodeSteps(found, items, 'item', `${path}.items`);
  for (const [name, property] of schemaMap(schema, 'properties')) {
    yield;
    yield* nodeSteps(found, property, 'field', `${path}.properties[${name}]`);
  }
  const more = schema['additionalProperties'];
  if (more !== undefined && level === 'root') {
    found.push(forbiddenField(`${path}.additionalProperties`, 'must not be used at the root'));
  }
  if (isObject(more)) yield* nodeSteps(found, more, 'field', `${path}.additionalProperties`);
  checkExtensions(found, schema, path);
  const anyOf = schema['anyOf'];
  const allOf = listAt(schema, 'allOf');
  checkValues(found, schema, path, {
    skipsAnyOf: equals(anyOf, INT_OR_STRING),
    skipsFirst: isObject(allOf[0]) && equals(allOf[0]['anyOf'], INT_OR_STRING),
  });
  checkType(found, schema, level, path);
  checkMetaFields(found, schema, level, path);
}

function checkExtensions(found: Findings, schema: JsonObject, path: string): void {
  if (schema['x-kubernetes-int-or-string'] !== true) return;
  const text = 'must be false if x-kubernetes-int-or-string is true';
  for (const name of ['preserve-unknown-fields', 'embedded-resource']) {
    if (schema[`x-kubernetes-${name}`] !== true) continue;
    found.push(invalidValue(`${path}.x-kubernetes-${name}`, true, text));
  }
}

function checkType(found: Findings, schema: JsonObject, level: Level, path: string): void {
  const type = stringAt(schema, 'type');
  const isEmbedded = schema['x-kubernetes-embedded-resource'] === true;
  const preserves = schema['x-kubernetes-preserve-unknown-fields'] === true;
  const at = `${path}.type`;
  if (isEmbedded && type !== 'object') {
    const text = 'must be object if x-kubernetes-embedded-resource is true';
    found.push(type === '' ? required(at, text) : invalidValue(at, type, text));
  } else if (type === '' && !preserves && schema['x-kubernetes-int-or-string'] !== true) {
    found.push(required(at, MISSING_TYPE[level]));
  }
  if (isEmbedded && schema['additionalProperties'] !== undefined) {
    const text = 'must not be used if x-kubernetes-embedded-resource is set';
    found.push(forbiddenField(`${path}.additionalProperties`, text));
  }
  if (level === 'root' && type !== '' && type !== 'object') {
    found.push(invalidValue(at, type, 'must be object at the root'));
  }
  if (!isEmbedded || preserves || schemaMap(schema, 'properties').length > 0) return;
  const text =
    'must not be empty if x-kubernetes-embedded-resource is true ' +
    'without x-kubernetes-preserve-unknown-fields';
  found.push(required(`${path}.properties`, text));
}

function checkMetaFields(found: Findings, schema: JsonObject, level: Level, path: string): void {
  const isResource = level === 'root' || schema['x-kubernetes-embedded-resource'] === true;
  for (const [name, property] of schemaMap(schema, 'properties')) {
    const at = `${path}.properties[${name}]`;
    const type = stringAt(property, 'type');
    if ((name === 'kind' || name === 'apiVersion') && isResource && type !== 'string') {
      found.push(invalidValue(`${at}.type`, type, 'must be string'));
    }
    if (name !== 'metadata') continue;
    if (isResource && type !== 'object') {
      found.push(invalidValue(`${at}.type`, type, 'must be object'));
    }
    if (level === 'root' && !restrictsNamesAlone(property)) {
      const text =
        'must not specify anything other than name and generateName, ' +
        'but metadata is implicitly specified';
      found.push(forbiddenField(at, text));
    }
  }
}

const MAY_BE_SAID: ReadonlySet<string> = new Set(['type', 'default', 'properties']);

function restrictsNamesAlone(metadata: JsonObject): boolean {
  const names = schemaMap(metadata, 'properties').map(([name]) => name);
  if (!names.every((name) => name === 'name' || name === 'generateName')) return false;
  return Object.keys(metadata).every((member) => MAY_BE_SAID.has(member));
}

interface Skips {
  readonly skipsAnyOf: boolean;
  readonly skipsFirst: boolean;
}

const NO_SKIPS: Skips = { skipsAnyOf: false, skipsFirst: false };

/** The junctors of a node, and its pattern. */
function checkValues(found: Findings, schema: JsonObject, path: string, skips: Skips): void {
  const each = (junctor: string, check: (one: JsonObject, at: string, i: number) => void): void => {
    for (const [i, one] of listAt(schema, junctor).entries()) {
      if (isObject(one)) check(one, `${path}.${junctor}[${i}]`, i);
    }
  };
  if (!skips.skipsAnyOf) each('anyOf', (one, at) => checkNested(found, one, at, NO_SKIPS));
  each('allOf', (one, at, i) => {
    checkNested(found, one, at, { skipsAnyOf: skips.skipsFirst && i === 0, skipsFirst: false });
  });
  each('oneOf', (one, at) => checkNested(found, one, at, NO_SKIPS));
  const not = objectAt(schema, 'not');
  if (not !== undefined) checkNested(found, not, `${path}.not`, NO_SKIPS);
  const pattern = stringAt(schema, 'pattern');
  const compiled = pattern === '' ? null : compilePattern(pattern);
  if (compiled === null || compiled.ok) return;
  const text = `must be a valid regular expression, but isn't: ${compiled.message}`;
  found.push(invalidValue(`${path}.pattern`, pattern, text));
}

/** They are pointers upstream: what is empty is there. */
const MAY_BE_EMPTY: ReadonlySet<string> = new Set([
  ...['default', 'x-kubernetes-list-type', 'x-kubernetes-map-type'],
]);

/** Members that say what a value is, not how it has to be; with the words for each. */
const FORBIDDEN_INSIDE: readonly (readonly [member: string, words: string])[] = [
  ['type', 'must be empty'],
  ['additionalProperties', 'must be undefined'],
  ['default', 'must be undefined'],
  ['title', 'must be empty'],
  ['description', 'must be empty'],
  ['nullable', 'must be false'],
  ['x-kubernetes-preserve-unknown-fields', 'must be false'],
  ['x-kubernetes-embedded-resource', 'must be false'],
  ['x-kubernetes-int-or-string', 'must be false'],
  ['x-kubernetes-list-map-keys', 'must be empty'],
  ['x-kubernetes-list-type', 'must be undefined'],
  ['x-kubernetes-map-type', 'must be undefined'],
  ['x-kubernetes-validations', 'must be empty'],
];

function isSet(value: JsonValue | undefined): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return value !== undefined && value !== null && value !== false && value !== '';
}

function checkNested(found: Findings, schema: JsonObject, path: string, skips: Skips): void {
  checkValues(found, schema, path, skips);
  const items = objectAt(schema, 'items');
  if (items !== undefined) checkNested(found, items, `${path}.items`, NO_SKIPS);
  for (const [name, property] of schemaMap(schema, 'properties')) {
    checkNested(found, property, `${path}.properties[${name}]`, NO_SKIPS);
  }
  for (const [member, words] of FORBIDDEN_INSIDE) {
    const value = ownMember(schema, member);
    const isThere = MAY_BE_EMPTY.has(member) ? (value ?? null) !== null : isSet(value);
    if (isThere) found.push(forbiddenField(`${path}.${member}`, `${words} to be structural`));
  }
  if (objectAt(schema, 'properties', 'metadata') === undefined) return;
  const text = 'must not be specified in a nested context';
  found.push(forbiddenField(`${path}.properties[metadata]`, text));
}

/** Fields that are named within junctors have to be specified outside. `at` is where they are. */
function checkComplete(
  found: Findings,
  schema: JsonObject,
  outer: JsonObject,
  outerAt: string,
  at: string,
): void {
  const not = objectAt(schema, 'not');
  if (not !== undefined) checkNestedComplete(found, not, outer, outerAt, `${at}.not`);
  for (const junctor of ['allOf', 'anyOf', 'oneOf']) {
    for (const [i, one] of listAt(schema, junctor).entries()) {
      if (!isObject(one)) continue;
      checkNestedComplete(found, one, outer, outerAt, `${at}.${junctor}[${i}]`);
    }
  }
}

function checkNestedComplete(
  found: Findings,
  schema: JsonObject,
  outer: JsonObject | undefined,
  outerAt: string,
  at: string,
): void {
  if (outer === undefined) {
    found.push(required(outerAt, `because it is defined in ${at}`));
    return;
  }
  checkComplete(found, schema, outer, outerAt, at);
  const items = objectAt(schema, 'items');
  if (items !== undefined) {
    const own = objectAt(outer, 'items');
    checkNestedComplete(found, items, own, `${outerAt}.items`, `${at}.items`);
  }
  for (const [name, property] of schemaMap(schema, 'properties')) {
    const own = objectAt(outer, 'properties', name);
    const step = `properties[${name}]`;
    checkNestedComplete(found, property, own, `${outerAt}.${step}`, `${at}.${step}`);
  }
}
