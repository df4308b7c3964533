/** The functions of jq that expressions of stages may call. Others are refused by name. */
import { parseJson } from '@megaplane/machinery/json-text';
import { ownMember } from '@megaplane/base/members';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { isNumber, isObject } from '@megaplane/machinery/json-value';
import { JqError } from './jq-lexer.ts';
import { jsonOf, jsonText } from './jq-formats.ts';
import { isMatch, matchesOf } from './jq-matches.ts';
import { brokenDown, readTime, secondsOf, timeText } from './jq-times.ts';
import { compareJq, indexed, isTruthy, iterated, jqType, shown, sum } from './jq-values.ts';
import { exactNumber } from '@megaplane/machinery/json-reader';

/** A filter gives any number of values for one. */
export type Filter = (input: JsonValue) => readonly JsonValue[];
export type JqFunction = (input: JsonValue, ...args: Filter[]) => readonly JsonValue[];

function text(value: JsonValue): string {
  if (typeof value === 'string') return value;
  throw new JqError(`expected a string but got: ${shown(value)}`);
}

function list(value: JsonValue): JsonValue[] {
  if (Array.isArray(value)) return value;
  throw new JqError(`expected an array but got: ${shown(value)}`);
}

function number(value: JsonValue): number {
  if (isNumber(value)) return Number(value);
  throw new JqError(`expected a number but got: ${shown(value)}`);
}

function lengthOf(value: JsonValue): number | bigint {
  if (value === null) return 0;
  if (typeof value === 'bigint') return value < 0n ? -value : value;
  if (typeof value === 'number') return Math.abs(value);
  if (typeof value === 'string') return Array.from(value).length;
  if (Array.isArray(value)) return value.length;
  if (isObject(value)) return Object.keys(value).length;
  throw new JqError(`cannot get length of: ${shown(value)}`);
}

function hasKey(value: JsonValue, key: JsonValue): boolean {
  if (value === null) return false;
  if (isObject(value) && typeof key === 'string') return Object.hasOwn(value, key);
  if (Array.isArray(value) && typeof key === 'number') return key >= 0 && key < value.length;
  throw new JqError(`cannot check whether ${jqType(value)} has: ${shown(key)}`);
}

function isPart(whole: JsonValue, part: JsonValue): boolean {
  if (typeof whole === 'string' && typeof part === 'string') return whole.includes(part);
  if (Array.isArray(whole) && Array.isArray(part)) {
    return part.every((one) =>
      whole.some((item) => jqType(item) === jqType(one) && isPart(item, one)),
    );
  }
  if (isObject(whole) && isObject(part)) {
    return Object.entries(part).every(([name, value = null]) => {
      const own = ownMember(whole, name);
      return own !== undefined && jqType(own) === jqType(value) && isPart(own, value);
    });
  }
  if (jqType(whole) !== jqType(part)) {
    throw new JqError(`cannot check contains(${shown(part)}): ${shown(whole)}`);
  }
  return compareJq(whole, part) === 0;
}

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

function toNumber(value: JsonValue): number | bigint {
  if (isNumber(value)) return value;
  const isText = typeof value === 'string' && NUMBER.test(value);
  const number = isText ? exactNumber(value) : Number.NaN;
  if (Number.isNaN(number)) throw new JqError(`tonumber cannot be applied to: ${shown(value)}`);
  return number;
}

/** The item of a list that comes first when all are in the order of `by`. */
function least(items: readonly JsonValue[], by: Filter, sign: 1 | -1): JsonValue {
  let found: JsonValue | undefined;
  for (const item of items) {
    const isBetter =
      found === undefined ||
      sign * compareJq([...by(item)], [...by(found)]) < 0 ||
      (sign < 0 && compareJq([...by(item)], [...by(found)]) === 0);
    if (isBetter) found = item;
  }
  return found ?? null;
}

function ordered(items: readonly JsonValue[], by: Filter): JsonValue[] {
  return items.toSorted((a, b) => compareJq([...by(a)], [...by(b)]));
}

function grouped(items: readonly JsonValue[], by: Filter): JsonValue[][] {
  const groups: JsonValue[][] = [];
  for (const item of ordered(items, by)) {
    const last = groups.at(-1);
    const isSame = last !== undefined && compareJq([...by(last[0] ?? null)], [...by(item)]) === 0;
    if (isSame) last.push(item);
    else groups.push([item]);
  }
  return groups;
}

function timeOf(value: JsonValue): number {
  return secondsOf(readTime(text(value), '%Y-%m-%dT%H:%M:%S%z'));
}

function cutStart(whole: string, part: string): string {
  return whole.startsWith(part) ? whole.slice(part.length) : whole;
}

