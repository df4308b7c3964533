/**
 * Why the result of a strategic merge patch is no object of its kind, in the words of upstream's
 * conversion from untyped maps. It walks the fields as the type declares them and tells the first
 * fault, in other words than the decoder of JSON has (`typed-json.ts`).
 */
import { isNumber, isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { ownMember, putMember } from '@megaplane/base/members';
import type { Field, Shape, Type } from '../scheme/schema.ts';
import { wholeNumber } from '../json/json-text.ts';
import { isGoInt, toInt64 } from '../json/go-integers.ts';

/** Scalars that decode themselves: what is wrong with them, their own decoders say. */
const PLAIN: readonly string[] = ['string', 'bool', 'int32', 'int64', 'double', 'bytes'];

/** They decode themselves from a text, without knowing where they stand. */
const TIMES: readonly string[] = ['time', 'microTime', 'duration'];

/** The first fault, or undefined where only a scalar with a decoder of its own can be at fault. */
export function unstructuredFault(type: Type, value: JsonValue): string | undefined {
  if (!isObject(value)) return `cannot restore struct from: ${kindOf(value)}`;
  for (const field of type.fields) {
    const member = ownMember(value, field.name);
    if (member === undefined || member === null) continue;
    const fault = faultOf(field.shape, member, goTypeOf(field));
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function goTypeOf({ goType }: Field): string {
  return goType.replace(/^\*/, '');
}

function faultOf(shape: Shape, value: JsonValue, goType: string): string | undefined {
  if (value === null) return undefined;
  switch (shape.kind) {
    case 'object':
      return unstructuredFault(shape.type, value);
    case 'list':
      if (!Array.isArray(value)) return `cannot restore slice from ${kindOf(value)}`;
      return firstFault(value, shape.items, goType.slice('[]'.length));
    case 'map':
      if (!isObject(value)) return `cannot restore map from ${kindOf(value)}`;
      return firstFault(Object.values(value), shape.values, goType.slice('map[string]'.length));
    case 'scalar':
      if (shape.scalar === 'intOrString') return eitherFault(value);
      if (TIMES.includes(shape.scalar)) return textFault(value);
      return PLAIN.includes(shape.scalar) ? scalarFault(shape.scalar, value, goType) : undefined;
  }
}

function firstFault(
  values: readonly (JsonValue | undefined)[],
  shape: Shape,
  goType: string,
): string | undefined {
  for (const value of values) {
    const fault = faultOf(shape, value ?? null, goType);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** Go knows a conversion from whole numbers to strings, which is refused in words of its own. */
function scalarFault(scalar: string, value: JsonValue, goType: string): string | undefined {
  const found = kindOf(value);
  if (scalar === 'bytes') {
    return found === 'string' ? undefined : `cannot restore slice from ${found}`;
  }
  if (scalar === 'string' && found === 'int64') return `cannot convert int64 to ${goType}`;
  if (scalar === 'double' && isNumber(value)) return undefined;
  if (scalar.startsWith('int') && isNumber(value)) {
    const isWhole = found === 'int64' || Number.isInteger(value);
    return isWhole ? undefined : `cannot convert float64 to ${goType}`;
  }
  const fits = scalar === found;
  return fits ? undefined : `unrecognized type: ${kindOfScalar(scalar)}`;
}

/** Numbers or strings decode themselves, from JSON and without knowing where they stand. */
function eitherFault(value: JsonValue): string | undefined {
  if (typeof value === 'string' || (typeof value === 'number' && (value | 0) === value))
    return undefined;
  const found = isNumber(value) ? `number ${value}` : jsonWordOf(value);
  return `json: cannot unmarshal ${found} into Go value of type int32`;
}

/** What is wrong with the text of a time, its decoder says. */
function textFault(value: JsonValue): string | undefined {
  if (typeof value === 'string') return undefined;
  return `json: cannot unmarshal ${jsonWordOf(value)} into Go value of type string`;
}

function jsonWordOf(value: JsonValue): string {
  if (Array.isArray(value)) return 'array';
  if (isNumber(value)) return 'number';
  return isObject(value) ? 'object' : 'bool';
}

function kindOfScalar(scalar: string): string {
  return scalar === 'double' ? 'float64' : scalar;
}

function kindOf(value: JsonValue): string {
  if (Array.isArray(value)) return 'slice';
  if (isObject(value)) return 'map';
  if (typeof value === 'bigint') return 'int64';
  if (typeof value === 'number') return isGoInt(value) ? 'int64' : 'float64';
  return typeof value === 'boolean' ? 'bool' : typeof value;
}

/** What that conversion says where the decoder of JSON would say `message`. */
export function unstructuredText(message: string): string {
  return message.startsWith('illegal base64') ? `error decoding from json: ${message}` : message;
}

/**
 * The value with its whole numbers as that conversion fits them into the integers of the type: it
 * keeps the lower bits, and of a double that no integer of 64 bits holds makes the least of them.
 */
export function withFittedIntegers(type: Type, object: JsonObject): JsonObject {
  const fitted: JsonObject = { ...object };
  for (const { name, shape } of type.fields) {
    const value = ownMember(object, name);
    if (value !== undefined) putMember(fitted, name, fittedValue(shape, value));
  }
  return fitted;
}

function fittedValue(shape: Shape, value: JsonValue): JsonValue {
  switch (shape.kind) {
    case 'object':
      return isObject(value) ? withFittedIntegers(shape.type, value) : value;
    case 'list':
      return Array.isArray(value) ? value.map((item) => fittedValue(shape.items, item)) : value;
    case 'map': {
      if (!isObject(value)) return value;
      const members = Object.entries(value);
      return Object.fromEntries(
        members.map(([name, one]) => [name, fittedValue(shape.values, one ?? null)]),
      );
    }
    case 'scalar': {
      const bits = shape.scalar === 'int32' ? 32 : shape.scalar === 'int64' ? 64 : 0;
      const isWhole = typeof value === 'bigint' || Number.isInteger(value);
      if (bits === 0 || !isWhole || !isNumber(value)) return value;
      return wholeNumber(BigInt.asIntN(bits, BigInt(toInt64(value))));
    }
  }
}
