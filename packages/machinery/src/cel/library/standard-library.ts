/** Operators, conversions and the functions that every CEL has, but for those of time. */
import type { Library } from '../values/functions.ts';
import { LIST_LENGTH_MAX, TOO_LONG_LIST } from '../values/made-values.ts';
import { matchesPattern } from './regex-library.ts';
import {
  durationText,
  parseCelDuration,
  parseTimestamp,
  timestampText,
} from '../values/time-library.ts';
import {
  ArrayList,
  CelError,
  CelList,
  CelMap,
  compare,
  Duration,
  equality,
  isEqual,
  itemIdentity,
  itemPlaces,
  isNumeric,
  Optional,
  sizeOf,
  Timestamp,
  TypeValue,
  typeNameOf,
  Uint,
  type CelValue,
} from '../values/values.ts';
import { doubleText } from '../../gotext/go-floats.ts';

const INT_MIN = -(2n ** 63n);
const INT_MAX = 2n ** 63n - 1n;
const UINT_MAX = 2n ** 64n - 1n;

/** The int, or that it is none. */
export function toInt(value: bigint): CelValue {
  return value >= INT_MIN && value <= INT_MAX ? value : new CelError('integer overflow');
}

export function toUint(value: bigint): CelValue {
  if (value < 0n || value > UINT_MAX) return new CelError('unsigned integer overflow');
  return new Uint(value);
}

function order(test: (sign: number) => boolean): (left: CelValue, right: CelValue) => CelValue {
  return (left, right) => {
    const sign = compare(left, right);
    return sign !== undefined && test(sign);
  };
}

const ORDERED = [
  ['int64', 'int', 'int'],
  ['int64_double', 'int', 'double'],
  ['int64_uint64', 'int', 'uint'],
  ['uint64', 'uint', 'uint'],
  ['uint64_double', 'uint', 'double'],
  ['uint64_int64', 'uint', 'int'],
  ['double', 'double', 'double'],
  ['double_int64', 'double', 'int'],
  ['double_uint64', 'double', 'uint'],
  ['string', 'string', 'string'],
  ['bytes', 'bytes', 'bytes'],
  ['bool', 'bool', 'bool'],
  ['timestamp', 'timestamp', 'timestamp'],
  ['duration', 'duration', 'duration'],
] as const;

function comparisons(): Library {
  const library: Record<string, (left: CelValue, right: CelValue) => CelValue> = {};
  for (const [suffix, left, right] of ORDERED) {
    const types = `(${left}, ${right}): bool`;
    library[`less_${suffix}: _<_${types}`] = order((sign) => sign < 0);
    library[`less_equals_${suffix}: _<=_${types}`] = order((sign) => sign <= 0);
    library[`greater_${suffix}: _>_${types}`] = order((sign) => sign > 0);
    library[`greater_equals_${suffix}: _>=_${types}`] = order((sign) => sign >= 0);
  }
  return library;
}

/** Two lists as one; nothing is copied. */
class JoinedList extends CelList {
  readonly #left: CelList;
  readonly #right: CelList;
  /** Not asked for part by part: a list that is joined with itself has each part many times. */
  readonly length: number;
  constructor(left: CelList, right: CelList) {
    super();
    this.#left = left;
    this.#right = right;
    this.length = left.length + right.length;
  }
  at(index: number): CelValue {
    const own = this.#left.length;
    return index < own ? this.#left.at(index) : this.#right.at(index - own);
  }
}

/** Deeper chains of `+` are copied into one list, so that reading one stays cheap. */
const JOIN_FREE_MAX = 64;

function addLists(left: CelList, right: CelList): CelValue {
  if (left.listType === 'set' || left.listType === 'map') return merged(left, right);
  const length = left.length + right.length;
  if (length > LIST_LENGTH_MAX) return TOO_LONG_LIST;
  if (length > JOIN_FREE_MAX) return new JoinedList(left, right);
  const items: CelValue[] = [];
  for (let i = 0; i < left.length; i++) items.push(left.at(i));
  for (let i = 0; i < right.length; i++) items.push(right.at(i));
  return new ArrayList(items);
}

