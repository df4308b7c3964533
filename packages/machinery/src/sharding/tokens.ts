/**
 * Tokens of CEL, as far as a shard selector needs them: enough to tell what upstream's parser tells
 * of any input, right or wrong. (CEL language definition, section "Syntax".)
 */

export type TokenKind = 'name' | 'string' | 'bytes' | 'int' | 'uint' | 'double' | 'sign' | 'end';

export interface Token {
  readonly kind: TokenKind;
  /** As written; `<EOF>` at the end. */
  readonly text: string;
}

const SPACE = /[\t\n\f\r ]+|\/\/[^\n]*/y;
const DOUBLE = /(?:\d+\.\d+|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?/y;
const INTEGER = /(?:0x[0-9a-fA-F]+|\d+)[uU]?/y;
const NAME = /[a-zA-Z_][a-zA-Z0-9_]*/y;
const SIGN = /&&|\|\||==|!=|<=|>=|[<>[\]{}().,\-!?:+*/%]/y;
const ESCAPED_NAME = /`[a-zA-Z0-9_.\-/ ]+`/y;
const QUOTE = /([bB]?)([rR]?)('''|"""|'|")/y;
const ESCAPE = new RegExp(
  [
    /\\(?:[abfnrtv"'\\`?]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4})/,
    /\\(?:U[0-9a-fA-F]{8}|[0-3][0-7]{2})/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'y',
);
/** Beginnings of tokens that are cut off; the character after them is part of the error. */
const HALF = /[&|=](?![&|=])/y;

function at(pattern: RegExp, text: string, from: number): RegExpExecArray | null {
  pattern.lastIndex = from;
  return pattern.exec(text);
}

/** All tokens, the last of kind `end`; or what the lexer stumbles over. */
export function tokensOf(text: string): { tokens: Token[]; error: string } {
  const tokens: Token[] = [];
  let from = 0;
  while (from < text.length) {
    const space = at(SPACE, text, from);
    if (space !== null) {
      from += space[0].length;
      continue;
    }
    const token = quotedAt(text, from) ?? plainAt(text, from);
    if (typeof token === 'string') {
      tokens.push(END);
      return { tokens, error: `Syntax error: token recognition error at: '${token}'` };
    }
    tokens.push(token);
    from += token.text.length;
  }
  tokens.push(END);
  return { tokens, error: '' };
}

const END: Token = { kind: 'end', text: '<EOF>' };

/** A string or bytes literal, the text of one that is cut off, or null for anything else. */
function quotedAt(text: string, from: number): Token | string | null {
  const open = at(QUOTE, text, from);
  if (open === null) return null;
  const [head, bytes = '', raw = '', quote = ''] = open;
  const kind = bytes === '' ? 'string' : 'bytes';
  let next = from + head.length;
  while (next < text.length) {
    if (text.startsWith(quote, next)) {
      return { kind, text: text.slice(from, next + quote.length) };
    }
    const isLineEnd = text[next] === '\n' || text[next] === '\r';
    if (quote.length === 1 && isLineEnd) return text.slice(from, next + 1);
    const isEscape = text[next] === '\\' && raw === '';
    const escape = isEscape ? at(ESCAPE, text, next) : null;
    if (isEscape && escape === null) return text.slice(from, next + 2);
    next += escape === null ? 1 : escape[0].length;
  }
  // three quotes that never close are an empty string and what follows
  if (quote.length === 3) return { kind, text: head.slice(0, -1) };
  return text.slice(from);
}

function plainAt(text: string, from: number): Token | string {
  const double = at(DOUBLE, text, from);
  if (double !== null && double[0] !== '' && /[.eE]/.test(double[0])) {
    return { kind: 'double', text: double[0] };
  }
  const integer = at(INTEGER, text, from);
  if (integer !== null) {
    return { kind: /[uU]$/.test(integer[0]) ? 'uint' : 'int', text: integer[0] };
  }
  const name = at(NAME, text, from);
  if (name !== null) return { kind: isWord(name[0]) ? 'sign' : 'name', text: name[0] };
  const escaped = at(ESCAPED_NAME, text, from);
  if (escaped !== null) return { kind: 'name', text: escaped[0] };
  const sign = at(SIGN, text, from);
  if (sign !== null) return { kind: 'sign', text: sign[0] };
  const character = String.fromCodePoint(text.codePointAt(from) ?? 0);
  return at(HALF, text, from) === null ? character : text.slice(from, from + 2);
}

/** Words that are tokens of their own and never names. */
function isWord(text: string): boolean {
  return text === 'true' || text === 'false' || text === 'null' || text === 'in';
}
