/**
 * One step of a field's path, as a string in the form that FieldsV1 gives it: `f:name` a field,
 * `k:{"name":"a"}` the item of a list with those keys, `v:"x"` the item of a set, `i:3` an item by
 * its place. Equal steps are equal strings, so sets of fields are maps by string.
 */

import { parseJson } from '../json/json-text.ts';
import { isNumber, isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { ownMember, putMember } from '@megaplane/base/members';
import { quoted } from '../json/quoting.ts';
import type { ListForm } from './field-schema.ts';

const FIELD = 0x66;
const KEY = 0x6b;
const VALUE = 0x76;
const INDEX = 0x69;
const ESCAPED = /[<>&\u2028\u2029]/g;
const ESCAPED_ANY = /[<>&\u2028\u2029]/;
/** Parsed keys and values that are kept; beyond it they are parsed again. */
const PARSED_MAX = 65_536;

/** JSON as Go writes it: keys sorted, and what HTML would trip over escaped. */
export function goJson(value: JsonValue): string {
  if (typeof value === 'string') return goString(value);
  if (isNumber(value)) return numberText(value);
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(goJson).join(',')}]`;
  const fields = Object.keys(value).sort(compareText);
  const texts = fields.map((name) => `${goString(name)}:${goJson(ownMember(value, name) ?? null)}`);
  return `{${texts.join(',')}}`;
}

/** Exponents have two digits at least. */
function numberText(value: number | bigint): string {
  const text = JSON.stringify(value);
  return text.includes('e') ? text.replace(/(e[+-])(\d)$/, '$10$2') : text;
}

function goString(text: string): string {
  const json = JSON.stringify(text);
  if (!ESCAPED_ANY.test(json)) return json;
  return json.replace(ESCAPED, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** By the bytes of UTF-8, as Go compares strings. */
export function compareText(left: string, right: string): number {
  const length = Math.min(left.length, right.length);
  for (let at = 0; at < length; at++) {
    const a = left.charCodeAt(at);
    const b = right.charCodeAt(at);
    if (a === b) continue;
    // surrogates stand for characters above all others
    const isLow = a >= 0xd800 && a <= 0xdfff;
    if (isLow !== (b >= 0xd800 && b <= 0xdfff)) return isLow ? 1 : -1;
    return a < b ? -1 : 1;
  }
  return left.length - right.length;
}

const parsed = new Map<string, JsonValue>();

function valueOf(step: string): JsonValue {
  const known = parsed.get(step);
  if (known !== undefined) return known;
  const value = parseJson(step.slice(2));
  if (parsed.size >= PARSED_MAX) parsed.clear();
  parsed.set(step, value);
  return value;
}

function rankOf(step: string): number {
  switch (step.charCodeAt(0)) {
    case FIELD:
      return 0;
    case KEY:
      return 1;
    case VALUE:
      return 2;
    default:
      return 3;
  }
}

/** The order of steps in a set: fields, then items by key, by value and by place. */
export function compareSteps(left: string, right: string): number {
  const rank = rankOf(left);
  const other = rankOf(right);
  if (rank !== other) return rank - other;
  if (rank === 0) return compareText(left, right);
  if (rank === 3) return Number(left.slice(2)) - Number(right.slice(2));
  if (left === right) return 0;
  const a = valueOf(left);
  const b = valueOf(right);
  return rank === 1 ? compareKeys(a, b) : compareValues(a, b);
}

function compareKeys(left: JsonValue, right: JsonValue): number {
  const a = isObject(left) ? Object.entries(left) : [];
  const b = isObject(right) ? Object.entries(right) : [];
  for (let at = 0; at < a.length && at < b.length; at++) {
    const [name = '', value = null] = a[at] ?? [];
    const [otherName = '', otherValue = null] = b[at] ?? [];
    const order = compareText(name, otherName) || compareValues(value, otherValue);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/** Numbers, then strings, booleans, lists, maps and null. */
function compareValues(left: JsonValue, right: JsonValue): number {
  const rank = valueRank(left);
  const other = valueRank(right);
  if (rank !== other) return rank - other;
  if (isNumber(left) && isNumber(right)) return left < right ? -1 : left > right ? 1 : 0;
  if (typeof left === 'string' && typeof right === 'string') return compareText(left, right);
  if (typeof left === 'boolean') return Number(left) - Number(right);
  return compareText(goJson(left), goJson(right));
}

function valueRank(value: JsonValue): number {
  if (isNumber(value)) return 0;
  if (typeof value === 'string') return 1;
  if (typeof value === 'boolean') return 2;
  if (value === null) return 5;
  return Array.isArray(value) ? 3 : 4;
}

/** The step as error texts and conflicts show it: `.name`, `[port=80,protocol="TCP"]`, `[="x"]`. */
export function printStep(step: string): string {
  switch (step.charCodeAt(0)) {
    case FIELD:
      return `.${step.slice(2)}`;
    case KEY: {
      const keys = valueOf(step);
      const parts = Object.entries(isObject(keys) ? keys : {});
      return `[${parts.map(([name, value]) => `${name}=${printValue(value ?? null)}`).join(',')}]`;
    }
    case VALUE:
      return `[=${printValue(valueOf(step))}]`;
    default:
      return `[${step.slice(2)}]`;
  }
}

export function printPath(path: readonly string[]): string {
  return path.map(printStep).join('');
}

function printValue(value: JsonValue): string {
  if (typeof value === 'string') return quoted(value);
  if (Array.isArray(value)) return `[${value.map(printValue).join(',')}]`;
  if (isObject(value)) {
    return Object.entries(value)
      .map(([name, inner]) => `${name}=${printValue(inner ?? null)}`)
      .join('');
  }
  return String(value);
}

/** A step in its one form, from the text of a FieldsV1 key; null where it is of no known kind. */
export function parseStep(text: string): string | null {
  if (text.length < 2 || text[1] !== ':') throw new SyntaxError(`no path element: ${text}`);
  switch (text.charCodeAt(0)) {
    case FIELD:
      return text;
    case KEY: {
      const keys = parseJson(text.slice(2));
      if (!isObject(keys)) throw new SyntaxError(`keys are no object: ${text}`);
      return `k:${goJson(keys)}`;
    }
    case VALUE:
      return `v:${goJson(parseJson(text.slice(2)))}`;
    case INDEX:
      if (!/^-?\d+$/.test(text.slice(2))) throw new SyntaxError(`no index: ${text}`);
      return text;
    default:
      return null;
  }
}

/** The step to an item of an associative list, or why it has none. */
export type ItemStep = { readonly step: string } | { readonly fault: string };

export function stepOfItem(list: ListForm, item: JsonValue): ItemStep {
  if (list.keys.length > 0) return keyedStep(list, item);
  if (item === null) {
    return { fault: "associative list without keys has an element that's an explicit null" };
  }
  if (typeof item !== 'object') return { step: `v:${goJson(item)}` };
  return {
    fault: Array.isArray(item)
      ? 'not supported: associative list with lists as elements'
      : "associative list without keys has an element that's a map type",
  };
}

function keyedStep(list: ListForm, item: JsonValue): ItemStep {
  if (item === null) return { fault: 'associative list with keys may not have a null element' };
  if (!isObject(item)) {
    return { fault: 'associative list with keys may not have non-map elements' };
  }
  const only = list.keys[0];
  if (list.keys.length === 1 && only !== undefined) {
    const value = ownMember(item, only) ?? defaultKey(list, item, only);
    if (value !== undefined) return { step: `k:{${goString(only)}:${goJson(value)}}` };
  }
  const keys: JsonObject = {};
  let count = 0;
  for (const name of list.keys) {
    const value = ownMember(item, name) ?? defaultKey(list, item, name);
    if (value === undefined) continue;
    putMember(keys, name, value);
    count++;
  }
  if (count > 0) return { step: `k:${goJson(keys)}` };
  const names = list.keys.map((name) => quoted(name)).join(' ');
  const end = "(and doesn't have default values for any key fields)";
  return {
    fault: `associative list with keys has an element that omits all key fields [${names}] ${end}`,
  };
}

/** A key that is null is null; one that is absent may have a default. */
function defaultKey(list: ListForm, item: JsonObject, name: string): JsonValue | undefined {
  return ownMember(item, name) === null ? null : list.items.map?.defaultOf(name);
}
