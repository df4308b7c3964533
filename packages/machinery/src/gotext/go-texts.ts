/** Values as the Go programs print them in error texts. */
import { ownMember } from '@megaplane/base/members';
import { isObject, type JsonValue } from '../json/json-value.ts';
import { doubleText } from './go-floats.ts';
import { isGoInt, int64Text } from '../json/go-integers.ts';

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