function merged(left: CelList, right: CelList): CelValue {
  const items: CelValue[] = [];
  const places = itemPlaces(left);
  for (let i = 0; i < left.length; i++) items.push(left.at(i));
  for (let j = 0; j < right.length; j++) {
    const item = right.at(j);
    const identity = itemIdentity(left, item);
    const place = places.get(identity) ?? items.length;
    places.set(identity, place);
    items[place] = item;
  }
  return new ArrayList(items);
}

function divide(left: bigint, right: bigint): CelValue {
  return right === 0n ? new CelError('division by zero') : toInt(left / right);
}

function modulo(left: bigint, right: bigint): CelValue {
  return right === 0n ? new CelError('modulus by zero') : left % right;
}

const TIME_MIN = -62_135_596_800n * 1_000_000_000n;
const TIME_MAX = 253_402_300_799n * 1_000_000_000n + 999_999_999n;

function toTimestamp(nanos: bigint): CelValue {
  if (nanos < TIME_MIN || nanos > TIME_MAX) return new CelError('timestamp overflow');
  return new Timestamp(nanos);
}

function toDuration(nanos: bigint): CelValue {
  if (nanos < INT_MIN || nanos > INT_MAX) return new CelError('duration overflow');
  return new Duration(nanos);
}

const ARITHMETIC: Library = {
  'add_int64: _+_(int, int): int': (a: bigint, b: bigint) => toInt(a + b),
  'add_uint64: _+_(uint, uint): uint': (a: Uint, b: Uint) => toUint(a.value + b.value),
  'add_double: _+_(double, double): double': (a: number, b: number) => a + b,
  'add_string: _+_(string, string): string': (a: string, b: string) => a + b,
  'add_bytes: _+_(bytes, bytes): bytes': (a: Uint8Array, b: Uint8Array) =>
    new Uint8Array(Buffer.concat([a, b])),
  'add_list: _+_(list(A), list(A)): list(A)': addLists,
  'add_timestamp_duration: _+_(timestamp, duration): timestamp': (a: Timestamp, b: Duration) =>
    toTimestamp(a.nanos + b.nanos),
  'add_duration_timestamp: _+_(duration, timestamp): timestamp': (a: Duration, b: Timestamp) =>
    toTimestamp(a.nanos + b.nanos),
  'add_duration_duration: _+_(duration, duration): duration': (a: Duration, b: Duration) =>
    toDuration(a.nanos + b.nanos),
  'subtract_int64: _-_(int, int): int': (a: bigint, b: bigint) => toInt(a - b),
  'subtract_uint64: _-_(uint, uint): uint': (a: Uint, b: Uint) => toUint(a.value - b.value),
  'subtract_double: _-_(double, double): double': (a: number, b: number) => a - b,
  'subtract_timestamp_duration: _-_(timestamp, duration): timestamp': (a: Timestamp, b: Duration) =>
    toTimestamp(a.nanos - b.nanos),
  'subtract_timestamp_timestamp: _-_(timestamp, timestamp): duration': (
    a: Timestamp,
    b: Timestamp,
  ) => toDuration(a.nanos - b.nanos),
  'subtract_duration_duration: _-_(duration, duration): duration': (a: Duration, b: Duration) =>
    toDuration(a.nanos - b.nanos),
  'multiply_int64: _*_(int, int): int': (a: bigint, b: bigint) => toInt(a * b),
  'multiply_uint64: _*_(uint, uint): uint': (a: Uint, b: Uint) => toUint(a.value * b.value),
  'multiply_double: _*_(double, double): double': (a: number, b: number) => a * b,
  'divide_int64: _/_(int, int): int': divide,
  'divide_uint64: _/_(uint, uint): uint': (a: Uint, b: Uint) =>
    b.value === 0n ? new CelError('division by zero') : new Uint(a.value / b.value),
  'divide_double: _/_(double, double): double': (a: number, b: number) => a / b,
  'modulo_int64: _%_(int, int): int': modulo,
  'modulo_uint64: _%_(uint, uint): uint': (a: Uint, b: Uint) =>
    b.value === 0n ? new CelError('modulus by zero') : new Uint(a.value % b.value),
  'negate_int64: -_(int): int': (a: bigint) => toInt(-a),
  'negate_double: -_(double): double': (a: number) => -a,
};

