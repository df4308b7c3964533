/** Values as the Go programs print them in error texts. */
import { ownMember } from '@megaplane/base/members';
import { doubleText } from './standard-library.ts';
import { isObject, type JsonValue } from '../../json/json-value.ts';

const INT64_END = 2 ** 63;

/** Whether Go holds a number of a JSON text as an int64; all others are float64. */
export function isGoInt(value: number | bigint): boolean {
  if (typeof value === 'bigint') return true;
  return Number.isInteger(value) && value < INT64_END && value >= -INT64_END;
}

/** What Go makes of a float64 as an int64 on amd64: what is out of range is the least of all. */
export function toInt64(value: number | bigint): number | bigint {
  if (typeof value === 'bigint') return value;
  const whole = Math.trunc(value);
  if (Number.isSafeInteger(whole)) return whole;
  return isGoInt(whole) ? BigInt(whole) : -(2n ** 63n);
}

/** An int64 in full: the last digits of large ones, too. */
export function int64Text(value: number | bigint): string {
  return Number.isSafeInteger(value) ? String(value) : String(BigInt(value));
}

/** `%v` of a number that came as JSON: an int64 where it is one, else a float64. */
export function goNumber(value: number | bigint): string {
  return isGoInt(value) ? int64Text(value) : doubleText(Number(value));
}

const ESCAPES: Readonly<Record<string, string>> = {
  '<': '\\u003c',
  '>': '\\u003e',
  '&': '\\u0026',
  '\u2028': '\\u2028',
  '\u2029': '\\u2029',
};

/** `json.Marshal`: members sorted, and what HTML could take for markup escaped. */
export function goJson(value: JsonValue | undefined): string {
  const text = JSON.stringify(sorted(value ?? null));
  return text.replaceAll(/[<>&\u2028\u2029]/g, (one) => ownMember(ESCAPES, one) ?? one);
}

function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const names = Object.keys(value).sort();
  return Object.fromEntries(names.map((name) => [name, sorted(ownMember(value, name) ?? null)]));
}
