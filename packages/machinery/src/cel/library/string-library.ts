/** Strings: cel-go's extension (character access, case, cutting, joining, quoting, format). */
import { ownMember } from '@megaplane/base/members';
import type { Library } from '../values/functions.ts';
import { TEXT_LENGTH_MAX, TOO_LONG_TEXT } from '../values/made-values.ts';
import { durationText, timestampText } from '../values/time-library.ts';
import {
  ArrayList,
  CelError,
  CelList,
  CelMap,
  compare,
  Duration,
  Timestamp,
  TypeValue,
  typeNameOf,
  Uint,
  type CelValue,
} from '../values/values.ts';
import { doubleText } from '../../gotext/go-floats.ts';

/** Digits after the point that a format may ask for. */
const PRECISION_MAX = 1000;

function charAt(text: string, at: bigint): CelValue {
  const runes = Array.from(text);
  if (at < 0n || at > runes.length) return new CelError(`index out of range: ${at}`);
  return runes[Number(at)] ?? '';
}

function indexOf(text: string, part: string, from = 0n): CelValue {
  const runes = Array.from(text);
  if (part === '') return from;
  if (from < 0n) return new CelError(`index out of range: ${from}`);
  const wanted = Array.from(part);
  for (let at = Number(from); at + wanted.length <= runes.length; at++) {
    if (wanted.every((rune, index) => runes[at + index] === rune)) return BigInt(at);
  }
  return -1n;
}

function lastIndexOf(text: string, part: string, from?: bigint): CelValue {
  const runes = Array.from(text);
  const length = BigInt(runes.length);
  if (part === '') return from ?? length;
  if (from !== undefined && from < 0n) return new CelError(`index out of range: ${from}`);
  if (from !== undefined && from >= length) return -1n;
  const wanted = Array.from(part);
  const last = Math.min(Number(from ?? length), runes.length - wanted.length);
  for (let at = last; at >= 0; at--) {
    if (wanted.every((rune, index) => runes[at + index] === rune)) return BigInt(at);
  }
  return -1n;
}

function substring(text: string, from: bigint, to?: bigint): CelValue {
  const runes = Array.from(text);
  const end = to ?? BigInt(runes.length);
  if (to !== undefined && from > end)
    return new CelError(`invalid substring range. start: ${from}, end: ${end}`);
  if (from < 0n || from > runes.length) return new CelError(`index out of range: ${from}`);
  if (end < 0n || end > runes.length) return new CelError(`index out of range: ${end}`);
  return runes.slice(Number(from), Number(end)).join('');
}

function replace(text: string, old: string, next: string, limit = -1n): CelValue {
  if (limit === 0n) return text;
  const max = limit < 0n ? Infinity : Number(limit);
  const parts = old === '' ? Array.from(text) : text.split(old);
  const count = Math.min(max, old === '' ? parts.length + 1 : parts.length - 1);
  if (text.length + count * (next.length - old.length) > TEXT_LENGTH_MAX) return TOO_LONG_TEXT;
  if (old === '') {
    let made = '';
    for (let at = 0; at <= parts.length; at++) made += (at < max ? next : '') + (parts[at] ?? '');
    return made;
  }
  let made = parts[0] ?? '';
  for (let at = 1; at < parts.length; at++) made += (at <= max ? next : old) + (parts[at] ?? '');
  return made;
}

function split(text: string, by: string, limit = -1n): CelValue {
  if (limit === 0n) return new ArrayList([]);
  if (limit === 1n) return new ArrayList([text]);
  const parts = by === '' ? Array.from(text) : text.split(by);
  if (limit < 0n || parts.length <= limit) return new ArrayList(parts);
  const head = parts.slice(0, Number(limit) - 1);
  return new ArrayList([...head, parts.slice(Number(limit) - 1).join(by)]);
}

