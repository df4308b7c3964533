/**
 * Reads JSON that `JSON.parse` has taken once more, with an eye on how its numbers are written. A
 * reviver of `JSON.parse` tells that, too, and takes twenty times as long.
 */
import { JSON_DEPTH_MAX, parseNested } from '@megaplane/base/nested-json';
import { type JsonObject, type JsonValue, setMember } from './json-value.ts';

/** Told of each number that is no safe integer in plain digits. */
export type NumberListener = (holder: object, key: string, source: string) => void;

/** The value of valid JSON; undefined where it is nested too deep for anybody. */
export function readJson(text: string, onNumber?: NumberListener): JsonValue | undefined {
  return new Reader(text, onNumber).whole();
}

/** How a number has to look to be beyond what a double holds. */
const MAYBE_INFINITE = /[eE]\+?\d{3}|\d{309}/;

/** The first number of valid JSON that no double holds, as it is written. */
export function infiniteNumber(text: string): string | undefined {
  if (!MAYBE_INFINITE.test(text)) return undefined;
  let found: string | undefined;
  readJson(text, (_holder, _key, source) => {
    if (!Number.isFinite(Number(source))) found ??= source;
  });
  return found;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const MINUS = 0x2d;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;
const BRACKET_OPEN = 0x5b;
const BRACKET_CLOSE = 0x5d;
const COLON = 0x3a;
const COMMA = 0x2c;
const SPACE = 0x20;
const LOWER_F = 0x66;
const LOWER_N = 0x6e;
const LOWER_T = 0x74;
const PLAIN = /^-?\d{1,15}$/;

class Reader {
  readonly #text: string;
  readonly #onNumber: NumberListener | undefined;
  #at = 0;
  #depth = 0;

  constructor(text: string, onNumber: NumberListener | undefined) {
    this.#text = text;
    this.#onNumber = onNumber;
  }

  whole(): JsonValue | undefined {
    const top: JsonObject = {};
    const value = this.#value(top, '');
    return this.#depth > JSON_DEPTH_MAX ? undefined : value;
  }

  /** The next letter that is no space, which stays the next one. */
  #peek(): number {
    let code = this.#text.charCodeAt(this.#at);
    while (code <= SPACE || code === COMMA || code === COLON) {
      code = this.#text.charCodeAt(++this.#at);
    }
    return code;
  }

  #value(holder: object, key: string): JsonValue {
    const code = this.#peek();
    if (code === QUOTE) return this.#string();
    if (code === BRACE_OPEN) return this.#object();
    if (code === BRACKET_OPEN) return this.#list();
    if (code === LOWER_T || code === LOWER_N) {
      this.#at += 4;
      return code === LOWER_T ? true : null;
    }
    if (code === LOWER_F) {
      this.#at += 5;
      return false;
    }
    return this.#number(holder, key);
  }

  #object(): JsonValue {
    const object: JsonObject = {};
    this.#at++;
    if (++this.#depth > JSON_DEPTH_MAX) return null;
    while (this.#peek() !== BRACE_CLOSE) {
      const key = this.#string();
      const value = this.#value(object, key);
      if (this.#depth > JSON_DEPTH_MAX) return null;
      setMember(object, key, value);
    }
    this.#at++;
    this.#depth--;
    return object;
  }

  #list(): JsonValue {
    const list: JsonValue[] = [];
    this.#at++;
    if (++this.#depth > JSON_DEPTH_MAX) return null;
    while (this.#peek() !== BRACKET_CLOSE) {
      list.push(this.#value(list, this.#onNumber === undefined ? '' : String(list.length)));
      if (this.#depth > JSON_DEPTH_MAX) return null;
    }
    this.#at++;
    this.#depth--;
    return list;
  }

  #string(): string {
    const text = this.#text;
    const start = this.#at + 1;
    let end = text.indexOf('"', start);
    let isPlain = true;
    for (let at = start; at < end; at++) {
      if (text.charCodeAt(at) !== BACKSLASH) continue;
      isPlain = false;
      // what is behind it may be a quote
      if (++at === end) end = text.indexOf('"', end + 1);
    }
    this.#at = end + 1;
    return isPlain
      ? text.slice(start, end)
      : (parseNested(text.slice(start - 1, end + 1)) as string);
  }

  #number(holder: object, key: string): JsonValue {
    const start = this.#at;
    let code = this.#text.charCodeAt(start);
    // digits, signs, points and exponents are what a number is made of
    while (isOfNumber(code)) code = this.#text.charCodeAt(++this.#at);
    const source = this.#text.slice(start, this.#at);
    if (PLAIN.test(source)) return Number(source);
    const value = exactNumber(source);
    this.#onNumber?.(holder, key, source);
    return value;
  }
}

function isOfNumber(code: number): boolean {
  if (code >= 0x30 && code <= 0x39) return true;
  return code === MINUS || code === 0x2b || code === 0x2e || (code | 0x20) === 0x65;
}

/** A number as it is written: with all its digits where 64 bits hold an integer. */
export function exactNumber(source: string): number | bigint {
  const value = Number(source);
  if (Number.isSafeInteger(value) || !/^-?\d{1,19}$/.test(source)) return value;
  const exact = BigInt(source);
  return BigInt.asIntN(64, exact) === exact ? exact : value;
}
