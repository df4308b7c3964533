/**
 * What OpenAPI says that a schema of a definition must not say, and how lists, maps and rules have
 * to be declared. Whether it is structural is asked in `structural-rules.ts`.
 */
import {
  forbiddenField,
  invalidValue,
  notSupported,
  printed,
  required,
  type FieldError,
  notSupportedText,
} from '../meta/fielderrors.ts';
import { listAt, objectAt, stringAt } from '../json/json.ts';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import type { Findings } from '../validation/field/validation-rules.ts';
import { internalItems } from './internal-form.ts';
import { compiledSteps, type RuleContext } from './rule-estimates.ts';
import { checkRuleTexts } from './rule-texts.ts';
import { schemaMap } from '../structural/schema/schema-json.ts';

const TYPES = ['array', 'boolean', 'integer', 'number', 'object', 'string'] as const;
/** Maps of other types would have no counterparts in what was before; '' is granular. */
const MAP_TYPES: ReadonlySet<string> = new Set(['', 'granular', 'atomic']);
const META: ReadonlySet<string> = new Set(['metadata', 'kind', 'apiVersion']);

/** What holds for a schema by where it stands. */
export interface Standing {
  readonly path: string;
  readonly isRoot: boolean;
  /** Why there may be no default here; '' where there may. */
  readonly defaultsForbidden: string;
  readonly isInMeta: boolean;
  /** The first schema above whose values have no counterparts; '' where all have. */
  readonly uncorrelatable: string;
  /** Null: rules are not compiled here. */
  readonly rules: RuleContext | null;
}

/** Errors of schemas come before those of their rules. */
export interface SchemaFindings {
  readonly schema: FieldError[];
  readonly rules: FieldError[];
}

export function rootStanding(path: string, rules: RuleContext | null): Standing {
  const plain = { defaultsForbidden: '', isInMeta: false, uncorrelatable: '' };
  return { path, isRoot: true, ...plain, rules };
}

/**
 * Adds what is wrong with a schema and all that it is made of, a part of it with each step: large
 * ones take longer than others can wait.
 */
export function* schemaSteps(
  found: SchemaFindings,
  schema: JsonObject,
  at: Standing,
): Generator<void, void> {
  // rules are compiled only where nothing is wrong from here on down
  const own: SchemaFindings = { schema: [], rules: [] };
  checkMembers(own.schema, schema, at);
  yield* additionalSteps(own, schema, at);
  yield* propertySteps(own, schema, at);
  yield* junctorSteps(own, schema, at);
  yield* itemSteps(own, schema, at);
  if (schema['x-kubernetes-preserve-unknown-fields'] === false) {
    const path = `${at.path}.x-kubernetes-preserve-unknown-fields`;
    own.schema.push(invalidValue(path, false, 'must be true or undefined'));
  }
  checkMapType(own.schema, schema, at.path);
  checkListType(own.schema, schema, at.path);
  checkKeyedItems(own.schema, schema, at.path);
  checkRuleTexts(own.schema, schema, at.path);
  if (own.schema.length === 0 && at.rules !== null) {
    yield* compiledSteps(own.rules, schema, at.path, at.rules, at.uncorrelatable);
  }
  found.schema.push(...own.schema);
  found.rules.push(...own.rules);
}

function checkMembers(found: Findings, schema: JsonObject, at: Standing): void {
  const { path } = at;
  const type = stringAt(schema, 'type');
  if (type !== '' && !TYPES.some((one) => one === type)) {
    found.push(notSupportedText(`${path}.type`, type, TYPES));
  }
  const forbid = (member: string, text: string): void => {
    found.push(forbiddenField(`${path}.${member}`, text));
  };
  const byDefault = schema['default'];
  if (byDefault !== undefined && byDefault !== null && at.defaultsForbidden !== '') {
    forbid('default', `must not be set ${at.defaultsForbidden}`);
  }
  if (stringAt(schema, 'id') !== '') forbid('id', 'id is not supported');
  for (const member of ['additionalItems', 'patternProperties', 'definitions', 'dependencies']) {
    const value = schema[member];
    const isEmpty = isObject(value) && Object.keys(value).length === 0;
    const isCounted = member === 'patternProperties' || member === 'definitions';
    if (value === undefined || value === null || (isEmpty && isCounted)) continue;
    forbid(member, `${member} is not supported`);
  }
  if (schema['$ref'] !== undefined) forbid('$ref', '$ref is not supported');
  if (type === 'null') {
    forbid('type', 'type cannot be set to null, use nullable as an alternative');
  }
  if (listAt(schema, 'items').length > 0) {
    forbid('items', 'items must be a schema object and not an array');
  }
  if (at.isInMeta && schema['x-kubernetes-embedded-resource'] === true) {
    forbid('x-kubernetes-embedded-resource', 'must not be used inside of resource meta');
  }
  if (schema['uniqueItems'] === true) {
    const text = 'uniqueItems cannot be set to true since the runtime complexity becomes quadratic';
    forbid('uniqueItems', text);
  }
}