function indexList(list: CelList, index: CelValue): CelValue {
  const at = wholeNumber(index);
  if (at === null) return new CelError(`unsupported index type '${typeNameOf(index)}' in list`);
  if (at < 0 || at >= list.length) {
    const text = typeof index === 'bigint' ? index : at;
    return new CelError(`index out of bounds: ${text}`);
  }
  return list.at(at);
}

function wholeNumber(value: CelValue): number | null {
  if (!isNumeric(value)) return null;
  const number = Number(value instanceof Uint ? value.value : value);
  return Number.isInteger(number) ? number : null;
}

function indexMap(map: CelMap, key: CelValue): CelValue {
  const value = map.get(key);
  if (value !== undefined) return value;
  const text = typeof key === 'string' ? key : convertToText(key);
  return new CelError(`no such key: ${typeof text === 'string' ? text : ''}`);
}

/** `a[?b]`: nothing where there is no such member. */
function indexOptional(target: CelValue, key: CelValue): CelValue {
  const inner = target instanceof Optional ? target.value : target;
  if (inner === undefined) return new Optional(undefined);
  if (inner instanceof CelList) {
    const at = wholeNumber(key);
    const isThere = at !== null && at >= 0 && at < inner.length;
    return new Optional(isThere ? inner.at(at) : undefined);
  }
  return inner instanceof CelMap ? new Optional(inner.get(key)) : new CelError('no such overload');
}

function isIn(item: CelValue, list: CelList): boolean {
  for (let i = 0; i < list.length; i++) if (isEqual(item, list.at(i))) return true;
  return false;
}

/** What cannot be compared is not equal. */
function unequal(left: CelValue, right: CelValue): boolean {
  return equality(left, right) !== true;
}

const OPERATORS: Library = {
  'equals: _==_(A, A): bool': equality,
  'not_equals: _!=_(A, A): bool': unequal,
  'logical_and: _&&_(bool, bool): bool': (a: boolean, b: boolean) => a && b,
  'logical_or: _||_(bool, bool): bool': (a: boolean, b: boolean) => a || b,
  'logical_not: !_(bool): bool': (a: boolean) => !a,
  'conditional: _?_:_(bool, A, A): A': (test: boolean, a: CelValue, b: CelValue) => (test ? a : b),
  'not_strictly_false: @not_strictly_false(bool): bool': (a: boolean) => a,
  'in_list: @in(A, list(A)): bool': isIn,
  'in_map: @in(A, map(A, B)): bool': (key: CelValue, map: CelMap) => map.has(key),
  'index_list: _[_](list(A), int): A': indexList,
  'index_list_runtime: _[_](list(A), dyn): A': indexList,
  'index_map: _[_](map(A, B), A): B': indexMap,
  'optional_list_index_int: _[_](optional(list(A)), int): optional(A)': indexOptional,
  'optional_map_index_value: _[_](optional(map(K, V)), K): optional(V)': indexOptional,
  'list_optindex_optional_int: _[?_](list(A), int): optional(A)': indexOptional,
  'map_optindex_optional_value: _[?_](map(K, V), K): optional(V)': indexOptional,
  'optional_list_optindex_int: _[?_](optional(list(A)), int): optional(A)': indexOptional,
  'optional_map_optindex_value: _[?_](optional(map(K, V)), K): optional(V)': indexOptional,
  'map_insert_entry: cel.@mapInsert(map(K, V), K, V): map(K, V)': (map: CelMap) => map,
  'map_insert_map: cel.@mapInsert(map(K, V), map(K, V)): map(K, V)': (map: CelMap) => map,
};

