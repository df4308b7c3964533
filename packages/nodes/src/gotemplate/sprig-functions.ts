/**
 * The functions of the sprig library that users' stages have been seen to use: values, lists,
 * maps and numbers. A name that is not here is refused when a template is read, never ignored.
 */
import { parseNested } from '@megaplane/base/nested-json';
import { ownMember } from '@megaplane/base/members';
import { decimalFold } from './go-decimals.ts';
import { GoTime } from './go-time.ts';
import {
  formatted,
  GoFloat,
  GoInt64,
  isList,
  isMap,
  isTrue,
  jsonOf,
  memberOf,
  typeName,
  withFloats,
  type GoMap,
  type GoValue,
} from './go-values.ts';
import type { TemplateFunctions } from './template-run.ts';

/** Lists that functions make may have so many items. */
const ITEMS_MAX = 100_000;
const INT64_MIN: bigint = -(2n ** 63n);

/** Text as sprig's `strval` makes it. */
export function textOf(value: GoValue): string {
  return typeof value === 'string' ? value : formatted(value);
}

/** A number as sprig's `toInt64` makes it: 0 where there is none. */
export function intOf(value: GoValue): bigint {
  if (typeof value === 'bigint') return value;
  if (typeof value === 'boolean') return value ? 1n : 0n;
  if (value instanceof GoInt64) return value.value;
  if (value instanceof GoFloat) return truncated(value.value);
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : 0n;
  return typeof value === 'string' ? parsedInt(value.replace(/\.0+$/, '')) : 0n;
}

/** `strconv.ParseInt` with base 0: what begins with 0 is octal. */
function parsedInt(text: string): bigint {
  const [, sign, digits = ''] = /^([+-]?)(\w+)$/.exec(text) ?? [];
  const octal = /^0[0-7]+$/.test(digits) ? `0o${digits.slice(1)}` : digits;
  if (!/^(0|[1-9]\d*|0x[\da-f]+|0o[0-7]+|0b[01]+)$/i.test(octal)) return 0n;
  const number = sign === '-' ? -BigInt(octal) : BigInt(octal);
  return isInt64(number) ? number : 0n;
}

function isInt64(value: bigint): boolean {
  return BigInt.asIntN(64, value) === value;
}

/** What no int64 holds is the least of them, as on amd64. */
function truncated(value: number): bigint {
  const whole = Number.isFinite(value) ? BigInt(Math.trunc(value)) : INT64_MIN;
  return isInt64(whole) ? whole : INT64_MIN;
}

