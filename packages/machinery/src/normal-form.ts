/**
 * The form in which an object of a type is written: members in the order of upstream's structs,
 * zero values left out or written as Go's JSON encoder does. It is the same whether the object came
 * as JSON or as protobuf. /
 */

import type { JsonObject, JsonValue } from './json-value.ts';
import type { Field, Scalar, Type } from './schema.ts';

/**
 * JSON of the zero value of scalars that are structs in Go, and so are written even if `omitempty`.
 */
const STRUCT_ZEROS: ReadonlyMap<Scalar, JsonValue> = new Map<Scalar, JsonValue>([
  ['time', null],
  ['microTime', null],
  ['duration', '0s'],
  ['quantity', '0'],
  ['intOrString', 0],
  ['raw', null],
  ['json', null],
  ['fieldsV1', null],
  ['schemaOrBool', false],
  ['schemaOrArray', null],
  ['schemaOrStringArray', null],
]);

const PLAIN_ZEROS: ReadonlyMap<Scalar, JsonValue> = new Map<Scalar, JsonValue>([
  ['string', ''],
  ['int32', 0],
  ['int64', 0],
  ['double', 0],
  ['bool', false],
  ['bytes', null],
]);

/** What stands for a field that is absent: undefined where nothing is written. */
export function absentValue(field: Field): JsonValue | undefined {
  if (field.omitted === 'zero') return undefined;
  if (field.isPointer) return field.omitted === 'never' ? null : undefined;
  const shape = field.shape;
  if (shape.kind === 'object') return emptyObject(shape.type);
  if (shape.kind === 'scalar') {
    const zero = STRUCT_ZEROS.get(shape.scalar);
    if (zero !== undefined) return zero;
    return field.omitted === 'never' ? PLAIN_ZEROS.get(shape.scalar) : undefined;
  }
  return field.omitted === 'never' ? null : undefined;
}

/** The zero value of a list item or map value. */
export function zeroValue(shape: Field['shape']): JsonValue {
  if (shape.kind === 'object') return emptyObject(shape.type);
  if (shape.kind !== 'scalar') return null;
  return STRUCT_ZEROS.get(shape.scalar) ?? PLAIN_ZEROS.get(shape.scalar) ?? null;
}

/** What a struct without any field set is written as; a new object each time. */
export function emptyObject(type: Type): JsonObject {
  const object: JsonObject = {};
  for (const field of type.fields) {
    const value = absentValue(field);
    if (value !== undefined) object[field.name] = value;
  }
  return object;
}

/** True for a value that is present but that the encoder leaves out. */
export function isOmitted(field: Field, value: JsonValue): boolean {
  if (field.isPointer || field.omitted === 'never') return false;
  if (value === null) return field.omitted === 'zero' || field.shape.kind !== 'scalar';
  const shape = field.shape;
  if (shape.kind === 'list') return (value as JsonValue[]).length === 0;
  if (shape.kind === 'map') return isEmpty(value as JsonObject);
  if (shape.kind === 'object') return field.omitted === 'zero' && isEmpty(value as JsonObject);
  if (STRUCT_ZEROS.has(shape.scalar)) return false;
  return value === '' || value === 0 || value === false;
}

function isEmpty(object: JsonObject): boolean {
  for (const _ in object) return false;
  return true;
}

/** Sets a member whose name the caller does not control: `__proto__` is a name like any other. */
export function setMember(object: JsonObject, name: string, value: JsonValue): void {
  if (name !== '__proto__') {
    object[name] = value;
    return;
  }
  Object.defineProperty(object, name, {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  });
}
