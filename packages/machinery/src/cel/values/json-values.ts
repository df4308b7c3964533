/**
 * JSON as CEL values, by a declared type or by its own form, and back. Nothing is copied: a member
 * becomes a value when an expression asks for it.
 */
import { ownMember, putMember } from '@megaplane/base/members';
import { parseDurationFormat } from '../../structural/schema/duration-format.ts';
import { equals } from '../../json/json.ts';
import { isNumber, type JsonObject, type JsonValue } from '../../json/json-value.ts';
import { durationText, parseTimestamp, timestampText } from './time-library.ts';
import { listOf, ANY, DYN, keywordName, type CelType } from './typing.ts';
import {
  CelError,
  CelList,
  CelMap,
  CelObject,
  Duration,
  equality,
  Optional,
  Timestamp,
  Uint,
  type CelValue,
} from './values.ts';
import { wholeNumber } from '../../json/json-text.ts';
import { isGoInt } from '../../json/go-integers.ts';

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

/** From here on the keys of a map are remembered for an evaluation. */
const MANY_KEYS_MIN = 16;
/** `object.data` is another value each time an expression says it, of the same JSON. */
let keysInEvaluation: WeakMap<JsonObject, readonly string[]> | null = null;

/** An evaluation begins: the JSON may have changed since the one before. */
export function forgetKeys(): void {
  keysInEvaluation = null;
}

function keysOf(json: JsonObject): readonly string[] {
  const known = keysInEvaluation?.get(json);
  if (known !== undefined) return known;
  const keys = Object.keys(json).filter((key) => json[key] !== undefined);
  if (keys.length >= MANY_KEYS_MIN) (keysInEvaluation ??= new WeakMap()).set(json, keys);
  return keys;
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
    this.#keys ??= keysOf(this.json);
    return this.#keys;
  }
}

class TypedObject extends CelObject {
  readonly json: JsonObject;
  readonly #type: CelType;
  #byMember: ReadonlyMap<string, string> | null = null;
  constructor(json: JsonObject, type: CelType) {
    super();
    this.json = json;
    this.#type = type;
  }
  get typeName(): string {
    return this.#type.name;
  }
  field(name: string): CelValue | undefined {
    const { fields } = this.#type;
    const field = fields?.get(name) ?? fields?.get(keywordName(name));
    const member = field?.member ?? name;
    if (!Object.hasOwn(this.json, member)) return undefined;
    const value = this.json[member];
    return value === undefined || value === null ? undefined : fromJson(value, field?.type ?? DYN);
  }
  /** Members that the schema does not know (kept unknown fields) count, too: as they stand. */
  override equalsObject(other: CelObject): boolean | CelError | undefined {
    if (!(other instanceof TypedObject)) return undefined;
    const names = Object.keys(this.json);
    if (names.length !== Object.keys(other.json).length) return false;
    const known = (this.#byMember ??= new Map(
      Array.from(this.#type.fields ?? [], ([name, { member }]) => [member, name]),
    ));
    for (const member of names) {
      const verdict = this.#equalMember(other, member, known.get(member));
      if (verdict !== true) return verdict;
    }
    return true;
  }
  #equalMember(other: TypedObject, member: string, name: string | undefined): boolean | CelError {
    if (name === undefined) {
      const unknown = ownMember(other.json, member);
      return unknown === undefined || equals(ownMember(this.json, member), unknown);
    }
    const mine = this.field(name);
    const theirs = other.field(name);
    if (mine === undefined || theirs === undefined) return mine === theirs;
    return equality(mine, theirs);
  }
  fieldNames(): readonly string[] {
    const names: string[] = [];
    for (const [name, { member }] of this.#type.fields ?? []) {
      const value = ownMember(this.json, member);
      if (value !== undefined && value !== null) names.push(name);
    }
    return names;
  }
}

const NOT_NULLABLE = new CelError('invalid data, got null for schema with nullable=false');