export function floatOf(value: GoValue): number {
  if (value instanceof GoFloat) return value.value;
  if (typeof value === 'number') return value;
  if (typeof value === 'bigint') return Number(value);
  if (value instanceof GoInt64) return Number(value.value);
  if (typeof value === 'boolean') return value ? 1 : 0;
  const isNumber =
    typeof value === 'string' && /^[+-]?(\d+(?:\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(value);
  return isNumber ? Number(value) : 0;
}

export function listOf(value: GoValue): readonly GoValue[] {
  if (isList(value)) return value;
  throw new Error(`cannot work on type ${typeName(value)}, a list is needed`);
}

function mapOf(value: GoValue): GoMap {
  if (isMap(value)) return value;
  // nil is a map, too, and an empty one
  if (value === undefined || value === null) return {};
  throw new Error(`wrong type for value; expected map[string]interface {}; got ${typeName(value)}`);
}

/** JSON as Go's package writes it: what HTML would take for markup is escaped. */
export function goJson(value: GoValue): string {
  return JSON.stringify(jsonOf(value)).replaceAll(
    /[<>&\u2028\u2029]/g,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Texts as sprig's `strslice` makes them: nil is left out, and what is no list is one text. */
export function textsOf(value: GoValue): string[] {
  const items = isList(value) ? value : [value];
  return items.filter((item) => item !== undefined && item !== null).map(textOf);
}

/** Equal as `reflect.DeepEqual` has it. */
function isDeepEqual(left: GoValue, right: GoValue): boolean {
  if (typeName(left) !== typeName(right)) return false;
  return JSON.stringify(jsonOf(left)) === JSON.stringify(jsonOf(right));
}

function pairs(args: readonly GoValue[]): GoMap {
  const entries: [string, GoValue][] = [];
  for (let i = 0; i < args.length; i += 2) {
    entries.push([textOf(args[i]), i + 1 < args.length ? args[i + 1] : '']);
  }
  return Object.fromEntries(entries);
}

function sequence(start: bigint, stop: bigint, step: bigint): GoValue[] {
  const items: GoValue[] = [];
  if (step === 0n) return items;
  for (let at = start; step > 0n ? at < stop : at > stop; at += step) {
    if (items.length >= ITEMS_MAX) throw new Error(`more than ${ITEMS_MAX} items`);
    items.push(at);
  }
  return items;
}

const VALUE_FUNCTIONS: TemplateFunctions = {
  default: (fallback, ...given) => (isTrue(given[0]) ? given[0] : fallback),
  empty: (value) => !isTrue(value),
  coalesce: (...values) => values.find(isTrue) ?? null,
  ternary: (yes, no, test) => (isTrue(test) ? yes : no),
  all: (...values) => values.every(isTrue),
  any: (...values) => values.some(isTrue),
  fail: (message) => {
    throw new Error(textOf(message));
  },
  kindOf: (value) => kindOf(value),
  kindIs: (kind, value) => kindOf(value) === kind,
  typeOf: (value) => typeName(value),
  typeIs: (type, value) => typeName(value) === type,
  deepEqual: isDeepEqual,
  toJson: (value) => goJson(value),
  toRawJson: (value) => JSON.stringify(jsonOf(value)),
  toPrettyJson: (value) => JSON.stringify(jsonOf(value), null, 2),
  fromJson: (text) => parsedJson(text, false),
  mustFromJson: (text) => parsedJson(text, true),
  toString: (value: GoValue) => textOf(value),
  toStrings: textsOf,
};

function finite(value: unknown): unknown {
  if (value === Infinity || value === -Infinity) throw new Error('a number is too large');
  if (typeof value === 'object' && value !== null) Object.values(value).forEach(finite);
  return value;
}

function parsedJson(text: GoValue, isStrict: boolean): GoValue {
  try {
    return withFloats(finite(parseNested(textOf(text))));
  } catch (error) {
    // nil is what `fromJson` makes of a text that is no JSON
    if (!isStrict) return null;
    throw error;
  }
}

function kindOf(value: GoValue): string {
  if (value === undefined || value === null) return 'invalid';
  if (isList(value)) return 'slice';
  if (isMap(value)) return 'map';
  if (value instanceof GoTime) return 'struct';
  return typeof value === 'number' ? 'string' : typeName(value);
}

const MAP_FUNCTIONS: TemplateFunctions = {
  dict: (...args) => pairs(args),
  get: (map, name) => memberOf(mapOf(map), textOf(name)) ?? '',
  hasKey: (map, name) => Object.hasOwn(mapOf(map), textOf(name)),
  keys: (...maps) => maps.flatMap((map) => Object.keys(mapOf(map))),
  values: (map) => Object.values(mapOf(map)),
  pluck: (name, ...maps) =>
    maps
      .map(mapOf)
      .filter((map) => Object.hasOwn(map, textOf(name)))
      .map((map) => ownMember(map, textOf(name))),
  pick: (map, ...names) => only(mapOf(map), (name) => names.includes(name)),
  omit: (map, ...names) => only(mapOf(map), (name) => !names.includes(name)),
  set: (map, name, value) => {
    put(mapOf(map), textOf(name), value);
    return map;
  },
  unset: (map, name) => {
    Reflect.deleteProperty(mapOf(map), textOf(name));
    return map;
  },
  merge: (...maps) => merged(maps, false),
  mergeOverwrite: (...maps) => merged(maps, true),
  dig: (...args) => dig(args),
};

function only(map: GoMap, isWanted: (name: string) => boolean): GoMap {
  return Object.fromEntries(Object.entries(map).filter(([name]) => isWanted(name)));
}

/** As mergo: the first map takes what the others have, and keeps what it has unless `isOver`. */
function merged([first, ...others]: readonly GoValue[], isOver: boolean): GoValue {
  const all = mapOf(first);
  for (const other of others) mergeInto(all, mapOf(other), isOver);
  return all;
}

/** Zero values give way, nil adds nothing, and maps within both are merged too. */
function mergeInto(all: GoMap, other: GoMap, isOver: boolean): void {
  for (const [name, value] of Object.entries(other)) {
    const own = memberOf(all, name);
    const isNone = value === null || value === undefined;
    if (isMap(value) && isMap(own)) mergeInto(own, value, isOver);
    else if (isOver || (!isNone && !isTrue(own))) put(all, name, value);
  }
}

/** As in Go the map itself is changed, whoever holds it. */
function put(map: GoMap, name: string, value: GoValue): void {
  const isPlain = { enumerable: true, configurable: true, writable: true };
  Object.defineProperty(map, name, { value, ...isPlain });
}

function dig(args: readonly GoValue[]): GoValue {
  if (args.length < 3) throw new Error('dig needs at least three arguments');
  let value: GoValue = args.at(-1);
  for (const name of args.slice(0, -2)) {
    if (!isMap(value)) throw new Error(`dig: ${typeName(value)} is no map`);
    if (!Object.hasOwn(value, textOf(name))) return args.at(-2);
    value = memberOf(value, textOf(name));
  }
  return value;
}

const LIST_FUNCTIONS: TemplateFunctions = {
  list: (...items) => items,
  tuple: (...items) => items,
  first: (list) => listOf(list)[0],
  last: (list) => listOf(list).at(-1),
  rest: (list) => listOf(list).slice(1),
  initial: (list) => listOf(list).slice(0, -1),
  append: (list, item) => [...listOf(list), item],
  push: (list, item) => [...listOf(list), item],
  prepend: (list, item) => [item, ...listOf(list)],
  concat: (...lists) => lists.flatMap((list) => [...listOf(list)]),
  reverse: (list) => listOf(list).toReversed(),
  uniq: (list) =>
    listOf(list).filter(
      (item, index, all) => all.findIndex((other) => isDeepEqual(item, other)) === index,
    ),
  without: (list, ...out) =>
    listOf(list).filter((item) => !out.some((one) => isDeepEqual(item, one))),
  has: (item, list) =>
    (list === null || list === undefined ? [] : listOf(list)).some((one) => isDeepEqual(one, item)),
  slice: cut,
  compact: (list) => listOf(list).filter(isTrue),
  sortAlpha: (list) => (isList(list) ? textsOf(list).toSorted(byBytes) : [textOf(list)]),
  until: (count) => sequence(0n, intOf(count), intOf(count) < 0n ? -1n : 1n),
  untilStep: (start, stop, step) => sequence(intOf(start), intOf(stop), intOf(step)),
  seq: (...ends) => {
    if (ends.length === 0 || ends.length > 3) return '';
    const [a = 0n, b, c] = ends.map(intOf);
    const start = b === undefined ? 1n : a;
    const end = c ?? b ?? a;
    const step = c !== undefined && b !== undefined ? b : end < start ? -1n : 1n;
    return sequence(start, end + (step < 0n ? -1n : 1n), step)
      .map(formatted)
      .join(' ');
  },
};

function byBytes(left: string, right: string): number {
  return Buffer.compare(Buffer.from(left), Buffer.from(right));
}

/** Nothing of an empty list is nil. */
function cut(list: GoValue, ...ends: GoValue[]): GoValue {
  const items = listOf(list);
  if (items.length === 0) return null;
  const [from = 0, to = items.length] = ends.map((end) => Number(intOf(end)));
  if (from >= 0 && from <= to && to <= items.length) return items.slice(from, to);
  throw new Error('reflect.Value.Slice: slice index out of bounds');
}

const rounded = (value: GoValue, by: (value: number) => number): GoValue =>
  new GoFloat(by(floatOf(value)));

const NUMBER_FUNCTIONS: TemplateFunctions = {
  int: intOf,
  int64: (value) => new GoInt64(intOf(value)),
  // as `strconv.Atoi`: decimal digits alone
  atoi: (value) => (/^[+-]?\d+$/.test(textOf(value)) ? decimalInt(textOf(value)) : 0n),
  float64: (value) => new GoFloat(floatOf(value)),
  add: (...values) => int64(values.reduce<bigint>((sum, value) => sum + intOf(value), 0n)),
  add1: (value) => int64(intOf(value) + 1n),
  sub: (a, b) => int64(intOf(a) - intOf(b)),
  mul: (first, ...values) =>
    int64(values.reduce<bigint>((product, value) => product * intOf(value), intOf(first))),
  div: (a, b) => {
    if (intOf(b) === 0n) throw new Error('integer divide by zero');
    return int64(intOf(a) / intOf(b));
  },
  mod: (a, b) => {
    if (intOf(b) === 0n) throw new Error('integer divide by zero');
    return int64(intOf(a) % intOf(b));
  },
  max: greatest,
  biggest: greatest,
  min: (...values) => int64(values.map(intOf).reduce((least, one) => (one < least ? one : least))),
  addf: (...values) => folded('add', 0n, values),
  subf: (first, ...values) => folded('sub', first, values),
  mulf: (first, ...values) => folded('mul', first, values),
  divf: (first, ...values) => folded('div', first, values),
  floor: (value) => rounded(value, Math.floor),
  ceil: (value) => rounded(value, Math.ceil),
  round: (value, digits, on) => {
    const scale = 10 ** Number(intOf(digits));
    const from = on === undefined ? 0.5 : floatOf(on);
    // as sprig: down wherever the rest is below `from`, which it is for what is below zero
    return rounded(value, (number) => {
      const isUp = (number * scale) % 1 >= from;
      return (isUp ? Math.ceil : Math.floor)(number * scale) / scale;
    });
  },
};

/** As integers of Go overflow. */
function int64(value: bigint): GoInt64 {
  return new GoInt64(BigInt.asIntN(64, value));
}

function greatest(...values: readonly GoValue[]): GoValue {
  return int64(values.map(intOf).reduce((most, one) => (one > most ? one : most)));
}

/** What is too long is the largest or the least int, and an error that sprig passes over. */
function decimalInt(text: string): bigint {
  const number = BigInt(text.replace('+', ''));
  if (isInt64(number)) return number;
  return number < 0n ? INT64_MIN : -INT64_MIN - 1n;
}

function folded(
  operation: Parameters<typeof decimalFold>[0],
  first: GoValue,
  others: readonly GoValue[],
): GoFloat {
  return new GoFloat(decimalFold(operation, floatOf(first), others.map(floatOf)));
}

export const SPRIG_FUNCTIONS: TemplateFunctions = {
  ...VALUE_FUNCTIONS,
  ...MAP_FUNCTIONS,
  ...LIST_FUNCTIONS,
  ...NUMBER_FUNCTIONS,
};
