/**
 * Go's text/template, first step: text and actions, and the tokens inside an action.
 *
 * Source of the rules: the documentation of Go's package text/template and its lexer's behaviour
 * (trim markers need a space beside them, a comment is an action of its own, `.a.b` is one chain
 * only where no space is in between).
 */
import { ownMember } from '@megaplane/base/members';

/** What an action consists of. `at` is the offset in the template. */
export type Token =
  | { readonly kind: 'word'; readonly text: string; readonly at: number }
  | { readonly kind: 'field'; readonly text: string; readonly at: number }
  | { readonly kind: 'variable'; readonly text: string; readonly at: number }
  | { readonly kind: 'number'; readonly text: string; readonly at: number }
  | { readonly kind: 'string'; readonly text: string; readonly at: number }
  | { readonly kind: 'rune'; readonly text: string; readonly at: number }
  | { readonly kind: 'dot'; readonly at: number }
  | { readonly kind: 'space'; readonly at: number }
  | {
      readonly kind: 'mark';
      readonly text: '(' | ')' | '|' | ',' | '=' | ':=';
      readonly at: number;
    };

/** A template is a row of these. */
export type Piece =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'action'; readonly tokens: readonly Token[]; readonly at: number };

/** What is wrong with a template, with the line, in the words of Go's package. */
export class TemplateError extends Error {}

const OPEN = '{{';
const CLOSE = '}}';
const TRIMMED_START = /^-[ \t\r\n]/;
const TRIMMED_END = /[ \t\r\n]-$/;

/** The 1-based line of an offset. */
export function lineOf(source: string, at: number): number {
  let line = 1;
  for (let i = source.indexOf('\n'); i >= 0 && i < at; i = source.indexOf('\n', i + 1)) line++;
  return line;
}

/** A TemplateError at an offset of `source`. */
export function templateError(source: string, at: number, what: string): TemplateError {
  return new TemplateError(`template: _:${lineOf(source, at)}: ${what}`);
}

/** Splits a template; throws a TemplateError. */
export function splitTemplate(source: string): Piece[] {
  const pieces: Piece[] = [];
  let at = 0;
  let trimsNext = false;
  for (;;) {
    const open = source.indexOf(OPEN, at);
    let text = source.slice(at, open < 0 ? source.length : open);
    if (trimsNext) text = text.trimStart();
    if (open < 0) {
      if (text !== '') pieces.push({ kind: 'text', text });
      return pieces;
    }
    const end = endOfAction(source, open + OPEN.length);
    let inner = source.slice(open + OPEN.length, end);
    let from = open + OPEN.length;
    if (TRIMMED_START.test(inner) || inner === '-') {
      text = text.trimEnd();
      inner = inner.slice(1);
      from++;
    }
    trimsNext = TRIMMED_END.test(inner);
    if (trimsNext) inner = inner.slice(0, -1);
    if (text !== '') pieces.push({ kind: 'text', text });
    if (!inner.trimStart().startsWith('/*')) {
      pieces.push({ kind: 'action', tokens: tokensOf(source, inner, from), at: from });
    }
    at = end + CLOSE.length;
  }
}

/** Where the `}}` of an action stands that begins at `from`; those in strings do not count. */
function endOfAction(source: string, from: number): number {
  const start = source.slice(from).search(/\S/);
  const isComment = /^(-[ \t\r\n]+)?\/\*/.test(source.slice(from + Math.max(0, start), from + 40));
  if (isComment) {
    const end = source.indexOf('*/', from);
    const close = end < 0 ? -1 : source.indexOf(CLOSE, end);
    if (close < 0) throw templateError(source, from, 'unclosed comment');
    return close;
  }
  for (let at = from; at < source.length; at++) {
    const first = source[at];
    if (first === '}' && source[at + 1] === '}') return at;
    if (first === '"' || first === "'" || first === '`') {
      const end = endOfQuoted(source, at);
      if (end < 0) throw templateError(source, at, 'unterminated quoted string');
      at = end - 1;
    }
  }
  throw templateError(source, from, 'unclosed action');
}