/** A member as a value of its declared type. JSON that is of another type becomes an error. */
export function fromJson(value: JsonValue, type: CelType = DYN): CelValue {
  if (value === null) return type.isNullable === false ? NOT_NULLABLE : null;
  const kind: string = type.kind;
  switch (kind) {
    case 'int':
      return isNumber(value) && isGoInt(value) ? BigInt(value) : wrong(value, type);
    case 'double':
      return isNumber(value) ? Number(value) : wrong(value, type);
    case 'string':
      return typeof value === 'string' ? value : wrong(value, type);
    case 'bool':
      return typeof value === 'boolean' ? value : wrong(value, type);
    case 'bytes':
      return typeof value === 'string' ? bytesOf(value) : wrong(value, type);
    case 'timestamp':
      return typeof value === 'string' ? timestampOf(value) : wrong(value, type);
    case 'duration':
      return typeof value === 'string' ? durationOf(value) : wrong(value, type);
    case 'list':
      return Array.isArray(value) ? new JsonList(value, type) : wrong(value, type);
    case 'map':
      return isRecord(value) ? new JsonMap(value, type.params[1] ?? DYN) : wrong(value, type);
    case 'object':
      return isRecord(value) ? new TypedObject(value, type) : wrong(value, type);
    default:
  }
  if (type.isIntOrString === true) return intOrString(value);
  return type === ANY ? anyOf(value) : untyped(value);
}

/** As Go's encoding/json reads what it knows nothing of: every number is a double. */
function anyOf(value: JsonValue): CelValue {
  if (isNumber(value)) return Number(value);
  if (Array.isArray(value)) return new JsonList(value, listOf(ANY));
  return isRecord(value) ? new JsonMap(value, ANY) : untyped(value);
}

function intOrString(value: JsonValue): CelValue {
  if (typeof value === 'string') return value;
  if (isNumber(value) && isGoInt(value)) return BigInt(value);
  const what = 'expected XIntOrString value to be either a string or integer';
  return new CelError(`invalid data, ${what}`);
}

function bytesOf(text: string): CelValue {
  const digits = /^[A-Za-z0-9+/]*/.exec(text)?.[0].length ?? 0;
  const rest = text.slice(digits);
  const isWhole = text.length % 4 === 0 && (rest === '' || rest === '=' || rest === '==');
  if (isWhole) return new Uint8Array(Buffer.from(text, 'base64'));
  const place = rest === '' ? text.length - (text.length % 4) : digits;
  const why = `illegal base64 data at input byte ${place}`;
  return new CelError(`Invalid byte formatted string ${text}: ${why}`);
}

function durationOf(text: string): CelValue {
  const nanos = parseDurationFormat(text);
  if (nanos !== undefined) return new Duration(nanos);
  return new CelError(`Invalid duration ${text}: unable to parse ${text} as duration`);
}

/** `date` and `date-time` are both points in time. */
function timestampOf(text: string): CelValue {
  return parseTimestamp(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text);
}

function isRecord(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What upstream calls the types in errors about data that does not fit its schema. */
const SCHEMA_NAMES: Readonly<Record<string, string>> = {
  double: 'float',
  bytes: 'string',
  duration: 'string',
  timestamp: 'string',
};

function wrong(value: JsonValue, { kind }: CelType): CelValue {
  if (kind === 'list') {
    return new CelError('invalid data, expected an array for the provided schema with type=array');
  }
  if (kind === 'map' || kind === 'object') {
    return new CelError('invalid data, expected a map for the provided schema with type=object');
  }
  return new CelError(`invalid data, expected ${SCHEMA_NAMES[kind] ?? kind}, got ${goType(value)}`);
}

function goType(value: JsonValue): string {
  if (Array.isArray(value)) return '[]interface {}';
  if (isNumber(value)) return isGoInt(value) ? 'int64' : 'float64';
  if (typeof value === 'boolean') return 'bool';
  return typeof value === 'string' ? 'string' : 'map[string]interface {}';
}

function untyped(value: JsonValue): CelValue {
  if (isNumber(value)) return isGoInt(value) ? BigInt(value) : Number(value);
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value;
  return Array.isArray(value) ? new JsonList(value, DYN) : new JsonMap(value, DYN);
}

/** The JSON of a value, for objects that expressions make; an error says what has none. */
export function toJson(value: CelValue): JsonValue | CelError {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value;
  if (typeof value === 'number') {
    return Number.isFinite(value) ? value : new CelError('a number without JSON form');
  }
  if (typeof value === 'bigint') return wholeNumber(value);
  if (value instanceof Uint) return unsignedJson(value.value);
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

/** As Go's decoder reads what JSON says of it: beyond 63 bits it is a double. */
function unsignedJson(value: bigint): JsonValue {
  return BigInt.asIntN(64, value) === value ? wholeNumber(value) : Number(value);
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
    putMember(object, key, member);
  }
  return object;
}
