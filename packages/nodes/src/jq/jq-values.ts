/** Values of jq: how they compare, add up and are told apart. */
import { ownMember, putMember } from '@megaplane/base/members';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isNumber, isObject } from '@megaplane/machinery/json-value';
import { JqError } from './jq-lexer.ts';
import { wholeNumber } from '@megaplane/machinery/json-text';

/** Text that one operation may make. */
const TEXT_LENGTH_MAX: number = 4 * 1024 * 1024;

/** Type name as jq's `type` gives it. */
export function jqType(value: JsonValue): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return isNumber(value) ? 'number' : typeof value;
}

/** A value as messages show it: its type and some of it. */
export function shown(value: JsonValue): string {
  if (value === null) return 'null';
  const text = JSON.stringify(value);
  return `${jqType(value)} (${text.length > 30 ? `${text.slice(0, 27)}...` : text})`;
}

/** False for null and false only. */
export function isTruthy(value: JsonValue): boolean {
  return value !== null && value !== false;
}

function rankOf(value: JsonValue): number {
  if (value === null) return 0;
  if (value === false) return 1;
  if (value === true) return 2;
  if (isNumber(value)) return 3;
  if (typeof value === 'string') return 4;
  return Array.isArray(value) ? 5 : 6;
}

/** jq's order of all values: below 0, 0 or above 0. */
export function compareJq(left: JsonValue, right: JsonValue): number {
  const rank = rankOf(left) - rankOf(right);
  if (rank !== 0) return rank;
  if (isNumber(left) && isNumber(right)) return left < right ? -1 : left > right ? 1 : 0;
  if (typeof left === 'string' && typeof right === 'string') {
    return Buffer.compare(Buffer.from(left), Buffer.from(right));
  }
  if (Array.isArray(left) && Array.isArray(right)) return compareLists(left, right);
  if (isObject(left) && isObject(right)) {
    const leftNames = Object.keys(left).toSorted();
    const rightNames = Object.keys(right).toSorted();
    const names = compareLists(leftNames, rightNames);
    if (names !== 0) return names;
    return compareLists(
      leftNames.map((name) => ownMember(left, name) ?? null),
      rightNames.map((name) => ownMember(right, name) ?? null),
    );
  }
  return 0;
}

function compareLists(left: readonly JsonValue[], right: readonly JsonValue[]): number {
  for (let at = 0; at < Math.min(left.length, right.length); at++) {
    const order = compareJq(left[at] ?? null, right[at] ?? null);
    if (order !== 0) return order;
  }
  return left.length - right.length;
}

/** `left op right` for the operators of arithmetic and comparison. */
export function operate(op: string, left: JsonValue, right: JsonValue): JsonValue {
  switch (op) {
    case '==':
      return compareJq(left, right) === 0;
    case '!=':
      return compareJq(left, right) !== 0;
    case '<':
      return compareJq(left, right) < 0;
    case '<=':
      return compareJq(left, right) <= 0;
    case '>':
      return compareJq(left, right) > 0;
    case '>=':
      return compareJq(left, right) >= 0;
    case '+':
      return sum(left, right);
    default:
      return calculate(op, left, right);
  }
}

/** jq's `+`; null is neutral. */
export function sum(left: JsonValue, right: JsonValue): JsonValue {
  if (left === null) return right;
  if (right === null) return left;
  if (isNumber(left) && isNumber(right)) return calculate('+', left, right);
  if (typeof left === 'string' && typeof right === 'string') return left + right;
  if (Array.isArray(left) && Array.isArray(right)) return [...left, ...right];
  if (isObject(left) && isObject(right)) return { ...left, ...right };
  throw new JqError(`cannot add: ${shown(left)} and ${shown(right)}`);
}

const VERBS: Readonly<Record<string, string>> = {
  '-': 'subtract',
  '*': 'multiply',
  '/': 'divide',
  '%': 'modulo',
};

type Numeric = number | bigint;

