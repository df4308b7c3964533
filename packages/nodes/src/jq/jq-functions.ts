/** The functions of jq that expressions of stages may call. Others are refused by name. */
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { JqError } from './jq-lexer.ts';
import { compareJq, indexed, isTruthy, iterated, jqType, shown, sum } from './jq-values.ts';

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
  if (typeof value === 'number') return value;
  throw new JqError(`expected a number but got: ${shown(value)}`);
}

function lengthOf(value: JsonValue): number {
  if (value === null) return 0;
  if (typeof value === 'number') return Math.abs(value);
  if (typeof value === 'string') return Array.from(value).length;
  if (Array.isArray(value)) return value.length;
  if (isObject(value)) return Object.keys(value).length;
  throw new JqError(`cannot get length of: ${shown(value)}`);
}

function hasKey(value: JsonValue, key: JsonValue): boolean {
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
      const own = whole[name];
      return own !== undefined && jqType(own) === jqType(value) && isPart(own, value);
    });
  }
  if (jqType(whole) !== jqType(part)) {
    throw new JqError(`cannot check contains(${shown(part)}): ${shown(whole)}`);
  }
  return compareJq(whole, part) === 0;
}

function* descend(value: JsonValue): Generator<JsonValue> {
  yield value;
  if (Array.isArray(value)) for (const item of value) yield* descend(item);
  else if (isObject(value)) for (const item of iterated(value)) yield* descend(item);
}

