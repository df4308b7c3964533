/** JSON of the zero values of Go, by scalar. */

import type { JsonValue } from '../json/json-value.ts';

/** Scalars that are structs in Go: an encoder writes them even when told to omit what is empty. */
const STRUCTS: ReadonlyMap<Scalar, JsonValue> = new Map<Scalar, JsonValue>([
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

const PLAIN: ReadonlyMap<Scalar, JsonValue> = new Map<Scalar, JsonValue>([
  ['string', ''],
  ['int32', 0],
  ['int64', 0],
  ['double', 0],
  ['bool', false],
  ['bytes', null],
]);

/** Undefined for scalars that are no structs in Go. */
export function zeroOfStruct(scalar: Scalar): JsonValue | undefined {
  return STRUCTS.get(scalar);
}

export function zeroOf(scalar: Scalar): JsonValue {
  return STRUCTS.get(scalar) ?? PLAIN.get(scalar) ?? null;
}

/**
 * Values that have no fields of their own. `intOrString` and the `schemaOr...` ones are unions in
 * JSON.
 */
export type Scalar =
  | 'string'
  | 'int32'
  | 'int64'
  | 'bool'
  | 'bytes'
  | 'double'
  | 'time'
  | 'microTime'
  | 'duration'
  | 'fieldsV1'
  | 'quantity'
  | 'intOrString'
  | 'raw'
  | 'json'
  | 'schemaOrBool'
  | 'schemaOrArray'
  | 'schemaOrStringArray';