function cutEnd(whole: string, part: string): string {
  return part !== '' && whole.endsWith(part) ? whole.slice(0, -part.length) : whole;
}

function joinable(item: JsonValue): string {
  if (item === null) return '';
  if (!Array.isArray(item) && !isObject(item)) return jsonText(item);
  throw new JqError(`cannot join: ${shown(item)}`);
}

function runeOf(code: JsonValue): string {
  const isRune = typeof code === 'number' && code >= 0 && code <= 0x10_ffff;
  if (!isRune) throw new JqError(`implode cannot be applied to: ${shown(code)}`);
  return String.fromCodePoint(code);
}

/** Where a part stands in a text, or an item or list of items in a list. */
function placesOf(whole: JsonValue, part: JsonValue): number[] {
  if (typeof whole === 'string') return placesIn(Array.from(whole), Array.from(text(part)));
  return placesIn(list(whole), Array.isArray(part) ? part : [part]);
}

function placesIn(items: readonly JsonValue[], part: readonly JsonValue[]): number[] {
  if (part.length === 0) return [];
  const starts = Array.from({ length: Math.max(0, items.length - part.length + 1) }, (_, at) => at);
  return starts.filter((at) =>
    part.every((one, index) => compareJq(one, items[at + index] ?? null) === 0),
  );
}

const self: Filter = (input) => [input];

/** For every value that the argument gives. */
function each(of: (input: JsonValue, arg: JsonValue) => JsonValue): JqFunction {
  return (input, arg = self) => arg(input).map((value) => of(input, value));
}

function plain(of: (input: JsonValue) => JsonValue): JqFunction {
  return (input) => [of(input)];
}

function flat(items: readonly JsonValue[], depth: number): JsonValue[] {
  return items.flatMap((item) =>
    Array.isArray(item) && depth > 0 ? flat(item, depth - 1) : [item],
  );
}

function numberBy(of: (value: number) => number): JqFunction {
  return plain((input) => of(number(input)));
}

const LISTS: Readonly<Record<string, JqFunction>> = {
  'add/0': plain((input) => iterated(input).reduce<JsonValue>(sum, null)),
  'first/0': plain((input) => indexed(input, 0)),
  'last/0': plain((input) => indexed(input, -1)),
  'nth/1': each((input, at) => indexed(input, at)),
  'reverse/0': plain((input) => list(input).toReversed()),
  'sort/0': plain((input) => ordered(list(input), self)),
  'sort_by/1': (input, by = self) => [ordered(list(input), by)],
  'group_by/1': (input, by = self) => [grouped(list(input), by)],
  'unique/0': plain((input) => grouped(list(input), self).map((group) => group[0] ?? null)),
  'unique_by/1': (input, by = self) => [grouped(list(input), by).map((group) => group[0] ?? null)],
  'min/0': plain((input) => least(list(input), self, 1)),
  'max/0': plain((input) => least(list(input), self, -1)),
  'min_by/1': (input, by = self) => [least(list(input), by, 1)],
  'max_by/1': (input, by = self) => [least(list(input), by, -1)],
  'flatten/0': plain((input) => flat(iterated(input), Infinity)),
  'flatten/1': each((input, depth) => {
    if (number(depth) < 0) throw new JqError('flatten depth must not be negative');
    return flat(iterated(input), number(depth));
  }),
};

const STRINGS: Readonly<Record<string, JqFunction>> = {
  'startswith/1': each((input, part) => text(input).startsWith(text(part))),
  'endswith/1': each((input, part) => text(input).endsWith(text(part))),
  'ltrimstr/1': each((input, part) => cutStart(text(input), text(part))),
  'rtrimstr/1': each((input, part) => cutEnd(text(input), text(part))),
  'trimstr/1': each((input, part) => cutEnd(cutStart(text(input), text(part)), text(part))),
  'split/1': each((input, by) => (text(input) === '' ? [] : text(input).split(text(by)))),
  'join/1': each((input, by) => iterated(input).map(joinable).join(text(by))),
  'ascii_downcase/0': plain((input) => text(input).replaceAll(/[A-Z]/g, (c) => c.toLowerCase())),
  'ascii_upcase/0': plain((input) => text(input).replaceAll(/[a-z]/g, (c) => c.toUpperCase())),
  'trim/0': plain((input) => text(input).trim()),
  'ltrim/0': plain((input) => text(input).trimStart()),
  'rtrim/0': plain((input) => text(input).trimEnd()),
  'test/2': pairs((input, pattern, flags) => [isMatch(input, pattern, flags)]),
  'match/2': pairs(matchesOf),
  'explode/0': plain((input) => Array.from(text(input), (one) => one.codePointAt(0) ?? 0)),
  'implode/0': plain((input) => list(input).map(runeOf).join('')),
  'utf8bytelength/0': plain((input) => Buffer.byteLength(text(input))),
  'indices/1': each((input, part) => (input === null ? null : placesOf(input, part))),
  'index/1': each((input, part) => (input === null ? null : (placesOf(input, part)[0] ?? null))),
  'rindex/1': each((input, part) =>
    input === null ? null : (placesOf(input, part).at(-1) ?? null),
  ),
  'tostring/0': plain(jsonText),
  'tonumber/0': plain(toNumber),
  'tojson/0': plain(jsonOf),
  'fromjson/0': plain((input) => {
    try {
      return parseJson(text(input));
    } catch {
      throw new JqError(`fromjson cannot be applied to: ${shown(input)}`);
    }
  }),
  'fromdate/0': plain(timeOf),
  'fromdateiso8601/0': plain(timeOf),
  'gmtime/0': plain((input) => brokenDown(number(input))),
  'localtime/0': plain((input) => brokenDown(number(input))),
  'mktime/0': plain(secondsOf),
  'strftime/1': each(timeText),
  'strflocaltime/1': each(timeText),
  'strptime/1': each(readTime),
};

