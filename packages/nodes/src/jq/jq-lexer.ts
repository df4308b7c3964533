/** Tokens of a jq expression. Source of the rules: the jq 1.7 manual, as gojq implements it. */

import { ownMember } from '@megaplane/base/members';
import type { JsonValue } from '@megaplane/machinery/json-value';

/** Why an expression cannot be read, or what goes wrong when it runs. */
export class JqError extends Error {
  /** What `try … catch` sees. */
  readonly value: JsonValue;

  constructor(message: string, value: JsonValue = message) {
    super(message);
    this.value = value;
  }
}

export type JqToken =
  | { readonly kind: 'number'; readonly value: number; readonly at: number }
  /** Text and the expressions between, as `\(…)` has them: text, source, text, source, …, text. */
  | { readonly kind: 'string'; readonly parts: readonly string[]; readonly at: number }
  | { readonly kind: 'field'; readonly name: string; readonly at: number }
  | { readonly kind: 'variable'; readonly name: string; readonly at: number }
  | { readonly kind: 'word'; readonly name: string; readonly at: number }
  /** `@base64` and its like, with their `@`. */
  | { readonly kind: 'format'; readonly name: string; readonly at: number }
  | { readonly kind: 'mark'; readonly text: string; readonly at: number };

const SPACE = /(\s|#[^\n]*)+/y;
const NUMBER = /(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?/y;
const FIELD = /\.[A-Za-z_]\w*/y;
const VARIABLE = /\$[A-Za-z_]\w*/y;
const WORD = /[A-Za-z_]\w*/y;
const FORMAT = /@[A-Za-z0-9_]+/y;
const MARK = /\.\.|\?\/\/|\/\/=|\/\/|==|!=|<=|>=|[|+*/%-]=|[.[\]{}(),:;|?+*/%<>=-]/y;

/** The tokens of an expression; throws a JqError. */
export function jqTokens(source: string): JqToken[] {
  const tokens: JqToken[] = [];
  let at = 0;
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    const found = pattern.exec(source)?.[0];
    if (found !== undefined) at += found.length;
    return found;
  };
  while (at < source.length) {
    if (take(SPACE) !== undefined) continue;
    const place = at;
    if (source[at] === '"') {
      const { parts, end } = readString(source, at);
      tokens.push({ kind: 'string', parts, at: place });
      at = end;
      continue;
    }
    const number = take(NUMBER);
    if (number !== undefined) {
      tokens.push({ kind: 'number', value: Number(number), at: place });
      continue;
    }
    const field = take(FIELD);
    if (field !== undefined) {
      tokens.push({ kind: 'field', name: field.slice(1), at: place });
      continue;
    }
    const variable = take(VARIABLE);
    if (variable !== undefined) {
      tokens.push({ kind: 'variable', name: variable, at: place });
      continue;
    }
    const word = take(WORD);
    if (word !== undefined) {
      tokens.push({ kind: 'word', name: word, at: place });
      continue;
    }
    const format = take(FORMAT);
    if (format !== undefined) {
      tokens.push({ kind: 'format', name: format, at: place });
      continue;
    }
    const mark = take(MARK);
    if (mark === undefined) {
      throw new JqError(`unexpected token ${JSON.stringify(source[at])} at ${at + 1}`);
    }
    tokens.push({ kind: 'mark', text: mark, at: place });
  }
  return tokens;
}

const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

function readString(
  source: string,
  start: number,
): { readonly parts: string[]; readonly end: number } {
  const parts: string[] = [];
  let text = '';
  let at = start + 1;
  for (;;) {
    const one = source[at];
    if (one === undefined) throw new JqError('unterminated string literal');
    if (one === '"') {
      parts.push(text);
      return { parts, end: at + 1 };
    }
    if (one !== '\\') {
      text += one;
      at++;
      continue;
    }
    const escape = source[at + 1] ?? '';
    const plain = ownMember(ESCAPES, escape);
    if (plain !== undefined) {
      text += plain;
      at += 2;
    } else if (escape === '(') {
      const end = endOfInsertion(source, at + 2);
      parts.push(text, source.slice(at + 2, end));
      text = '';
      at = end + 1;
    } else {
      const hex = /^u([0-9a-fA-F]{4})/.exec(source.slice(at + 1, at + 6))?.[1];
      if (hex === undefined) throw new JqError(`invalid escape sequence "\\${escape}"`);
      text += String.fromCharCode(Number.parseInt(hex, 16));
      at += 6;
    }
  }
}

function endOfInsertion(source: string, start: number): number {
  let depth = 1;
  for (let at = start; at < source.length; at++) {
    if (source[at] === '"') at = readString(source, at).end - 1;
    else if (source[at] === '(') depth++;
    else if (source[at] === ')' && --depth === 0) return at;
  }
  throw new JqError('unterminated string literal');
}