/** Offset after the quoted text at `at`, or -1. */
function endOfQuoted(source: string, at: number): number {
  const quote = source[at];
  for (let i = at + 1; i < source.length; i++) {
    if (source[i] === quote) return i + 1;
    if (source[i] === '\n' && quote !== '`') return -1;
    if (source[i] === '\\' && quote !== '`') i++;
  }
  return -1;
}

const SPACE = /[ \t\r\n]+/y;
const WORD = /[\p{L}_][\p{L}\p{Nd}_]*/uy;
const VARIABLE = /\$[\p{L}\p{Nd}_]*/uy;
const FIELD = /\.[\p{L}_][\p{L}\p{Nd}_]*/uy;
const DECIMAL = String.raw`[0-9][0-9_]*(\.[0-9]*)?([eE][+-]?[0-9]+)?|\.[0-9]+([eE][+-]?[0-9]+)?`;
const NUMBER = new RegExp(
  String.raw`[+-]?(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|${DECIMAL})`,
  'y',
);

function tokensOf(source: string, inner: string, from: number): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    const found = pattern.exec(inner)?.[0];
    if (found !== undefined) at += found.length;
    return found;
  };
  while (at < inner.length) {
    const place = from + at;
    const first = inner[at] ?? '';
    if (take(SPACE) !== undefined) {
      tokens.push({ kind: 'space', at: place });
      continue;
    }
    if (first === '"' || first === '`' || first === "'") {
      tokens.push(quoted(source, inner, at, place));
      at = endOfQuoted(inner, at);
      continue;
    }
    if (inner.startsWith(':=', at)) {
      tokens.push({ kind: 'mark', text: ':=', at: place });
      at += 2;
      continue;
    }
    if (first === '(' || first === ')' || first === '|' || first === ',' || first === '=') {
      tokens.push({ kind: 'mark', text: first, at: place });
      at++;
      continue;
    }
    const number = take(NUMBER);
    if (number !== undefined) {
      tokens.push({ kind: 'number', text: number, at: place });
      continue;
    }
    const field = take(FIELD);
    if (field !== undefined) {
      tokens.push({ kind: 'field', text: field.slice(1), at: place });
      continue;
    }
    const variable = take(VARIABLE);
    if (variable !== undefined) {
      tokens.push({ kind: 'variable', text: variable, at: place });
      continue;
    }
    const word = take(WORD);
    if (word !== undefined) {
      tokens.push({ kind: 'word', text: word, at: place });
      continue;
    }
    if (first !== '.') {
      throw templateError(source, place, `unexpected ${JSON.stringify(first)} in command`);
    }
    tokens.push({ kind: 'dot', at: place });
    at++;
  }
  return tokens;
}

function quoted(source: string, inner: string, at: number, place: number): Token {
  const text = inner.slice(at, endOfQuoted(inner, at));
  if (text[0] === '`') return { kind: 'string', text: text.slice(1, -1), at: place };
  const value = unescape(text.slice(1, -1));
  if (value === undefined) throw templateError(source, place, `invalid syntax: ${text}`);
  return { kind: text[0] === "'" ? 'rune' : 'string', text: value, at: place };
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  "'": "'",
  '"': '"',
};

/** The text of a Go string literal without its quotes; undefined where an escape is none. */
function unescape(text: string): string | undefined {
  let isGood = true;
  const value = text.replaceAll(
    /\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{3}|[^])/g,
    (_, escape: string) => {
      const plain = ownMember(ESCAPES, escape);
      if (plain !== undefined) return plain;
      const isHex = /^[xuU]./.test(escape);
      if (!isHex && !/^[0-7]{3}$/.test(escape)) isGood = false;
      const code = isHex ? Number.parseInt(escape.slice(1), 16) : Number.parseInt(escape, 8);
      return isGood && code <= 0x10ffff ? String.fromCodePoint(code) : '';
    },
  );
  return isGood ? value : undefined;
}