function toText(value: JsonValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function toNumber(value: JsonValue): number {
  if (typeof value === 'number') return value;
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : Number.NaN;
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

function entries(value: JsonValue): JsonValue[] {
  if (!isObject(value)) throw new JqError(`expected an object but got: ${shown(value)}`);
  return Object.keys(value)
    .toSorted()
    .map((key) => ({ key, value: value[key] ?? null }));
}

function fromEntries(items: readonly JsonValue[]): JsonObject {
  const made: JsonObject = {};
  for (const item of items) {
    const key = indexed(item, 'key') ?? indexed(item, 'k') ?? indexed(item, 'name');
    made[toText(key)] = indexed(item, 'value');
  }
  return made;
}

function expression(pattern: JsonValue, flags: JsonValue): RegExp {
  try {
    return new RegExp(text(pattern), flags === null ? 'u' : `u${text(flags)}`);
  } catch (error) {
    throw new JqError(`invalid regular expression: ${(error as Error).message}`);
  }
}

function timeOf(value: JsonValue): number {
  const ms = Date.parse(text(value));
  if (Number.isNaN(ms)) throw new JqError(`fromdate cannot be applied to: ${shown(value)}`);
  return Math.floor(ms / 1000);
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
  'any/0': plain((input) => iterated(input).some(isTruthy)),
  'all/0': plain((input) => iterated(input).every(isTruthy)),
  'any/1': (input, by = self) => [iterated(input).some((item) => by(item).some(isTruthy))],
  'all/1': (input, by = self) => [iterated(input).every((item) => by(item).every(isTruthy))],
  'any/2': (input, of = self, by = self) => [of(input).some((item) => by(item).some(isTruthy))],
  'all/2': (input, of = self, by = self) => [of(input).every((item) => by(item).every(isTruthy))],
  'map/1': (input, by = self) => [iterated(input).flatMap((item) => [...by(item)])],
  'select/1': (input, by = self) => by(input).flatMap((value) => (isTruthy(value) ? [input] : [])),
  'first/0': plain((input) => indexed(input, 0)),
  'last/0': plain((input) => indexed(input, -1)),
  'first/1': (input, of = self) => of(input).slice(0, 1),
  'last/1': (input, of = self) => of(input).slice(-1),
  'nth/1': each((input, at) => indexed(input, at)),
  'limit/2': (input, count = self, of = self) =>
    count(input).flatMap((n) => of(input).slice(0, Math.max(0, number(n)))),
  'range/1': (input, to = self) =>
    to(input).flatMap((n) => Array.from({ length: rangeLength(number(n)) }, (_, i) => i)),
  'reverse/0': plain((input) => (input === null ? [] : list(input).toReversed())),
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
  'flatten/1': each((input, depth) => flat(iterated(input), number(depth))),
  'recurse/0': (input) => [...descend(input)],
};

function rangeLength(count: number): number {
  if (count > 1_000_000) throw new JqError(`range(${count}) is too long`);
  return Math.max(0, Math.ceil(count));
}

const STRINGS: Readonly<Record<string, JqFunction>> = {
  'startswith/1': each((input, part) => text(input).startsWith(text(part))),
  'endswith/1': each((input, part) => text(input).endsWith(text(part))),
  'ltrimstr/1': each((input, part) =>
    typeof input === 'string' && typeof part === 'string' && input.startsWith(part)
      ? input.slice(part.length)
      : input,
  ),
  'rtrimstr/1': each((input, part) =>
    typeof input === 'string' && typeof part === 'string' && part !== '' && input.endsWith(part)
      ? input.slice(0, -part.length)
      : input,
  ),
  'split/1': each((input, by) => (text(input) === '' ? [] : text(input).split(text(by)))),
  'join/1': each((input, by) =>
    iterated(input)
      .map((item) => (item === null ? '' : toText(item)))
      .join(text(by)),
  ),
  'ascii_downcase/0': plain((input) => text(input).replaceAll(/[A-Z]/g, (c) => c.toLowerCase())),
  'ascii_upcase/0': plain((input) => text(input).replaceAll(/[a-z]/g, (c) => c.toUpperCase())),
  'trim/0': plain((input) => text(input).trim()),
  'ltrim/0': plain((input) => text(input).trimStart()),
  'rtrim/0': plain((input) => text(input).trimEnd()),
  'test/1': each((input, pattern) => expression(pattern, null).test(text(input))),
  'test/2': (input, pattern = self, flags = self) =>
    pattern(input).flatMap((one) =>
      flags(input).map((flag) => expression(one, flag).test(text(input))),
    ),
  'tostring/0': plain(toText),
  'tonumber/0': plain(toNumber),
  'tojson/0': plain((input) => JSON.stringify(input)),
  'fromjson/0': plain((input) => {
    try {
      return JSON.parse(text(input)) as JsonValue;
    } catch {
      throw new JqError(`fromjson cannot be applied to: ${shown(input)}`);
    }
  }),
  'fromdate/0': plain(timeOf),
  'fromdateiso8601/0': plain(timeOf),
  'todate/0': plain((input) => new Date(number(input) * 1000).toISOString().replace('.000Z', 'Z')),
};

const VALUES: Readonly<Record<string, JqFunction>> = {
  'empty/0': () => [],
  'not/0': plain((input) => !isTruthy(input)),
  'length/0': plain(lengthOf),
  'type/0': plain(jqType),
  'keys/0': plain((input) => {
    if (Array.isArray(input)) return input.map((_, index) => index);
    return entries(input).map((entry) => indexed(entry, 'key'));
  }),
  'has/1': each(hasKey),
  'in/1': each((input, whole) => hasKey(whole, input)),
  'contains/1': each(isPart),
  'inside/1': each((input, whole) => isPart(whole, input)),
  'to_entries/0': plain(entries),
  'from_entries/0': plain((input) => fromEntries(iterated(input))),
  'with_entries/1': (input, by = self) => [
    fromEntries(entries(input).flatMap((entry) => [...by(entry)])),
  ],
  'error/0': (input) => {
    throw new JqError(toText(input));
  },
  'error/1': (input, of = self) =>
    of(input).map((value): JsonValue => {
      throw new JqError(toText(value));
    }),
  'floor/0': numberBy(Math.floor),
  'ceil/0': numberBy(Math.ceil),
  'round/0': numberBy(Math.round),
  'abs/0': numberBy(Math.abs),
  'arrays/0': (input) => (Array.isArray(input) ? [input] : []),
  'objects/0': (input) => (isObject(input) ? [input] : []),
  'strings/0': (input) => (typeof input === 'string' ? [input] : []),
  'numbers/0': (input) => (typeof input === 'number' ? [input] : []),
  'booleans/0': (input) => (typeof input === 'boolean' ? [input] : []),
  'nulls/0': (input) => (input === null ? [input] : []),
  'values/0': (input) => (input === null ? [] : [input]),
};

/** By name and number of arguments. */
export const JQ_FUNCTIONS: ReadonlyMap<string, JqFunction> = new Map(
  Object.entries({ ...LISTS, ...STRINGS, ...VALUES }),
);
