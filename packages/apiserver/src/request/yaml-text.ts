/**
 * JSON values as YAML, printed as upstream's library prints them: keys in natural order, lists not
 * indented, strings plain where they stay strings, long ones folded at the first space after column
 * 80. The rules are libyaml's and go-yaml's (version 2).
 */
import { ownMember } from '@megaplane/base/members';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { doubleText } from '@megaplane/machinery/go-floats';

/** Strings are folded at the first space beyond this column. */
const WIDTH_MAX = 80;
/** Keys above this length stand after a question mark. */
const SIMPLE_KEY_LENGTH_MAX = 128;

/** Digits of a number in a key by which it is put in order: more are infinity. */
const NUMBER_DIGITS_MAX = 310;

/** Words that YAML 1.1 reads as something else than a string. */
const WORDS: ReadonlySet<string> = new Set([
  ...['', '~', 'y', 'Y', 'n', 'N', '.nan', '.NaN', '.NAN'],
  ...['yes', 'no', 'on', 'off', 'true', 'false', 'null'].flatMap((word) => [
    word,
    word.charAt(0).toUpperCase() + word.slice(1),
    word.toUpperCase(),
  ]),
  ...['', '+', '-'].flatMap((sign) => ['.inf', '.Inf', '.INF'].map((word) => sign + word)),
]);
const FLOAT = /^[-+]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)([eE][-+][0-9]+)?$/;
const INTEGER = /^[-+]?(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO]?[0-7_]+|[0-9][0-9_]*)$/;
const BASE_60 = /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/;
const ZONE = String.raw`(?:[ \t]*(?:Z|[-+]\d\d?(?::\d\d)?))?`;
const CLOCK = String.raw`(?:[Tt]|[ \t]+)\d{1,2}:\d{1,2}:\d{1,2}(?:\.\d*)?`;
const TIMESTAMP = new RegExp(String.raw`^\d{4}-\d{1,2}-\d{1,2}(?:${CLOCK}${ZONE})?$`);
/** What cannot begin a plain string. */
const FIRST = /^[#,[\]{}&*!|>'"%@`]|^[?:-](?=[ \n]|$)|^---|^\.\.\./;
/** What cannot be inside of one. */
const INSIDE = /:(?=[ \n]|$)|[ \n]#|^ | $/;
/** What only double quotes can hold; breaks of lines, which readers fold elsewhere, among it. */
const SPECIAL = /[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd]|\ufeff/u;
/** Lines that cannot stand as they are: their spaces would be lost to an editor. */
const TRAILING = / (?=\n|$)/;

/**
 * The document, with a line feed at its end, however long it becomes: of a client's objects,
 * `yamlText` of `printed-text.ts`.
 */
export function printYaml(value: JsonValue): string {
  const printer = new Printer();
  printer.value(value, 0, false);
  return printer.text;
}

class Printer {
  text = '';
  /** Letters of the last line: to look for them in the text would join all of it each time. */
  #column = 0;

  /** `isInline`: the value begins on a line that has something before it. */
  value(value: JsonValue, indent: number, isInline: boolean): void {
    if (Array.isArray(value) && value.length > 0) this.#list(value, indent, isInline);
    else if (isObject(value) && Object.keys(value).length > 0) this.#map(value, indent, isInline);
    else this.#line(scalar(value, indent, this.#column));
  }

  #list(items: readonly JsonValue[], indent: number, isInline: boolean): void {
    for (const [index, item] of items.entries()) {
      this.#put(index === 0 && isInline ? '- ' : `${' '.repeat(indent)}- `);
      this.value(item, indent + 2, true);
    }
  }

  #map(object: JsonObject, indent: number, isInline: boolean): void {
    const names = Object.keys(object).sort(compareKeys);
    for (const [index, name] of names.entries()) {
      if (index > 0 || !isInline) this.#put(' '.repeat(indent));
      const key = styled(name, true, indent + 2, 0);
      if (key.length > SIMPLE_KEY_LENGTH_MAX || key.endsWith('\n')) {
        this.#line(`? ${key}`);
        this.#put(`${' '.repeat(indent)}:`);
      } else this.#put(`${key}:`);
      this.#member(ownMember(object, name) ?? null, indent);
    }
  }

  #member(value: JsonValue, indent: number): void {
    if (Array.isArray(value) && value.length > 0) {
      this.#put('\n');
      this.#list(value, indent, false);
    } else if (isObject(value) && Object.keys(value).length > 0) {
      this.#put('\n');
      this.#map(value, indent + 2, false);
    } else {
      this.#put(' ');
      this.#line(scalar(value, indent + 2, this.#column));
    }
  }

  #put(text: string): void {
    const line = text.lastIndexOf('\n') + 1;
    this.#column = line === 0 ? this.#column + text.length : text.length - line;
    this.text += text;
  }

  #line(text: string): void {
    this.#put(text.endsWith('\n') ? text : `${text}\n`);
  }
}

function scalar(value: JsonValue, indent: number, column: number): string {
  if (typeof value === 'string') return styled(value, false, indent, column);
  if (Array.isArray(value)) return '[]';
  if (typeof value === 'number') return numberText(value);
  return isObject(value) ? '{}' : String(value);
}

