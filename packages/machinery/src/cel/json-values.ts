/**
 * JSON as CEL values, by a declared type or by its own form, and back. Nothing is copied: a member
 * becomes a value when an expression asks for it.
 */
import type { JsonObject, JsonValue } from '../json-value.ts';
import { parseCelDuration, parseTimestamp } from './time-library.ts';
import { durationText, timestampText } from './time-library.ts';
import { DYN, type CelType } from './typing.ts';
import {
  CelError,
  CelList,
  CelMap,
  CelObject,
  Duration,
  Optional,
  Timestamp,
  Uint,
  type CelValue,
} from './values.ts';

class JsonList extends CelList {
  readonly json: readonly JsonValue[];
  readonly #items: CelType;
  override readonly listType: '' | 'set' | 'map';
  override readonly mapKeys: readonly string[];
  constructor(json: readonly JsonValue[], type: CelType) {
    super();
    this.json = json;
    this.#items = type.params[0] ?? DYN;
    this.listType = type.listType ?? '';
    this.mapKeys = type.mapKeys ?? [];
  }
  get length(): number {
    return this.json.length;
  }
  at(index: number): CelValue {
    return fromJson(this.json[index] ?? null, this.#items);
  }
}

class JsonMap extends CelMap {
  readonly json: JsonObject;
  readonly #values: CelType;
  #keys: readonly string[] | null = null;
  constructor(json: JsonObject, values: CelType) {
    super();
    this.json = json;
    this.#values = values;
  }
  get size(): number {
    return this.keys().length;
  }
  get(key: CelValue): CelValue | undefined {
    if (typeof key !== 'string' || !Object.hasOwn(this.json, key)) return undefined;
    const value = this.json[key];
    return value === undefined ? undefined : fromJson(value, this.#values);
  }
  keys(): readonly string[] {
    this.#keys ??= Object.keys(this.json).filter((key) => this.json[key] !== undefined);
    return this.#keys;
  }
}

class TypedObject extends CelObject {
  readonly json: JsonObject;
  readonly #type: CelType;
  constructor(json: JsonObject, type: CelType) {
    super();
    this.json = json;
    this.#type = type;
  }
  get typeName(): string {
    return this.#type.name;
  }
  field(name: string): CelValue | undefined {
    const field = this.#type.fields?.get(name);
    const member = field?.member ?? name;
    if (!Object.hasOwn(this.json, member)) return undefined;
    const value = this.json[member];
    return value === undefined || value === null ? undefined : fromJson(value, field?.type ?? DYN);
  }
  fieldNames(): readonly string[] {
    const names: string[] = [];
    for (const [name, { member }] of this.#type.fields ?? []) {
      const value = this.json[member];
      if (value !== undefined && value !== null) names.push(name);
    }
    return names;
  }
}

/** A member as a value of its declared type. JSON that is of another type becomes an error. */
export function fromJson(value: JsonValue, type: CelType = DYN): CelValue {
  if (value === null) return null;
  const kind: string = type.kind;
  switch (kind) {
    case 'int':
      return typeof value === 'number' && Number.isInteger(value)
        ? BigInt(value)
        : wrong(value, type);
    case 'double':
      return typeof value === 'number' ? value : wrong(value, type);
    case 'string':
      return typeof value === 'string' ? value : wrong(value, type);
    case 'bool':
      return typeof value === 'boolean' ? value : wrong(value, type);
    case 'bytes':
      return typeof value === 'string'
        ? new Uint8Array(Buffer.from(value, 'base64'))
        : wrong(value, type);
    case 'timestamp':
      return typeof value === 'string' ? timestampOf(value) : wrong(value, type);
    case 'duration':
      return typeof value === 'string' ? parseCelDuration(value) : wrong(value, type);
    case 'list':
      return Array.isArray(value) ? new JsonList(value, type) : wrong(value, type);
    case 'map':
      return isRecord(value) ? new JsonMap(value, type.params[1] ?? DYN) : wrong(value, type);
    case 'object':
      return isRecord(value) ? new TypedObject(value, type) : wrong(value, type);
    default:
      return untyped(value);
  }
}

/** `date` and `date-time` are both points in time. */
function timestampOf(text: string): CelValue {
  return parseTimestamp(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text);
}

function isRecord(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function wrong(value: JsonValue, type: CelType): CelValue {
  const found = Array.isArray(value) ? 'array' : typeof value;
  return new CelError(`invalid data, expected ${type.name} but got ${found}`);
}

function untyped(value: JsonValue): CelValue {
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : value;
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value;
  return Array.isArray(value) ? new JsonList(value, DYN) : new JsonMap(value, DYN);
}

/** The JSON of a value, for objects that expressions make; an error says what has none. */
export function toJson(value: CelValue): JsonValue | CelError {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value;
  if (typeof value === 'number') {
    return Number.isFinite(value) ? value : new CelError('a number without JSON form');
  }
  if (typeof value === 'bigint') return Number(value);
  if (value instanceof Uint) return Number(value.value);
  if (value instanceof JsonList) return [...value.json];
  if (value instanceof JsonMap || value instanceof TypedObject) return value.json;
  if (value instanceof CelList) return listJson(value);
  if (value instanceof CelMap) {
    return membersJson(value.keys().map((key) => [key, value.get(key) ?? null]));
  }
  if (value instanceof CelObject) {
    return membersJson(value.fieldNames().map((name) => [name, value.field(name) ?? null]));
  }
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (value instanceof Timestamp) return timestampText(value);
  if (value instanceof Duration) return durationText(value);
  if (value instanceof Optional && value.value !== undefined) return toJson(value.value);
  return value instanceof CelError ? value : new CelError('a value without JSON form');
}

function listJson(list: CelList): JsonValue | CelError {
  const items: JsonValue[] = [];
  for (let i = 0; i < list.length; i++) {
    const item = toJson(list.at(i));
    if (item instanceof CelError) return item;
    items.push(item);
  }
  return items;
}

function membersJson(members: readonly (readonly [CelValue, CelValue])[]): JsonValue | CelError {
  const object: JsonObject = {};
  for (const [key, value] of members) {
    if (typeof key !== 'string') return new CelError('JSON objects have strings as keys');
    const member = toJson(value);
    if (member instanceof CelError) return member;
    object[key] = member;
  }
  return object;
}