function join(list: CelList, by = ''): CelValue {
  const parts: string[] = [];
  let length = 0;
  for (let i = 0; i < list.length; i++) {
    const part = list.at(i);
    if (typeof part !== 'string') return new CelError('no such overload');
    length += part.length + by.length;
    if (length > TEXT_LENGTH_MAX) return TOO_LONG_TEXT;
    parts.push(part);
  }
  return parts.join(by);
}

const trim = (text: string): CelValue =>
  text.replace(/^\p{White_Space}+/u, '').replace(/(?<!\p{White_Space})\p{White_Space}+$/u, '');

const ESCAPES: Readonly<Record<string, string>> = {
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
  '"': '\\"',
};

function quote(text: string): CelValue {
  let made = '"';
  for (const rune of text.toWellFormed()) made += ownMember(ESCAPES, rune) ?? rune;
  return `${made}"`;
}

const ascii = (text: string, isUpper: boolean): string =>
  text.replaceAll(isUpper ? /[a-z]+/g : /[A-Z]+/g, (part) =>
    isUpper ? part.toUpperCase() : part.toLowerCase(),
  );

/** One clause of a format: `%[.precision]verb`. */
const CLAUSE = /%(?:\.(\d+))?([%sdfexXob]|.?)/gsu;

function format(text: string, list: CelList): CelValue {
  let at = 0;
  let failure: CelError | null = null;
  let length = text.length;
  const made = text.replaceAll(CLAUSE, (clause: string, precision: string, verb: string) => {
    if (verb === '%') return '%';
    if (failure !== null) return '';
    if (at >= list.length) {
      failure = new CelError(`index ${at} out of range`);
      return '';
    }
    const digits = precision === undefined ? 6 : Number(precision);
    const part =
      digits > PRECISION_MAX
        ? new CelError(`precision ${digits} exceeds maximum allowed: ${PRECISION_MAX}`)
        : formatOne(verb, list.at(at++), digits, clause);
    if (typeof part === 'string' && (length += part.length) <= TEXT_LENGTH_MAX) return part;
    failure = typeof part === 'string' ? TOO_LONG_TEXT : part;
    return '';
  });
  return failure ?? made;
}

function formatOne(
  verb: string,
  value: CelValue,
  digits: number,
  clause: string,
): string | CelError {
  const number = value instanceof Uint ? value.value : value;
  switch (verb) {
    case 's':
      return formatText(value);
    case 'd':
      if (typeof number === 'bigint') return String(number);
      if (typeof number === 'number' && !Number.isFinite(number)) return infinite(number);
      return notFor('decimal', 'integers', value);
    case 'f':
    case 'e':
      if (typeof number !== 'number' && typeof number !== 'bigint') {
        return notFor(verb === 'f' ? 'fixed-point' : 'scientific', 'doubles', value);
      }
      return decimals(Number(number), digits, verb);
    case 'b':
      if (typeof number === 'boolean') return number ? '1' : '0';
      if (typeof number === 'bigint') return number.toString(2);
      return asFormatted('binary', 'integers and bools', value);
    case 'o':
      return typeof number === 'bigint' ? number.toString(8) : notFor('octal', 'integers', value);
    case 'x':
    case 'X': {
      const hex = hexText(number);
      if (hex === null) return asFormatted('hex', 'integers, byte buffers, and strings', value);
      return verb === 'X' ? hex.toUpperCase() : hex;
    }
    default:
      return clause === '%' || verb === ''
        ? new CelError('unexpected end of string')
        : new CelError(
            `could not parse formatting clause: unrecognized formatting clause "${verb}"`,
          );
  }
}

function asFormatted(name: string, kinds: string, value: CelValue): CelError {
  return new CelError(
    `error during formatting: only ${kinds} can be formatted as ${name}, ` +
      `was given ${typeNameOf(value)}`,
  );
}

function notFor(name: string, kinds: string, value: CelValue): CelError {
  return new CelError(
    `error during formatting: ${name} clause can only be used on ${kinds}, ` +
      `was given ${typeNameOf(value)}`,
  );
}

function infinite(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  return value > 0 ? 'Infinity' : '-Infinity';
}

