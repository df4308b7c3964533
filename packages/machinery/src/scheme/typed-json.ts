/**
 * Fits parsed JSON to a type of the API, as Go's decoder does: fields that the type does not have
 * are dropped, zero values are left out or added as an encoder would (`normal-form.ts`), quantities
 * and times take their written form, and a value of a wrong type is refused with Go's words. /
 */

import { ownMember, putMember } from '@megaplane/base/members';
import { base64Fault } from '../json/base64.ts';
import {
  isNumber,
  isObject,
  type JsonObject,
  type JsonValue,
  setMember,
} from '../json/json-value.ts';
import { absentValue, isOmitted, zeroItem, zeroMember } from './normal-form.ts';
import { canonicalQuantity, parseQuantity, QUANTITY_FAILURES } from '../meta/quantity.ts';
import { quoted } from '../json/quoting.ts';
import { findType, type Field, type Shape, type Type } from './schema.ts';
import { canonicalMicroTime, canonicalTime, timeFailure } from '../meta/times.ts';
import { formatDuration, parseGoDuration } from '../meta/times.ts';
import { isListOrMap, isVoidOf, markMap, markEmptyCollections } from './empty-collections.ts';
import { isWrittenInteger, type NumberLiterals } from '../json/number-literals.ts';
import type { Scalar } from './zero-values.ts';

/**
 * Either the object in normal form, or why it is refused. `members` counts the members of all
 * objects that the type knows: fewer than there were, and some have been dropped.
 */
export type Fitted =
  | { readonly ok: true; readonly object: JsonObject; readonly members: number }
  | { readonly ok: false; readonly message: string };

/**
 * Fits `value` to `type`. With `isRoot` the members `kind` and `apiVersion` belong to it, and come
 * first. `numbers` tells how its unusual numbers were written, where that counts. With `hasVoids`
 * empty lists and maps stay, and mark the object (`voids.ts`). With `isSent` the members of `value`
 * are in the order in which a client wrote them.
 */
export function fitObject(
  type: Type,
  value: JsonValue,
  isRoot: boolean,
  numbers?: NumberLiterals,
  hasVoids = false,
  isSent = false,
): Fitted {
  const fitting = new Fitting(numbers, hasVoids, false);
  if (!isObject(value)) {
    const found = wordOf(value);
    const message = `json: cannot unmarshal ${found} into Go value of type ${type.goType}`;
    return { ok: false, message };
  }
  const object = fitting.object(type, value, isRoot);
  if (fitting.failure !== '') {
    if (!isSent) return { ok: false, message: fitting.failure };
    // which of several faults is told depends on what was written first
    const reading = new Fitting(numbers, hasVoids, true);
    reading.object(type, value, isRoot);
    return { ok: false, message: reading.failure };
  }
  if (fitting.voids > 0) markEmptyCollections(object);
  return { ok: true, object, members: fitting.members };
}

/** The type of the schemas in definitions. */
function schemaType(): Type {
  const type = findType('apiextensions.v1.JSONSchemaProps');
  if (type === undefined) throw new Error('the tables have no JSONSchemaProps');
  return type;
}

/** What Go calls a JSON value that it cannot use. */
function wordOf(value: JsonValue): string {
  if (Array.isArray(value)) return 'array';
  if (value === null) return 'null';
  return typeof value === 'boolean' ? 'bool' : isNumber(value) ? 'number' : typeof value;
}

class Fitting {
  members = 0;
  /** Empty lists and maps that stayed. */
  voids = 0;
  /** Names of the fields around the current value. */
  readonly #path: string[] = [];
  #struct = '';
  #typeError = '';
  /**
   * Errors of times, quantities and the like end the decoding, and outrank what was found before.
   */
  #fatalError = '';
  readonly #numbers: NumberLiterals | undefined;
  /** How the current value was written, if it is an unusual number. */
  #written: string | undefined;

  readonly #hasVoids: boolean;
  /** Members are read as they are written, not by the type. */
  readonly #isInOrder: boolean;

  constructor(numbers: NumberLiterals | undefined, hasVoids: boolean, isInOrder: boolean) {
    this.#hasVoids = hasVoids;
    this.#isInOrder = isInOrder;
    this.#numbers = numbers === undefined || numbers.size === 0 ? undefined : numbers;
  }

  get failure(): string {
    return this.#fatalError || this.#typeError;
  }