/** Whole numbers that a double does not hold are reckoned with to the last digit. */
function calculateNumbers(op: string, left: Numeric, right: Numeric): Numeric {
  if (op === '/' || op === '%') {
    const divisor = op === '%' ? truncated(right) : right;
    if (Number(divisor) === 0) {
      throw new JqError(`cannot ${ownMember(VERBS, op)} ${shown(left)} by: ${shown(right)}`);
    }
  }
  const isWhole = isInteger(left) && isInteger(right) && op !== '/';
  const isLong = typeof left === 'bigint' || typeof right === 'bigint';
  if (isWhole && isLong) return exactly(op, BigInt(left), BigInt(right));
  const [a, b] = [Number(left), Number(right)];
  if (op === '+') return a + b;
  if (op === '-') return a - b;
  if (op === '*') return a * b;
  return op === '%' ? Math.trunc(a) % Math.abs(Math.trunc(b)) : a / b;
}

function exactly(op: string, left: bigint, right: bigint): Numeric {
  if (op === '+') return wholeNumber(left + right);
  if (op === '-') return wholeNumber(left - right);
  return wholeNumber(op === '*' ? left * right : left % right);
}

function isInteger(value: Numeric): boolean {
  return typeof value === 'bigint' || Number.isInteger(value);
}

function truncated(value: Numeric): Numeric {
  return typeof value === 'bigint' ? value : Math.trunc(value);
}

function calculate(op: string, left: JsonValue, right: JsonValue): JsonValue {
  if (isNumber(left) && isNumber(right)) return calculateNumbers(op, left, right);
  if (op === '-' && Array.isArray(left) && Array.isArray(right)) {
    return left.filter((item) => !right.some((other) => compareJq(item, other) === 0));
  }
  if (op === '/' && typeof left === 'string' && typeof right === 'string') {
    return left === '' ? [] : left.split(right);
  }
  if (op === '*' && typeof left === 'number' && typeof right === 'string') {
    return calculate(op, right, left);
  }
  if (op === '*' && typeof left === 'string' && typeof right === 'number') {
    if (left.length * right > TEXT_LENGTH_MAX) throw new JqError('repeat string result too large');
    return right < 0 ? null : left.repeat(Math.max(right > 0 ? 1 : 0, Math.trunc(right)));
  }
  if (op === '*' && isObject(left) && isObject(right)) return deepMerge(left, right);
  throw new JqError(`cannot ${ownMember(VERBS, op)}: ${shown(left)} and ${shown(right)}`);
}

function deepMerge(left: JsonObject, right: JsonObject): JsonObject {
  const merged: JsonObject = { ...left };
  for (const [name, value] of Object.entries(right)) {
    const below = ownMember(merged, name);
    putMember(merged, name, isObject(value) && isObject(below) ? deepMerge(below, value) : value);
  }
  return merged;
}

/** `.[key]` of a value. */
export function indexed(value: JsonValue, key: JsonValue): JsonValue {
  if (value === null && (key === null || typeof key === 'string' || typeof key === 'number')) {
    return null;
  }
  if (isObject(value) && typeof key === 'string') {
    return Object.hasOwn(value, key) ? (value[key] ?? null) : null;
  }
  if (Array.isArray(value) && typeof key === 'number') {
    return value.at(Math.floor(key)) ?? null;
  }
  if (typeof value === 'string' && typeof key === 'number') {
    return Array.from(value).at(Math.floor(key)) ?? null;
  }
  if (isObject(value) || (Array.isArray(value) && typeof key !== 'string')) {
    throw new JqError(`cannot index ${jqType(value)} with: ${shown(key)}`);
  }
  throw new JqError(`expected an object but got: ${shown(value)}`);
}

/** `.[]` of a value. */
export function iterated(value: JsonValue): readonly JsonValue[] {
  if (Array.isArray(value)) return value;
  if (isObject(value)) {
    const names = Object.keys(value).toSorted();
    return names.map((name) => ownMember(value, name) ?? null);
  }
  throw new JqError(`cannot iterate over: ${shown(value)}`);
}

/** `.[from:to]` of a value. */
export function cutOut(value: JsonValue, from: JsonValue, to: JsonValue): JsonValue {
  if (value === null) return null;
  if (typeof value !== 'string' && !Array.isArray(value)) {
    throw new JqError(`expected an array but got: ${shown(value)}`);
  }
  const place = (end: JsonValue, round: (n: number) => number): number | undefined => {
    if (end === null) return undefined;
    if (typeof end !== 'number') throw new JqError(`expected a number but got: ${shown(end)}`);
    return round(end);
  };
  const start = place(from, Math.floor);
  const end = place(to, Math.ceil);
  return typeof value === 'string'
    ? Array.from(value).slice(start, end).join('')
    : value.slice(start, end);
}
