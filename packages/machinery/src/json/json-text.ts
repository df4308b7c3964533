/**
 * JSON text as values and back, as Go's decoders read what they know no type of: an integer that 64
 * bits hold keeps its digits, every other number is a double.
 *
 *     7                      7            safe integers stay plain numbers
 *     9007199254740993       9007199254740993n
 *     9223372036854775808    9223372036854775808 (a double: 64 bits do not hold it)
 *     1e3, 1.0               1000, 1
 *     "\ud800"               "\ufffd"     half a character
 *
 * `JSON.stringify` writes such values with all their digits once this file is loaded, and nothing
 * makes them that has not loaded it.
 */
import { parseNested } from '@megaplane/base/nested-json';
import { isUtf8 } from 'node:buffer';
import { readJson } from './json-reader.ts';
import type { JsonValue } from './json-value.ts';

/** Digits of the least integer that a double may round. */
const ROUNDED_DIGITS = 16;
const ZERO = 0x30;
const NINE = 0x39;

interface RawJson {
  rawJSON(text: string): unknown;
}

Object.defineProperty(BigInt.prototype, 'toJSON', {
  configurable: true,
  writable: true,
  value(this: bigint): unknown {
    return (JSON as unknown as RawJson).rawJSON(this.toString());
  },
});

/** Parses JSON. Throws a SyntaxError, as `JSON.parse` does. */
export function parseJson(text: string): JsonValue {
  const whole = withWholeCharacters(text);
  const value = parseNested(whole) as JsonValue;
  return hasLongNumber(whole) ? (readJson(whole) ?? value) : value;
}

/** An integer as JSON values have it: a plain number where that is exact. */
export function wholeNumber(value: bigint): number | bigint {
  const plain = Number(value);
  return Number.isSafeInteger(plain) ? plain : value;
}

/**
 * True for a text with a row of digits that a double may round, in strings, too. Every such row
 * crosses a place that is looked at, so that nearly all of the text is passed over.
 */
function hasLongNumber(text: string): boolean {
  for (let at = ROUNDED_DIGITS - 1; at < text.length; at += ROUNDED_DIGITS) {
    if (!isDigit(text.charCodeAt(at))) continue;
    let first = at;
    while (isDigit(text.charCodeAt(first - 1))) first--;
    let last = at;
    while (isDigit(text.charCodeAt(last + 1))) last++;
    if (last - first >= ROUNDED_DIGITS - 1) return true;
  }
  return false;
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}

/** Any escape, so that a backslash that stands for itself is not taken for the begin of one. */
const ESCAPES =
  /\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)/gs;
const HALF = /^\\u[dD][89a-fA-F][0-9a-fA-F]{2}$/;

/** Escaped halves of characters stand for U+FFFD, as Go's decoder has it. */
export function withWholeCharacters(text: string): string {
  if (!text.includes('\\u') || !/\\u[dD][89a-fA-F]/.test(text)) return text;
  return text.replaceAll(ESCAPES, (escape) => (HALF.test(escape) ? '\\ufffd' : escape));
}

/** Bytes as text: each byte that is no part of UTF-8 stands for U+FFFD, as Go has it. */
export function decodedText(bytes: Buffer, start = 0, end: number = bytes.length): string {
  const text = bytes.toString('utf8', start, end);
  // one replacement may stand for several bytes there
  if (!text.includes('\ufffd') || isUtf8(bytes.subarray(start, end))) return text;
  return replacedText(bytes, start, end);
}

function replacedText(bytes: Buffer, start: number, end: number): string {
  let text = '';
  let from = start;
  for (let at = start; at < end;) {
    const size = sequenceLength(bytes[at] ?? 0);
    if (at + size <= end && isUtf8(bytes.subarray(at, at + size))) at += size;
    else {
      text += `${bytes.toString('utf8', from, at)}\ufffd`;
      from = ++at;
    }
  }
  return text + bytes.toString('utf8', from, end);
}

/** Bytes of the character that begins with such a byte. */
function sequenceLength(byte: number): number {
  if (byte < 0xc0) return 1;
  return byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}
