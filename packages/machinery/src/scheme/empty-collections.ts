/**
 * Lists and maps without members, of objects that clients send. Go's decoder tells them from absent
 * ones, so rules, defaults and admission see them; encoders leave out both where the field may be
 * omitted, and storage, which is protobuf, knows neither:
 *
 *     sent                 `finalizers: []`   `rules: []`
 *     decoded, judged      []                 []
 *     encoded (webhooks,   absent             []
 *     owners of fields)
 *     stored, read back    absent             null
 *
 * Few objects have any. Those are marked when they are decoded, and only they are looked through.
 */

import { putMember } from '@megaplane/base/members';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { isEmpty } from './normal-form.ts';
import { findType, findTypeOfKind, type Field, type Shape, type Type } from './schema.ts';
import type { Scalar } from './zero-values.ts';

/** On objects with empty lists or maps within; copies of them have it, too. */
const VOIDS = Symbol('voids');

interface Marked {
  [VOIDS]?: true;
}

/** Maps that were empty when they were decoded: `{}` of a struct is a value, `{}` of a map none. */
const maps = new WeakSet<JsonObject>();

/** Says that empty lists or maps are within the object. */
export function markEmptyCollections(object: JsonObject): void {
  (object as Marked)[VOIDS] = true;
}

export function keepsEmptyCollections(object: JsonObject): boolean {
  return (object as Marked)[VOIDS] === true;
}

/** Says that `map` is a map, and no struct. */
export function markMap(map: JsonObject): void {
  maps.add(map);
}

/** True for what counts as absent where values are compared: null, and empty lists and maps. */
export function isVoid(value: JsonValue | undefined): boolean {
  if (value === undefined || value === null) return true;
  if (Array.isArray(value)) return value.length === 0;
  return typeof value === 'object' && maps.has(value) && isEmpty(value);
}

/** True for a field of which an empty value is left out, or written as `null`. */
export function isListOrMap({ shape }: Field): boolean {
  return shape.kind === 'list' || shape.kind === 'map';
}

/** True for an empty value of such a field; of `items` of schemas a list may be one. */
export function isVoidOf(field: Field, value: JsonValue): boolean {
  if (isListOrMap(field)) return isEmpty(value);
  const { shape } = field;
  const mayBeList = shape.kind === 'scalar' && shape.scalar === 'schemaOrArray';
  return mayBeList && Array.isArray(value) && value.length === 0;
}

/** The object as an encoder writes it: itself where no empty list or map is within. */
export function wireForm(object: JsonObject): JsonObject {
  return keepsEmptyCollections(object) ? cleared(object, false) : object;
}

/** The object as it is stored: itself where no empty list or map is within. */
export function storageForm(object: JsonObject): JsonObject {
  return keepsEmptyCollections(object) ? cleared(object, true) : object;
}

function cleared(object: JsonObject, isStored: boolean): JsonObject {
  const { apiVersion, kind } = object;
  const type = findTypeOfKind(
    typeof apiVersion === 'string' ? apiVersion : '',
    typeof kind === 'string' ? kind : '',
  );
  return type === undefined ? object : clearedStruct(type, object, isStored);
}

function clearedStruct(type: Type, object: JsonObject, isStored: boolean): JsonObject {
  const target: JsonObject = {};
  for (const name of Object.keys(object)) {
    const value = object[name] ?? null;
    const field = type.field(name);
    if (field === undefined) putMember(target, name, value);
    else if (value === null ? !isListOrMap(field) : !isVoidOf(field, value)) {
      putMember(target, name, clearedValue(field.shape, value, isStored));
    } else if (isListOrMap(field) && field.omission !== 'void') {
      putMember(target, name, isStored ? null : value);
    }
  }
  return target;
}

function clearedValue(shape: Shape, value: JsonValue, isStored: boolean): JsonValue {
  if (shape.kind === 'object') {
    return isObject(value) ? clearedStruct(shape.type, value, isStored) : value;
  }
  if (shape.kind === 'scalar') return SCHEMAS.has(shape.scalar) ? schemas(value, isStored) : value;
  const inner = shape.kind === 'list' ? shape.items : shape.kind === 'map' ? shape.values : null;
  if (inner?.kind !== 'object') return value;
  if (Array.isArray(value)) return value.map((item) => clearedValue(inner, item, isStored));
  if (!isObject(value)) return value;
  const target: JsonObject = {};
  for (const name of Object.keys(value)) {
    putMember(target, name, clearedValue(inner, value[name] ?? null, isStored));
  }
  return target;
}

/** What is a schema or something else. */
const SCHEMAS: ReadonlySet<Scalar> = new Set<Scalar>([
  ...(['schemaOrBool', 'schemaOrArray', 'schemaOrStringArray'] as const),
]);

function schemas(value: JsonValue, isStored: boolean): JsonValue {
  if (Array.isArray(value)) return value.map((one) => schemas(one, isStored));
  const type = findType('apiextensions.v1.JSONSchemaProps');
  return isObject(value) && type !== undefined ? clearedStruct(type, value, isStored) : value;
}