function decimals(value: number, digits: number, verb: string): string {
  if (!Number.isFinite(value)) return infinite(value);
  if (verb === 'f') return fixedDigits(value, Math.min(digits, 100));
  const [head = '', power = '0'] = value.toExponential(Math.min(digits, 100)).split('e');
  const sign = power.startsWith('-') ? '-' : '+';
  return `${head}e${sign}${power.replace(/^[+-]/, '').padStart(2, '0')}`;
}

/** Halves go to the even digit, as Go rounds; JavaScript takes the larger. */
function fixedDigits(value: number, digits: number): string {
  const scaled = value * 10 ** digits;
  const isHalf = Math.abs(scaled % 1) === 0.5 && scaled / 10 ** digits === value;
  if (!isHalf) return value.toFixed(digits);
  const floor = Math.floor(scaled);
  return ((floor % 2 === 0 ? floor : floor + 1) / 10 ** digits).toFixed(digits);
}

function hexText(value: CelValue): string | null {
  if (typeof value === 'bigint') return value.toString(16);
  if (typeof value === 'string') return Buffer.from(value).toString('hex');
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : null;
}

function formatText(value: CelValue): string | CelError {
  if (value === null) return 'null';
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean' || typeof value === 'bigint') return String(value);
  if (typeof value === 'number')
    return Number.isFinite(value) ? doubleText(value) : infinite(value);
  if (value instanceof Uint) return String(value.value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8');
  if (value instanceof Timestamp) return timestampText(value);
  if (value instanceof Duration) return durationText(value);
  if (value instanceof TypeValue) return value.name;
  if (value instanceof CelList) return formatList(value);
  if (value instanceof CelMap) return formatMap(value);
  return new CelError(
    'error during formatting: string clause can only be used on strings, bools, bytes, ints, ' +
      'doubles, maps, lists, types, durations, and timestamps, ' +
      `was given ${typeNameOf(value)}`,
  );
}

function formatList(list: CelList): string | CelError {
  const parts: string[] = [];
  for (let i = 0; i < list.length; i++) {
    const part = formatText(list.at(i));
    if (typeof part !== 'string') return part;
    parts.push(part);
  }
  return `[${parts.join(', ')}]`;
}

function formatMap(map: CelMap): string | CelError {
  const parts: string[] = [];
  for (const key of map.keys()) {
    const name = formatText(key);
    const value = formatText(map.get(key) ?? null);
    if (typeof name !== 'string') return name;
    if (typeof value !== 'string') return value;
    parts.push(`${name}: ${value}`);
  }
  return `{${parts.toSorted((left, right) => compare(left, right) ?? 0).join(', ')}}`;
}

export const STRING_LIBRARY: Library = {
  'string_char_at_int: string . charAt(int): string': charAt,
  'string_index_of_string: string . indexOf(string): int': indexOf,
  'string_index_of_string_int: string . indexOf(string, int): int': indexOf,
  'string_last_index_of_string: string . lastIndexOf(string): int': lastIndexOf,
  'string_last_index_of_string_int: string . lastIndexOf(string, int): int': lastIndexOf,
  'string_lower_ascii: string . lowerAscii(): string': (text: string) => ascii(text, false),
  'string_upper_ascii: string . upperAscii(): string': (text: string) => ascii(text, true),
  'string_replace_string_string: string . replace(string, string): string': replace,
  'string_replace_string_string_int: string . replace(string, string, int): string': replace,
  'string_split_string: string . split(string): list(string)': split,
  'string_split_string_int: string . split(string, int): list(string)': split,
  'string_substring_int: string . substring(int): string': substring,
  'string_substring_int_int: string . substring(int, int): string': substring,
  'string_trim: string . trim(): string': trim,
  'list_join: list(string) . join(): string': join,
  'list_join_string: list(string) . join(string): string': join,
  'strings_quote: strings.quote(string): string': quote,
  'string_format: string . format(list(dyn)): string': format,
};