const size = (value: CelValue): CelValue => BigInt(sizeOf(value));

const TEXTS: Library = {
  'size_string: size(string): int': size,
  'size_bytes: size(bytes): int': size,
  'size_list: size(list(A)): int': size,
  'size_map: size(map(A, B)): int': size,
  'string_size: string . size(): int': size,
  'bytes_size: bytes . size(): int': size,
  'list_size: list(A) . size(): int': size,
  'map_size: map(A, B) . size(): int': size,
  'contains_string: string . contains(string): bool': (a: string, b: string) => a.includes(b),
  'starts_with_string: string . startsWith(string): bool': (a: string, b: string) =>
    a.startsWith(b),
  'ends_with_string: string . endsWith(string): bool': (a: string, b: string) => a.endsWith(b),
  'matches: matches(string, string): bool': matchesPattern,
  'matches_string: string . matches(string): bool': matchesPattern,
};

function doubleToInt(value: number): CelValue {
  const whole = Math.trunc(value);
  if (!(whole > -(2 ** 63) && whole < 2 ** 63)) return new CelError('integer overflow');
  return BigInt(whole);
}

function doubleToUint(value: number): CelValue {
  const whole = Math.trunc(value);
  if (!(value >= 0 && whole < 2 ** 64)) return new CelError('unsigned integer overflow');
  return new Uint(BigInt(whole));
}

const LOSSY = new TextDecoder('utf-8', { fatal: true });

function bytesToText(bytes: Uint8Array): CelValue {
  try {
    return LOSSY.decode(bytes);
  } catch {
    return new CelError('invalid UTF-8 in bytes, cannot convert to string');
  }
}

function convertToText(value: CelValue): CelValue {
  if (typeof value === 'string') return value;
  if (typeof value === 'bigint' || typeof value === 'boolean') return String(value);
  if (typeof value === 'number') return doubleText(value);
  if (value instanceof Uint) return String(value.value);
  if (value instanceof Uint8Array) return bytesToText(value);
  if (value instanceof Timestamp) return timestampText(value);
  if (value instanceof Duration) return durationText(value);
  return new CelError(`type conversion error from '${typeNameOf(value)}' to 'string'`);
}

function parseInteger(text: string): CelValue {
  const digits = /^[+-]?0*(\d{1,19})$/.exec(text)?.[1];
  if (digits !== undefined) {
    const value = text.startsWith('-') ? -BigInt(digits) : BigInt(digits);
    if (value >= INT_MIN && value <= INT_MAX) return value;
  }
  return new CelError(`type conversion error from 'string' to 'int'`);
}

function parseUnsigned(text: string): CelValue {
  const digits = /^0*(\d{1,20})$/.exec(text)?.[1];
  if (digits !== undefined && BigInt(digits) <= UINT_MAX) return new Uint(BigInt(digits));
  return new CelError(`type conversion error from 'string' to 'uint'`);
}

const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;
const HEXADECIMAL = /^([+-]?)0[xX]([0-9a-fA-F]*)\.?([0-9a-fA-F]*)[pP]([+-]?\d+)$/;

/**
 * What Go's `ParseFloat` reads: numbers to the base of ten or, with an exponent of two, of sixteen,
 * with underscores between digits. Undefined for other text, infinite beyond a double.
 */
function goFloat(text: string): number | undefined {
  const isSpaced = /^[+-]?(?:0[xX]_?)?(?:[0-9a-fA-F.pP+-]|(?<=[0-9a-fA-F])_(?=[0-9a-fA-F]))*$/;
  if (text.includes('_') && !isSpaced.test(text)) return undefined;
  const plain = text.replaceAll('_', '');
  if (DECIMAL.test(plain)) return Number(plain);
  const [, sign, whole = '', fraction = '', power] = HEXADECIMAL.exec(plain) ?? [];
  const digits = (whole + fraction).replace(/^0+/, '');
  if (power === undefined || whole + fraction === '' || digits.length > HEX_DIGITS_MAX) {
    return undefined;
  }
  const scale = Number(power) - 4 * fraction.length;
  const size = Number(BigInt(`0x${digits === '' ? '0' : digits}`)) * 2 ** scale;
  return sign === '-' ? -size : size;
}