const VALUES: Readonly<Record<string, JqFunction>> = {
  'not/0': plain((input) => !isTruthy(input)),
  'length/0': plain(lengthOf),
  'type/0': plain(jqType),
  'keys/0': plain((input) => {
    if (Array.isArray(input)) return input.map((_, index) => index);
    if (isObject(input)) return Object.keys(input).toSorted();
    throw new JqError(`keys cannot be applied to: ${shown(input)}`);
  }),
  'has/1': each(hasKey),
  'contains/1': each(isPart),
  'toboolean/0': plain((input) => {
    if (typeof input === 'boolean') return input;
    if (input === 'true' || input === 'false') return input === 'true';
    throw new JqError(`toboolean cannot be applied to: ${shown(input)}`);
  }),
  'transpose/0': plain((input) => {
    const rows = list(input).map(list);
    const width = Math.max(0, ...rows.map((row) => row.length));
    return Array.from({ length: width }, (_, at) => rows.map((row) => row[at] ?? null));
  }),
  'infinite/0': plain(() => Infinity),
  'nan/0': plain(() => Number.NaN),
  'isnan/0': plain((input) => Number.isNaN(number(input))),
  'isinfinite/0': plain((input) => Math.abs(number(input)) === Infinity),
  'isnormal/0': plain((input) => Number.isFinite(number(input)) && Math.abs(number(input)) > 0),
};

/** For each pair of what two arguments give. */
function pairs(
  of: (input: JsonValue, first: JsonValue, second: JsonValue) => readonly JsonValue[],
): JqFunction {
  return (input, left = self, right = self) =>
    right(input).flatMap((second) => left(input).flatMap((first) => of(input, first, second)));
}

const ONE_NUMBER = [
  ...(['floor', 'ceil', 'abs', 'sqrt', 'cbrt', 'exp', 'expm1', 'log', 'log10', 'log1p'] as const),
  ...(['log2', 'trunc', 'sin', 'cos', 'tan', 'asin', 'acos', 'atan', 'sinh', 'cosh'] as const),
  ...(['tanh', 'asinh', 'acosh', 'atanh'] as const),
];

const MATH: Readonly<Record<string, JqFunction>> = {
  ...Object.fromEntries(ONE_NUMBER.map((name) => [`${name}/0`, numberBy(Math[name])])),
  'fabs/0': numberBy(Math.abs),
  'exp2/0': numberBy((value) => 2 ** value),
  'exp10/0': numberBy((value) => 10 ** value),
  // halves go away from zero
  'round/0': numberBy((value) => Math.sign(value) * Math.round(Math.abs(value))),
  'pow/2': pairs((_, left, right) => [number(left) ** number(right)]),
  'atan2/2': pairs((_, left, right) => [Math.atan2(number(left), number(right))]),
  'fmod/2': pairs((_, left, right) => [number(left) % number(right)]),
  'fmin/2': pairs((_, left, right) => [Math.min(number(left), number(right))]),
  'fmax/2': pairs((_, left, right) => [Math.max(number(left), number(right))]),
  'ldexp/2': pairs((_, left, right) => [number(left) * 2 ** number(right)]),
};

/** By name and number of arguments. */
export const JQ_FUNCTIONS: ReadonlyMap<string, JqFunction> = new Map(
  Object.entries({ ...LISTS, ...STRINGS, ...VALUES, ...MATH }),
);
