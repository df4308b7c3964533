/**
 * The form in which an object of a type is written: members in the order of upstream's structs,
 * zero values left out or written as Go's JSON encoder does. It is the same whether the object came
 * as JSON or as protobuf.
 */

import { putMember } from '@megaplane/base/members';
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import type { Field, Shape, Type } from './schema.ts';
import { zeroOf } from './zero-values.ts';

/** What stands for a field that is absent: undefined where nothing is written. */
export function absentValue(field: Field): JsonValue | undefined {
  return field.absentType === undefined ? field.absent : emptyObject(field.absentType);
}

/** The zero value of a list item. */
export function zeroItem(shape: Shape): JsonValue {
  if (shape.kind === 'object') return emptyObject(shape.type);
  return shape.kind === 'scalar' ? zeroOf(shape.scalar) : null;
}

/** The zero value in a map: as of an item, but bytes are empty there. */
export function zeroMember(shape: Shape): JsonValue {
  if (shape.kind === 'scalar' && shape.scalar === 'bytes') return '';
  return zeroItem(shape);
}

/** What a struct without any field set is written as; a new object each time. */
export function emptyObject(type: Type): JsonObject {
  const object: JsonObject = {};
  for (const field of type.fields) {
    const value = absentValue(field);
    if (value !== undefined) putMember(object, field.name, value);
  }
  return object;
}

/** True for a value that is present but that the encoder leaves out. */
export function isOmitted(field: Field, value: JsonValue): boolean {
  const omission = field.omission;
  if (omission === 'kept') return false;
  if (omission === 'zero') return value === '' || value === 0 || value === false || value === null;
  if (value === null) return true;
  return omission === 'void' && isEmpty(value);
}

/** A list or an object without members. */
export function isEmpty(value: JsonValue): boolean {
  if (Array.isArray(value)) return value.length === 0;
  for (const _ in value as JsonObject) return false;
  return true;
}