function* additionalSteps(
  found: SchemaFindings,
  schema: JsonObject,
  at: Standing,
): Generator<void, void> {
  const more = schema['additionalProperties'];
  if (more === undefined || more === null) return;
  const path = `${at.path}.additionalProperties`;
  if (schemaMap(schema, 'properties').length > 0 && more !== true) {
    const text = 'additionalProperties and properties are mutual exclusive';
    found.schema.push(forbiddenField(path, text));
  }
  if (!isObject(more)) return;
  const reason = 'inside additionalProperties applying to object metadata';
  const defaultsForbidden = at.isInMeta ? reason : at.defaultsForbidden;
  const rules = at.rules?.additional(more) ?? null;
  yield* schemaSteps(found, more, { ...at, path, isRoot: false, defaultsForbidden, rules });
}

function* propertySteps(
  found: SchemaFindings,
  schema: JsonObject,
  at: Standing,
): Generator<void, void> {
  const isResource = at.isRoot || schema['x-kubernetes-embedded-resource'] === true;
  const mapType = stringAt(schema, 'x-kubernetes-map-type');
  const isKnown = MAP_TYPES.has(mapType);
  const uncorrelatable = at.uncorrelatable === '' && !isKnown ? at.path : at.uncorrelatable;
  for (const [name, property] of schemaMap(schema, 'properties')) {
    const isMeta = isResource && META.has(name);
    yield;
    yield* schemaSteps(found, property, {
      path: `${at.path}.properties[${name}]`,
      isRoot: false,
      isInMeta: at.isInMeta || isMeta,
      defaultsForbidden: isMeta && at.isRoot ? `in top-level ${name}` : at.defaultsForbidden,
      uncorrelatable,
      rules: at.rules?.property(name, property) ?? null,
    });
  }
}

function* junctorSteps(
  found: SchemaFindings,
  schema: JsonObject,
  at: Standing,
): Generator<void, void> {
  const inner = { ...at, isRoot: false, rules: null };
  const not = objectAt(schema, 'not');
  if (not !== undefined) yield* schemaSteps(found, not, { ...inner, path: `${at.path}.not` });
  for (const junctor of ['allOf', 'oneOf', 'anyOf']) {
    for (const [i, one] of listAt(schema, junctor).entries()) {
      if (!isObject(one)) continue;
      yield* schemaSteps(found, one, { ...inner, path: `${at.path}.${junctor}[${i}]` });
    }
  }
  for (const member of ['definitions', 'dependencies']) {
    for (const [name, one] of schemaMap(schema, member)) {
      yield* schemaSteps(found, one, { ...inner, path: `${at.path}.${member}[${name}]` });
    }
  }
}

function* itemSteps(
  found: SchemaFindings,
  schema: JsonObject,
  at: Standing,
): Generator<void, void> {
  const { items } = schema;
  const listType = stringAt(schema, 'x-kubernetes-list-type');
  const here = listType === 'map' ? '' : at.path;
  const uncorrelatable = at.uncorrelatable === '' ? here : at.uncorrelatable;
  const path = `${at.path}.items`;
  const inner = { ...at, isRoot: false, uncorrelatable };
  if (isObject(items)) {
    yield* schemaSteps(found, items, { ...inner, path, rules: at.rules?.items(items) ?? null });
  }
  for (const [i, one] of listAt(schema, 'items').entries()) {
    if (isObject(one))
      yield* schemaSteps(found, one, { ...inner, path: `${path}[${i}]`, rules: null });
  }
}

function wrongType(found: Findings, schema: JsonObject, path: string, detail: string): void {
  const type = stringAt(schema, 'type');
  const at = `${path}.type`;
  found.push(type === '' ? required(at, detail) : invalidValue(at, type, detail));
}

function checkMapType(found: Findings, schema: JsonObject, path: string): void {
  const mapType = schema['x-kubernetes-map-type'];
  if (typeof mapType !== 'string') return;
  if (schema['type'] !== 'object') {
    wrongType(found, schema, path, 'must be object if x-kubernetes-map-type is specified');
  }
  const known = ['atomic', 'granular'];
  if (known.includes(mapType)) return;
  found.push(notSupported(`${path}.x-kubernetes-map-type`, mapType, known));
}

