/** The functions that Go's text/template has itself. */
import { ownMember } from '@megaplane/base/members';
import {
  formatted,
  GoFloat,
  GoInt64,
  isList,
  isMap,
  isTrue,
  memberOf,
  type GoValue,
  typeName,
} from './go-values.ts';
import { sprintf } from './go-printf.ts';
import type { TemplateFunctions } from './template-run.ts';

const BAD_COMPARISON = 'incompatible types for comparison';

/** The kind by which `eq` and `lt` decide whether two values can be compared. */
function basicKind(value: GoValue): 'none' | 'bool' | 'int' | 'float' | 'string' | 'other' {
  if (value === undefined || value === null) return 'none';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'bigint' || value instanceof GoInt64) return 'int';
  if (typeof value === 'string' || typeof value === 'number') return 'string';
  if (value instanceof GoFloat) return 'float';
  return 'other';
}

function plain(value: GoValue): GoValue {
  if (value instanceof GoFloat || value instanceof GoInt64) return value.value;
  return typeof value === 'number' ? JSON.stringify(value) : value;
}

function isSame(left: GoValue, right: GoValue): boolean {
  const kind = basicKind(left);
  if (kind !== basicKind(right)) {
    const isNone = kind === 'none' || basicKind(right) === 'none';
    if (!isNone) throw new Error(BAD_COMPARISON);
    return false;
  }
  if (kind === 'other') throw new Error('non-comparable type');
  return kind === 'none' || plain(left) === plain(right);
}

function isLess(left: GoValue, right: GoValue): boolean {
  const kind = basicKind(left);
  if (kind !== basicKind(right)) throw new Error(BAD_COMPARISON);
  if (kind === 'bool' || kind === 'none' || kind === 'other')
    throw new Error('invalid type for comparison');
  const a = plain(left);
  const b = plain(right);
  return typeof a === typeof b && (a as string) < (b as string);
}

function lengthOf(value: GoValue): bigint {
  // a json.Number is a text
  if (typeof value === 'string' || typeof value === 'number') {
    return BigInt(Buffer.byteLength(formatted(value)));
  }
  if (isList(value)) return BigInt(value.length);
  if (isMap(value)) return BigInt(Object.keys(value).length);
  if (value === undefined || value === null) throw new Error('len of nil pointer');
  throw new Error(`len of type ${typeName(value)}`);
}

/** A position in a list or text of `length`, as `index` and `slice` take it. */
function positionOf(value: GoValue, length: number): number {
  if (value === undefined || value === null) {
    throw new Error('cannot index slice/array with nil');
  }
  const at = value instanceof GoInt64 ? value.value : value;
  if (typeof at !== 'bigint') {
    throw new Error(`cannot index slice/array with type ${typeName(value)}`);
  }
  if (at < 0n || at > BigInt(length)) throw new Error(`index out of range: ${at}`);
  return Number(at);
}

function indexed(value: GoValue, ...path: GoValue[]): GoValue {
  let item = value;
  for (const step of path) {
    if (item === undefined || item === null) throw new Error('index of untyped nil');
    if (isMap(item)) {
      if (typeof step !== 'string')
        throw new Error(`value has type ${typeName(step)}; should be string`);
      item = memberOf(item, step);
    } else if (isList(item) || typeof item === 'string') {
      const at = positionOf(step, item.length);
      if (at >= item.length) throw new Error(`index out of range: ${at}`);
      item = typeof item === 'string' ? BigInt(item.charCodeAt(at)) : item[at];
    } else {
      throw new Error(`can't index item of type ${typeName(item)}`);
    }
  }
  return item;
}

function isText(value: GoValue): boolean {
  return typeof value === 'string' || typeof value === 'number';
}

/** As `fmt.Sprint`: spaces only between operands that are both no strings. */
function sprint(values: readonly GoValue[]): string {
  let text = '';
  for (const [index, value] of values.entries()) {
    const before = values[index - 1];
    const isApart = index > 0 && !isText(before) && !isText(value);
    text += (isApart ? ' ' : '') + formatted(value);
  }
  return text;
}

/** What `html`, `js` and `urlquery` escape: as `print`, but nil as templates print it. */
export function escapable(values: readonly GoValue[]): string {
  return sprint(values.map((value) => value ?? '<no value>'));
}

const HTML: Readonly<Record<string, string>> = {
  '"': '&#34;',
  "'": '&#39;',
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '\0': '\uFFFD',
};

export const BUILTIN_FUNCTIONS: TemplateFunctions = {
  not: (value) => !isTrue(value),
  len: lengthOf,
  index: indexed,
  print: (...values) => sprint(values),
  println: (...values) => `${values.map(formatted).join(' ')}\n`,
  printf: (format, ...values) => sprintf(textOf(format), values),
  html: (...values) =>
    escapable(values).replaceAll(/["'&<>\0]/g, (one) => ownMember(HTML, one) ?? one),
  eq: (first, ...others) => {
    if (others.length === 0) throw new Error('missing argument for comparison');
    return others.some((other) => isSame(first, other));
  },
  ne: (first, second) => !isSame(first, second),
  lt: isLess,
  le: (first, second) => isLess(first, second) || isSame(first, second),
  gt: (first, second) => !isLess(first, second) && !isSame(first, second),
  ge: (first, second) => !isLess(first, second),
};

function textOf(value: GoValue): string {
  if (typeof value === 'string') return value;
  throw new Error(`wrong type for value; expected string; got ${typeName(value)}`);
}