/** What JSON writes as an integer of 64 bits stays one, with a sign or without. */
function numberText(value: number): string {
  const isInteger = Number.isInteger(value) && value >= -(2 ** 63) && value < 2 ** 64;
  return isInteger ? JSON.stringify(value) : doubleText(value);
}

function styled(text: string, isKey: boolean, indent: number, column: number): string {
  const isSpecial = SPECIAL.test(text);
  if (text.includes('\n') && !isSpecial && !TRAILING.test(text)) return literal(text, indent);
  if (text.includes('\n') || isSpecial || !isString(text)) {
    return doubleQuoted(text, isKey, indent, column);
  }
  if (!FIRST.test(text) && !INSIDE.test(text)) return folded(text, isKey, indent, column);
  return `'${folded(text.replaceAll("'", "''"), isKey, indent, column + 1)}'`;
}

/** True where the text, written bare, is read as a string again. */
function isString(text: string): boolean {
  if (WORDS.has(text)) return false;
  if (!/^[-+.0-9]/.test(text)) return true;
  const plain = text.replaceAll('_', '');
  return !(FLOAT.test(plain) || INTEGER.test(plain) || BASE_60.test(text) || TIMESTAMP.test(text));
}

/** Breaks the line at the first single space beyond the width. */
function folded(text: string, isKey: boolean, indent: number, column: number): string {
  if (isKey || column + text.length <= WIDTH_MAX) return text;
  let out = '';
  let at = column;
  for (let index = 0; index < text.length; index++) {
    const isSingle = text[index] === ' ' && text[index + 1] !== ' ' && text[index - 1] !== ' ';
    if (isSingle && at > WIDTH_MAX && index > 0 && index < text.length - 1) {
      out += `\n${' '.repeat(Math.max(indent, 2))}`;
      at = Math.max(indent, 2);
    } else {
      out += text[index] ?? '';
      at++;
    }
  }
  return out;
}

function doubleQuoted(text: string, isKey: boolean, indent: number, column: number): string {
  let escaped = '';
  for (const letter of text) escaped += ESCAPES.get(letter) ?? escapedLetter(letter);
  return `"${folded(escaped, isKey, indent, column + 1)}"`;
}

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['\0', '\\0'],
  ['\u0007', '\\a'],
  ['\b', '\\b'],
  ['\t', '\\t'],
  ['\n', '\\n'],
  ['\v', '\\v'],
  ['\f', '\\f'],
  ['\r', '\\r'],
  ['\u001b', '\\e'],
  ['\u0085', '\\N'],
  ['\u2028', '\\L'],
  ['\u2029', '\\P'],
  ['"', '\\"'],
  ['\\', '\\\\'],
]);

function escapedLetter(letter: string): string {
  if (!SPECIAL.test(letter)) return letter;
  const code = letter.codePointAt(0) ?? 0;
  if (code <= 0xff) return `\\x${hex(code, 2)}`;
  return code <= 0xffff ? `\\u${hex(code, 4)}` : `\\U${hex(code, 8)}`;
}

function hex(code: number, digits: number): string {
  return code.toString(16).toUpperCase().padStart(digits, '0');
}

/** Lines as they are, below a mark that says how the text ends. */
function literal(text: string, indent: number): string {
  const start = /^[ \n]/.test(text) ? '2' : '';
  const end = text.endsWith('\n\n') || text === '\n' ? '+' : text.endsWith('\n') ? '' : '-';
  const space = ' '.repeat(Math.max(indent, 2));
  const lines = (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n');
  return `|${start}${end}\n${lines.map((line) => (line === '' ? '' : space + line)).join('\n')}\n`;
}

/** Letters by their code, after what is no letter; numbers by their value. */
function compareKeys(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  let at = 0;
  while (at < length && a.charCodeAt(at) === b.charCodeAt(at)) at++;
  if (at === length) return a.length - b.length;
  // both halves of a pair are one letter
  if (at > 0 && isLowHalf(a.charCodeAt(at)) && isLowHalf(b.charCodeAt(at))) at--;
  const one = String.fromCodePoint(a.codePointAt(at) ?? 0);
  const other = String.fromCodePoint(b.codePointAt(at) ?? 0);
  const isLetter = /\p{L}/u.test(one);
  if (isLetter !== /\p{L}/u.test(other)) return isLetter ? 1 : -1;
  const numbers = isLetter ? 0 : compareNumbers(numberAt(a, at), numberAt(b, at));
  return numbers === 0 ? (one < other ? -1 : 1) : numbers;
}

function isLowHalf(code: number): boolean {
  return code >= 0xdc00 && code < 0xe000;
}

function compareNumbers(one: number, other: number): number {
  return one === other ? 0 : one - other;
}

function numberAt(text: string, at: number): number {
  let end = at;
  while (end < text.length && end - at < NUMBER_DIGITS_MAX && isDigit(text.charCodeAt(end))) end++;
  return end === at ? 0 : Number(text.slice(at, end));
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}