function checkListType(found: Findings, schema: JsonObject, path: string): void {
  const listType = schema['x-kubernetes-list-type'];
  const at = `${path}.x-kubernetes-list-type`;
  if (typeof listType === 'string') {
    const known = ['atomic', 'set', 'map'];
    if (schema['type'] !== 'array') {
      wrongType(found, schema, path, 'must be array if x-kubernetes-list-type is specified');
    } else if (listType === 'set') checkSetItems(found, objectAt(schema, 'items'), path);
    if (!known.includes(listType)) found.push(notSupported(at, listType, known));
  }
  if (listAt(schema, 'x-kubernetes-list-map-keys').length === 0 || listType === 'map') return;
  const text = 'must be map if x-kubernetes-list-map-keys is non-empty';
  found.push(typeof listType === 'string' ? invalidValue(at, listType, text) : required(at, text));
}

/** Items of a set are told apart as wholes. */
function checkSetItems(found: Findings, items: JsonObject | undefined, path: string): void {
  if (items === undefined) return;
  const type = stringAt(items, 'type');
  if (type !== 'array' && type !== 'object') return;
  const listType = items['x-kubernetes-list-type'];
  const own = type === 'array' ? (listType ?? 'atomic') : items['x-kubernetes-map-type'];
  if (own === 'atomic') return;
  const member = type === 'array' ? 'x-kubernetes-list-type' : 'x-kubernetes-map-type';
  const text = 'must be atomic as item of a list with x-kubernetes-list-type=set';
  found.push(invalidValue(`${path}.items.${member}`, listType ?? null, text));
}

function checkKeyedItems(found: Findings, schema: JsonObject, path: string): void {
  const listType = schema['x-kubernetes-list-type'];
  const items = objectAt(schema, 'items');
  const keys = listAt(schema, 'x-kubernetes-list-map-keys').map((key) => stringAt(key));
  if (listType === 'map') checkKeyDeclarations(found, schema, items, keys, path);
  if (items === undefined || (listType !== 'map' && listType !== 'set')) return;
  if (items['nullable'] === true) {
    const text = `cannot be nullable when x-kubernetes-list-type is ${listType}`;
    found.push(forbiddenField(`${path}.items.nullable`, text));
  }
  if (listType === 'set') return;
  const needed = listAt(items, 'required');
  for (const key of keys) {
    const property = objectAt(items, 'properties', key);
    if (property === undefined) continue;
    const at = `${path}.items.properties[${key}]`;
    if (!needed.includes(key) && (property['default'] ?? null) === null) {
      const text =
        'this property is in x-kubernetes-list-map-keys, ' +
        'so it must have a default or be a required property';
      found.push(required(`${at}.default`, text));
    }
    if (property['nullable'] === true) {
      const text = 'this property is in x-kubernetes-list-map-keys, so it cannot be nullable';
      found.push(forbiddenField(`${at}.nullable`, text));
    }
  }
}

function checkKeyDeclarations(
  found: Findings,
  schema: JsonObject,
  items: JsonObject | undefined,
  keys: readonly string[],
  path: string,
): void {
  const keysAt = `${path}.x-kubernetes-list-map-keys`;
  if (keys.length === 0) {
    found.push(required(keysAt, 'must not be empty if x-kubernetes-list-type is map'));
  }
  if (items === undefined) {
    if ((schema['items'] ?? null) === null) {
      const text = 'must have a schema if x-kubernetes-list-type is map';
      found.push(required(`${path}.items`, text));
    } else {
      const text = 'must only have a single schema if x-kubernetes-list-type is map';
      const shown = printed(internalItems(schema['items']));
      found.push(invalidValue(`${path}.items`, shown, text));
    }
    return;
  }
  const type = stringAt(items, 'type');
  if (type !== 'object') {
    const text = "must be object if parent array's x-kubernetes-list-type is map";
    found.push(invalidValue(`${path}.items.type`, type, text));
    return;
  }
  const seen = new Set<string>();
  const listed: JsonValue = [...keys];
  for (const key of keys) {
    const property = objectAt(items, 'properties', key);
    const own = stringAt(property, 'type');
    if (property === undefined) {
      found.push(invalidValue(keysAt, listed, 'entries must all be names of item properties'));
    } else if (own === 'array' || own === 'object') {
      const text = "must be a scalar type if parent array's x-kubernetes-list-type is map";
      found.push(invalidValue(`${path}.items.properties[${key}].type`, type, text));
    }
    if (seen.has(key)) {
      found.push(invalidValue(keysAt, listed, 'must not contain duplicate entries'));
    }
    seen.add(key);
  }
}