  object(type: Type, source: JsonObject, isRoot: boolean): JsonObject {
    const target: JsonObject = {};
    if (isRoot) this.#typeMeta(source, target);
    const outer = this.#struct;
    this.#struct = type.goName;
    const fields = this.#isInOrder ? fieldsAsWritten(type, source) : type.fields;
    for (const field of fields) {
      const value = ownMember(source, field.name);
      if (value === undefined || value === null) {
        if (value === null) this.members++;
        const absent = absentValue(field);
        if (absent !== undefined) putMember(target, field.name, absent);
        continue;
      }
      this.members++;
      this.#path.push(field.errorPath);
      if (this.#numbers !== undefined) this.#written = this.#numbers.get(source)?.get(field.name);
      const fitted = this.#value(field.shape, value, field.goType);
      this.#path.pop();
      if (isVoidOf(field, fitted)) this.#void(field, fitted, target);
      else if (!isOmitted(field, fitted)) putMember(target, field.name, fitted);
    }
    // what comes next belongs to whoever has this object, be it another item of a list
    this.#struct = outer;
    return target;
  }

  /** Storage does not tell what is empty from what is absent: but where voids stay it is gone. */
  #void(field: Field, value: JsonValue, target: JsonObject): void {
    if (this.#hasVoids) {
      this.voids++;
      putMember(target, field.name, value);
      if (isObject(value)) markMap(value);
    } else if (isListOrMap(field) && field.omission !== 'void') putMember(target, field.name, null);
  }

