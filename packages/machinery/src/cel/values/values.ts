/**
 * What CEL expressions compute with. A JavaScript bigint is an int, a number is a double; lists,
 * maps and objects are interfaces, so that JSON is read in place and only where it is asked for.
 * Failures are values too: they travel through the evaluation, and `||` may outvote them.
 */

export class CelError {
  readonly message: string;
  constructor(message: string) {
    this.message = message;
  }
}

export class Uint {
  readonly value: bigint;
  constructor(value: bigint) {
    this.value = value;
  }
}

/** A point in time: nanoseconds since 1970. */
export class Timestamp {
  readonly nanos: bigint;
  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
}

export class Duration {
  readonly nanos: bigint;
  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
}

export class TypeValue {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/** `optional.of(x)`, or nothing. */
export class Optional {
  readonly value: CelValue | undefined;
  constructor(value: CelValue | undefined) {
    this.value = value;
  }
}

/** Values of libraries that only their own functions look into. */
export abstract class Opaque {
  abstract readonly typeName: string;
  abstract equals(other: Opaque): boolean;
  /** What `size` would be for the cost of a call; undefined where there is none. */
  get costSize(): number | undefined {
    return undefined;
  }
}

export abstract class CelList {
  abstract readonly length: number;
  /** The item at an index within bounds. */
  abstract at(index: number): CelValue;
  /** `set` lists are equal in any order. */
  readonly listType: '' | 'set' | 'map' = '';
  readonly mapKeys: readonly string[] = [];
}

export abstract class CelMap {
  abstract readonly size: number;
  abstract get(key: CelValue): CelValue | undefined;
  abstract keys(): readonly CelValue[];
  /** What `in` says; a map may have a value for keys that are not in it. */
  has(key: CelValue): boolean {
    return this.get(key) !== undefined;
  }
}

/** A value with declared fields. */
export abstract class CelObject {
  abstract readonly typeName: string;
  /** Undefined where the field is not set. */
  abstract field(name: string): CelValue | undefined;
  abstract fieldNames(): readonly string[];
  /** What a field that is not set counts as; undefined: an error. */
  zero?(name: string): CelValue | undefined;
  /** Equality of objects that know more of themselves than their fields; undefined: by those. */
  equalsObject?(other: CelObject): boolean | CelError | undefined;
}

export type CelValue =
  | null
  | boolean
  | bigint
  | number
  | string
  | Uint8Array
  | Uint
  | Timestamp
  | Duration
  | TypeValue
  | Optional
  | Opaque
  | CelList
  | CelMap
  | CelObject
  | CelError;

export class ArrayList extends CelList {
  readonly items: CelValue[];
  constructor(items: CelValue[]) {
    super();
    this.items = items;
  }
  get length(): number {
    return this.items.length;
  }
  at(index: number): CelValue {
    return this.items[index] ?? null;
  }
}

/** A map that an expression made. */
export class EntryMap extends CelMap {
  readonly #entries = new Map<string, { key: CelValue; value: CelValue }>();
  get size(): number {
    return this.#entries.size;
  }
  get(key: CelValue): CelValue | undefined {
    const text = keyText(key);
    return text === undefined ? undefined : this.#entries.get(text)?.value;
  }
  /** False where the key is of no type that keys may have. */
  set(key: CelValue, value: CelValue): boolean {
    const text = keyText(key);
    if (text === undefined) return false;
    this.#entries.set(text, { key, value });
    return true;
  }
  keys(): readonly CelValue[] {
    return Array.from(this.#entries.values(), (entry) => entry.key);
  }
}

/** Numbers of all kinds that are equal are one key. */
function keyText(key: CelValue): string | undefined {
  if (typeof key === 'string') return `s${key}`;
  if (typeof key === 'boolean') return `b${key}`;
  if (typeof key === 'bigint') return `n${key}`;
  if (key instanceof Uint) return `n${key.value}`;
  if (typeof key === 'number') return Number.isInteger(key) ? `n${BigInt(key)}` : `d${key}`;
  return undefined;
}

/** The name of a value's type, as `type(x)` gives it. */
export function typeNameOf(value: CelValue): string {
  if (value === null) return 'null_type';
  const kind: string = typeof value;
  switch (kind) {
    case 'boolean':
      return 'bool';
    case 'bigint':
      return 'int';
    case 'number':
      return 'double';
    case 'string':
      return 'string';
    default:
  }
  if (value instanceof Uint8Array) return 'bytes';
  if (value instanceof Uint) return 'uint';
  if (value instanceof Timestamp) return 'google.protobuf.Timestamp';
  if (value instanceof Duration) return 'google.protobuf.Duration';
  if (value instanceof TypeValue) return 'type';
  if (value instanceof Optional) return 'optional_type';
  if (value instanceof Opaque) return value.typeName;
  if (value instanceof CelList) return 'list';
  if (value instanceof CelMap) return 'map';
  if (value instanceof CelObject) return value.typeName;
  return 'error';
}

/** -1, 0, 1, or undefined where the two have no order (another type, or not a number). */
export function compare(left: CelValue, right: CelValue): -1 | 0 | 1 | undefined {
  if (isNumeric(left) && isNumeric(right)) return compareNumbers(raw(left), raw(right));
  if (typeof left === 'string' && typeof right === 'string') return compareTexts(left, right);
  if (typeof left === 'boolean' && typeof right === 'boolean') {
    return left === right ? 0 : left ? 1 : -1;
  }
  if (left instanceof Timestamp && right instanceof Timestamp) {
    return compareNumbers(left.nanos, right.nanos);
  }
  if (left instanceof Duration && right instanceof Duration) {
    return compareNumbers(left.nanos, right.nanos);
  }
  if (left instanceof Uint8Array && right instanceof Uint8Array) {
    return Buffer.compare(left, right);
  }
  return undefined;
}

export function isNumeric(value: CelValue): value is bigint | number | Uint {
  return typeof value === 'bigint' || typeof value === 'number' || value instanceof Uint;
}

function raw(value: bigint | number | Uint): bigint | number {
  return value instanceof Uint ? value.value : value;
}

/** An int beside a double is compared as the double that is next to it, as cel-go does. */
function compareNumbers(left: bigint | number, right: bigint | number): -1 | 0 | 1 | undefined {
  if (typeof left !== typeof right) return compareNumbers(Number(left), Number(right));
  if (left < right) return -1;
  if (left > right) return 1;
  return left === right ? 0 : undefined;
}

/** By code points, as bytes of UTF-8 compare. */
function compareTexts(left: string, right: string): -1 | 0 | 1 {
  if (left === right) return 0;
  const length = Math.min(left.length, right.length);
  for (let i = 0; i < length; i++) {
    const a = left.charCodeAt(i);
    const b = right.charCodeAt(i);
    if (a === b) continue;
    const isHigh = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdfff;
    if (isHigh(a) !== isHigh(b)) return isHigh(a) ? 1 : -1;
    return a < b ? -1 : 1;
  }
  return left.length < right.length ? -1 : 1;
}

/** Equality of CEL: numbers by value across their types, else only within one type. */
export function isEqual(left: CelValue, right: CelValue): boolean {
  return equality(left, right) === true;
}

/** Types of libraries compare with their own kind alone. */
const INCOMPARABLE: CelError = new CelError('no such overload');

/** The same; data within that is not of its declared type makes an error. */
export function equality(left: CelValue, right: CelValue): boolean | CelError {
  if (typeof left === 'string' || left === null || typeof left === 'boolean') {
    return left === right;
  }
  if (left instanceof CelError) return left;
  if (isNumeric(left)) return isNumeric(right) && compareNumbers(raw(left), raw(right)) === 0;
  if (left instanceof CelList) {
    return right instanceof CelList ? equalLists(left, right) : falseOr(right);
  }
  if (left instanceof CelMap)
    return right instanceof CelMap ? equalMaps(left, right) : falseOr(right);
  if (left instanceof CelObject) {
    return right instanceof CelObject ? equalObjects(left, right) : falseOr(right);
  }
  if (left instanceof TypeValue) return right instanceof TypeValue && left.name === right.name;
  if (left instanceof Optional) {
    if (!(right instanceof Optional)) return false;
    if (left.value === undefined || right.value === undefined) return left.value === right.value;
    return equality(left.value, right.value);
  }
  if (left instanceof Opaque) {
    if (right === null) return false;
    const isSame = right instanceof Opaque && left.typeName === right.typeName;
    return isSame ? left.equals(right) : INCOMPARABLE;
  }
  return compare(left, right) === 0;
}

function falseOr(value: CelValue): false | CelError {
  return value instanceof CelError ? value : false;
}

function equalLists(left: CelList, right: CelList): boolean | CelError {
  if (left.length !== right.length) return false;
  if (left.listType === 'set') return equalSets(left, right);
  if (left.listType === 'map') return equalKeyed(left, right);
  for (let i = 0; i < left.length; i++) {
    const verdict = equality(left.at(i), right.at(i));
    // upstream looks for what is not equal, which this is not
    if (verdict !== true && verdict !== INCOMPARABLE) return verdict;
  }
  return true;
}

/** Each item of one is in the other; both have no doubles by their declaration. */
function equalSets(left: CelList, right: CelList): boolean {
  const known = itemPlaces(left);
  for (let j = 0; j < right.length; j++) {
    if (!known.has(itemIdentity(left, right.at(j)))) return false;
  }
  return true;
}

/** In any order: each item is as the one of its key. */
function equalKeyed(left: CelList, right: CelList): boolean | CelError {
  const known = itemPlaces(left);
  for (let j = 0; j < right.length; j++) {
    const item = right.at(j);
    const place = known.get(itemIdentity(left, item));
    const verdict = place === undefined ? false : equality(left.at(place), item);
    if (verdict !== true) return verdict;
  }
  return true;
}

/** The last place of each item of a list of type set or map, by what tells it from others. */
export function itemPlaces(list: CelList): Map<string, number> {
  const places = new Map<string, number>();
  for (let i = 0; i < list.length; i++) places.set(itemIdentity(list, list.at(i)), i);
  return places;
}

/** What tells an item of a list of type set or map from the others. */
export function itemIdentity({ listType, mapKeys }: CelList, item: CelValue): string {
  if (listType !== 'map') return keyText(item) ?? '';
  let text = '';
  for (const key of mapKeys) {
    const value = item instanceof CelObject ? item.field(key) : undefined;
    const part = item instanceof CelMap ? item.get(key) : value;
    text += `${part === undefined ? '' : JSON.stringify(keyText(part) ?? '')},`;
  }
  return text;
}

function equalMaps(left: CelMap, right: CelMap): boolean | CelError {
  if (left.size !== right.size) return false;
  for (const key of left.keys()) {
    const mine = left.get(key);
    const other = right.get(key);
    if (mine === undefined || other === undefined) return false;
    const verdict = equality(mine, other);
    if (verdict !== true) return verdict;
  }
  return true;
}

function equalObjects(left: CelObject, right: CelObject): boolean | CelError {
  const own = left.equalsObject?.(right);
  if (own !== undefined) return own;
  const names = left.fieldNames();
  if (names.length !== right.fieldNames().length) return false;
  for (const name of names) {
    const mine = left.field(name);
    const other = right.field(name);
    if (mine === undefined || other === undefined) return false;
    const verdict = equality(mine, other);
    if (verdict !== true) return verdict;
  }
  return true;
}

/** Runes of a string; what `size` says of it. */
export function runeCount(text: string): number {
  let count = text.length;
  for (let i = 0; i < text.length - 1; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0xd800 || unit > 0xdbff) continue;
    const next = text.charCodeAt(i + 1);
    if (next >= 0xdc00 && next <= 0xdfff) {
      count--;
      i++;
    }
  }
  return count;
}

/** What `size` says of a value; 1 of all that have none, as costs count it. */
export function sizeOf(value: CelValue): number {
  if (typeof value === 'string') return runeCount(value);
  if (value instanceof CelList || value instanceof Uint8Array) return value.length;
  if (value instanceof CelMap) return value.size;
  if (value instanceof CelObject) return value.fieldNames().length;
  if (value instanceof Optional) return value.value === undefined ? 1 : sizeOf(value.value);
  if (value instanceof Opaque) return value.costSize ?? 1;
  return 1;
}
