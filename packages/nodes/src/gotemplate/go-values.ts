/**
 * Values as templates see them, and what Go's template package and `fmt` make of them.
 *
 * | here | in Go |
 * |---|---|
 * | undefined | no value: a member that is not there |
 * | null | nil |
 * | boolean, string | bool, string |
 * | bigint | int |
 * | GoInt64 | int64: for Go no int, though equal to one |
 * | GoFloat | float64 |
 * | GoTime | time.Time |
 * | number | json.Number: a number of the object, a *string* for `eq` and truth |
 * | array, object | []any, map[string]any |
 */

import { ownMember } from '@megaplane/base/members';
import { GoTime } from './go-time.ts';
import { wholeNumber } from '@megaplane/machinery/json-text';

/** A float64; numbers of objects are json.Number and so are something else. */
export class GoFloat {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }
}

/** An int64: what sprig computes. */
export class GoInt64 {
  readonly value: bigint;

  constructor(value: bigint) {
    this.value = value;
  }
}

export interface GoMap {
  readonly [name: string]: GoValue;
}
export type GoValue =
  | undefined
  | null
  | boolean
  | string
  | number
  | bigint
  | GoFloat
  | GoInt64
  | GoTime
  | readonly GoValue[]
  | GoMap;

export function isList(value: GoValue): value is readonly GoValue[] {
  return Array.isArray(value);
}

export function isMap(value: GoValue): value is GoMap {
  if (typeof value !== 'object' || value === null || isList(value)) return false;
  return !(value instanceof GoFloat || value instanceof GoInt64 || value instanceof GoTime);
}

/** Own members only: a name such as `constructor` is not there. */
export function memberOf(map: GoMap, name: string): GoValue {
  return Object.hasOwn(map, name) ? map[name] : undefined;
}

/** Whether `if` takes the value for true: not the zero value of its type. */
export function isTrue(value: GoValue): boolean {
  if (value === undefined || value === null) return false;
  if (typeof value === 'boolean') return value;
  if (typeof value === 'string') return value !== '';
  if (typeof value === 'bigint') return value !== 0n;
  // A json.Number is a text, and never an empty one.
  if (typeof value === 'number') return true;
  if (value instanceof GoFloat) return value.value !== 0;
  if (value instanceof GoInt64) return value.value !== 0n;
  if (value instanceof GoTime) return true;
  return isList(value) ? value.length > 0 : Object.keys(value).length > 0;
}

/** The value as `{{ }}` prints it. */
export function printed(value: GoValue): string {
  return value === undefined || value === null ? '<no value>' : formatted(value);
}

/** The value as `fmt.Sprint` writes it (`%v`). */
export function formatted(value: GoValue): string {
  if (value === undefined || value === null) return '<nil>';
  if (typeof value === 'number') return JSON.stringify(value);
  if (value instanceof GoFloat) return floatText(value.value);
  if (value instanceof GoInt64) return String(value.value);
  if (value instanceof GoTime) return value.text;
  if (isList(value)) return `[${value.map(formatted).join(' ')}]`;
  if (isMap(value)) {
    const members = Object.keys(value).toSorted();
    const texts = members.map((name) => `${name}:${formatted(ownMember(value, name))}`);
    return `map[${texts.join(' ')}]`;
  }
  return String(value);
}

/** The shortest text of a float64; with an exponent below 1e-4 and from 1e6 on (`%v`). */
function floatText(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  if (value === 0) return Object.is(value, -0) ? '-0' : '0';
  const [digits = '', exponent = '0'] = value.toExponential().split('e');
  const power = Number(exponent);
  if (power >= -4 && power < 6) return plainDigits(value);
  const sign = power < 0 ? '-' : '+';
  return `${digits}e${sign}${String(Math.abs(power)).padStart(2, '0')}`;
}

function plainDigits(value: number): string {
  const text = String(value);
  return text.includes('e') ? value.toFixed(20).replace(/0+$/, '') : text;
}

/** The type as Go names it, for messages. */
export function typeName(value: GoValue): string {
  if (value === undefined || value === null) return '<nil>';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'number') return 'json.Number';
  if (typeof value === 'bigint') return 'int';
  if (typeof value === 'string') return 'string';
  if (value instanceof GoFloat) return 'float64';
  if (value instanceof GoInt64) return 'int64';
  if (value instanceof GoTime) return 'time.Time';
  return isList(value) ? '[]interface {}' : 'map[string]interface {}';
}

/** The value as JSON: what `Quote`, `toJson` and `YAML` write. */
export function jsonOf(value: GoValue): unknown {
  if (value === undefined) return null;
  if (typeof value === 'bigint') return wholeNumber(value);
  if (value instanceof GoFloat) return value.value;
  if (value instanceof GoInt64) return wholeNumber(value.value);
  if (value instanceof GoTime) return value.rfc3339;
  if (isList(value)) return value.map(jsonOf);
  if (isMap(value)) {
    const entries = Object.keys(value).toSorted();
    return Object.fromEntries(entries.map((name) => [name, jsonOf(ownMember(value, name))]));
  }
  return value;
}

/** Something parsed from JSON whose numbers are float64, as `fromJson` gives it. */
export function withFloats(value: unknown): GoValue {
  if (typeof value === 'number') return new GoFloat(value);
  if (Array.isArray(value)) return value.map(withFloats);
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [name, withFloats(member)]),
    );
  }
  return value as GoValue;
}