/** Further ones do not change a double. */
const HEX_DIGITS_MAX = 200;

function parseDouble(text: string): CelValue {
  const value = goFloat(text);
  if (value !== undefined && Number.isFinite(value)) return value;
  const special = /^([+-]?)(?:inf|infinity)$/i.exec(text);
  if (special !== null) return special[1] === '-' ? -Infinity : Infinity;
  if (/^nan$/i.test(text)) return NaN;
  return new CelError(`type conversion error from 'string' to 'double'`);
}

function parseBool(text: string): CelValue {
  if (['true', 'True', 'TRUE', 't', 'T', '1'].includes(text)) return true;
  if (['false', 'False', 'FALSE', 'f', 'F', '0'].includes(text)) return false;
  return new CelError(`type conversion error from 'string' to 'bool'`);
}

const same = (value: CelValue): CelValue => value;

const CONVERSIONS: Library = {
  'int64_to_int64: int(int): int': same,
  'uint64_to_int64: int(uint): int': ({ value }: Uint) => toInt(value),
  'double_to_int64: int(double): int': doubleToInt,
  'string_to_int64: int(string): int': parseInteger,
  'timestamp_to_int64: int(timestamp): int': ({ nanos }: Timestamp) =>
    (nanos - (((nanos % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n)) / 1_000_000_000n,
  'duration_to_int64: int(duration): int': ({ nanos }: Duration) => nanos,
  'uint64_to_uint64: uint(uint): uint': same,
  'int64_to_uint64: uint(int): uint': toUint,
  'double_to_uint64: uint(double): uint': doubleToUint,
  'string_to_uint64: uint(string): uint': parseUnsigned,
  'double_to_double: double(double): double': same,
  'int64_to_double: double(int): double': Number,
  'uint64_to_double: double(uint): double': ({ value }: Uint) => Number(value),
  'string_to_double: double(string): double': parseDouble,
  'bool_to_bool: bool(bool): bool': same,
  'string_to_bool: bool(string): bool': parseBool,
  'bytes_to_bytes: bytes(bytes): bytes': same,
  'string_to_bytes: bytes(string): bytes': (text: string) => new Uint8Array(Buffer.from(text)),
  'string_to_string: string(string): string': same,
  'bool_to_string: string(bool): string': convertToText,
  'bytes_to_string: string(bytes): string': convertToText,
  'int64_to_string: string(int): string': convertToText,
  'uint64_to_string: string(uint): string': convertToText,
  'double_to_string: string(double): string': convertToText,
  'timestamp_to_string: string(timestamp): string': convertToText,
  'duration_to_string: string(duration): string': convertToText,
  'timestamp_to_timestamp: timestamp(timestamp): timestamp': same,
  'string_to_timestamp: timestamp(string): timestamp': parseTimestamp,
  'int64_to_timestamp: timestamp(int): timestamp': (seconds: bigint) =>
    toTimestamp(seconds * 1_000_000_000n),
  'duration_to_duration: duration(duration): duration': same,
  'string_to_duration: duration(string): duration': parseCelDuration,
  'int64_to_duration: duration(int): duration': () =>
    new CelError("type conversion error from 'int' to 'google.protobuf.Duration'"),
  'to_dyn: dyn(A): dyn': same,
  'type: type(A): type(A)': (value: CelValue) => new TypeValue(typeNameOf(value)),
};

export const STANDARD_LIBRARY: readonly Library[] = [
  OPERATORS,
  ARITHMETIC,
  comparisons(),
  TEXTS,
  CONVERSIONS,
];