  #typeMeta(source: JsonObject, target: JsonObject): void {
    for (const name of ['kind', 'apiVersion']) {
      const value = source[name];
      if (value === undefined) continue;
      this.members++;
      if (typeof value === 'string') target[name] = value;
    }
  }

  #value(shape: Shape, value: JsonValue, goType: string): JsonValue {
    if (shape.kind === 'scalar') return this.#scalar(shape.scalar, value, goType);
    if (shape.kind === 'list') {
      if (!Array.isArray(value)) return this.#wrong(value, goType, []);
      const itemType = goType.slice(2);
      const texts = this.#numbers?.get(value);
      return value.map((item, index) => {
        this.#written = texts?.get(String(index));
        return item === null ? zeroItem(shape.items) : this.#value(shape.items, item, itemType);
      });
    }
    if (!isObject(value)) return this.#wrong(value, goType, {});
    if (shape.kind === 'object') return this.object(shape.type, value, false);
    const target: JsonObject = {};
    const valueType = goType.slice('map[string]'.length);
    for (const key of this.#isInOrder ? Object.keys(value) : sortedKeys(value)) {
      this.members++;
      const member = ownMember(value, key) ?? null;
      this.#written = this.#numbers?.get(value)?.get(key);
      const fitted =
        member === null ? zeroMember(shape.values) : this.#value(shape.values, member, valueType);
      setMember(target, key, fitted);
    }
    return target;
  }

  #scalar(scalar: Scalar, value: JsonValue, goType: string): JsonValue {
    switch (scalar) {
      case 'string':
        return typeof value === 'string' ? value : this.#wrong(value, goType, '');
      case 'bool':
        return typeof value === 'boolean' ? value : this.#wrong(value, goType, false);
      case 'int32':
      case 'int64':
        return this.#integer(value, goType, scalar === 'int32' ? 32 : 64);
      case 'double':
        return isNumber(value) ? Number(value) : this.#wrong(value, goType, 0);
      case 'bytes':
        return this.#bytes(value, goType);
      case 'quantity':
        return this.#quantity(value);
      case 'time':
      case 'microTime':
        return this.#time(value, scalar === 'microTime');
      case 'duration':
        return this.#duration(value);
      case 'intOrString':
        return typeof value === 'string' ? value : this.#integer(value, 'int32', 32);
      case 'fieldsV1':
      case 'raw':
      case 'json':
        this.members += countMembersIn(value);
        return value;
      case 'schemaOrBool':
        if (typeof value === 'boolean' || isObject(value)) return this.#schemas(value);
        return this.#fatal('boolean or JSON schema expected');
      case 'schemaOrArray':
        return this.#schemas(value);
      case 'schemaOrStringArray':
        return isObject(value) ? this.#schemas(value) : value;
    }
  }

  /**
   * One schema or several, where something else may stand, too. Upstream decodes them by
   * themselves: fields that nobody knows are not told of, and the first wrong type is the end.
   */
  #schemas(value: JsonValue): JsonValue {
    const members = this.members + countMembersIn(value);
    const typeError = this.#typeError;
    this.#typeError = '';
    const fitted = Array.isArray(value)
      ? value.map((one) => this.#schema(one))
      : this.#schema(value);
    if (this.#typeError !== '') this.#fatal(this.#typeError);
    this.#typeError = typeError;
    this.members = members;
    return fitted;
  }

  #schema(value: JsonValue): JsonValue {
    return isObject(value) ? this.object(schemaType(), value, false) : value;
  }

  #integer(value: JsonValue, goType: string, bits: 32 | 64): JsonValue {
    if (typeof value === 'bigint' && bits === 64) return value;
    if (!isNumber(value)) return this.#wrong(value, goType, 0);
    const written = this.#written;
    if (written !== undefined) {
      if (isWrittenInteger(written, bits)) return value;
      return this.#wrong(value, goType, 0, `number ${written}`);
    }
    const end = bits === 32 ? 2 ** 31 : 2 ** 63;
    if (Number.isInteger(value) && value < end && value >= -end) return value;
    return this.#wrong(value, goType, 0, `number ${value}`);
  }

  #bytes(value: JsonValue, goType: string): JsonValue {
    if (Array.isArray(value) && value.every(isByte)) {
      return Buffer.from(value.map((one) => one ?? 0)).toString('base64');
    }
    if (typeof value !== 'string') return this.#wrong(value, goType, '');
    const decoded = Buffer.from(value, 'base64').toString('base64');
    if (decoded === value) return value;
    const fault = base64Fault(value);
    if (fault < 0) return decoded;
    return this.#fatal(`illegal base64 data at input byte ${fault}`);
  }

  #quantity(value: JsonValue): JsonValue {
    const text = (
      typeof value === 'string' ? value : (this.#written ?? JSON.stringify(value))
    ).trim();
    const canonical = canonicalQuantity(text);
    if (canonical !== undefined) return canonical;
    const failure = parseQuantity(text);
    return this.#fatal(typeof failure === 'string' ? QUANTITY_FAILURES[failure] : '');
  }

  #time(value: JsonValue, isMicro: boolean): JsonValue {
    if (typeof value !== 'string') return this.#wrongFatal(value, 'string');
    const time = isMicro ? canonicalMicroTime(value) : canonicalTime(value);
    return time === undefined ? this.#fatal(timeFailure(value, isMicro)) : time;
  }

  #duration(value: JsonValue): JsonValue {
    if (typeof value !== 'string') return this.#wrongFatal(value, 'string');
    const nanos = parseGoDuration(value);
    if (nanos !== undefined) return formatDuration(nanos);
    return this.#fatal(`time: invalid duration ${quoted(value)}`);
  }

  #wrong(value: JsonValue, goType: string, zero: JsonValue, found = wordOf(value)): JsonValue {
    if (this.#typeError === '') this.#typeError = this.#mismatch(found, goType);
    return zero;
  }

  #wrongFatal(value: JsonValue, goType: string): JsonValue {
    return this.#fatal(this.#mismatch(wordOf(value), goType));
  }

  #mismatch(found: string, goType: string): string {
    const field = `${this.#struct}.${this.#path.join('.')}`;
    return `json: cannot unmarshal ${found} into Go struct field ${field} of type ${goType}`;
  }

  #fatal(message: string): JsonValue {
    if (this.#fatalError === '') this.#fatalError = message;
    return null;
  }
}

/** Go reads a list of numbers into bytes, one by one; null leaves one as it was. */
function isByte(value: JsonValue): value is number | null {
  if (value === null) return true;
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 255;
}

function fieldsAsWritten({ fields }: Type, source: JsonObject): readonly Field[] {
  const named = new Map(fields.map((field) => [field.name, field]));
  return Object.keys(source).flatMap((name) => named.get(name) ?? []);
}

/** Go writes maps by key, and so do we. */
function sortedKeys(map: JsonObject): string[] {
  const keys = Object.keys(map);
  return keys.length > 1 ? keys.sort() : keys;
}

/** Members of all objects within a value. */
export function countMembersIn(value: JsonValue | undefined): number {
  if (typeof value !== 'object' || value === null) return 0;
  let members = 0;
  if (Array.isArray(value)) {
    for (const item of value) members += countMembersIn(item);
    return members;
  }
  for (const name in value) members += 1 + countMembersIn(value[name]);
  return members;
}
