/** The words of a CEL expression. */
import { ownMember } from '@megaplane/base/members';
import { ISSUES_MAX, type Issue } from './syntax.ts';

export type Token =
  | { readonly kind: 'name'; readonly at: number; readonly text: string }
  | { readonly kind: 'quotedName'; readonly at: number; readonly text: string }
  | { readonly kind: 'sign'; readonly at: number; readonly text: string }
  | { readonly kind: 'int' | 'uint' | 'double'; readonly at: number; readonly text: string }
  | { readonly kind: 'string'; readonly at: number; readonly text: string; readonly value: string }
  | {
      readonly kind: 'bytes';
      readonly at: number;
      readonly text: string;
      readonly value: Uint8Array;
    }
  | { readonly kind: 'end'; readonly at: number; readonly text: string };

const SPACE = /(?:[\t\n\f\r ]|\/\/[^\n]*)+/y;
const DOUBLE = /(?:\d*\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)/y;
const INTEGER = /(?:0[xX][0-9a-fA-F]+|\d+)([uU]?)/y;
const NAME = /[A-Za-z_][A-Za-z0-9_]*/y;
const QUOTED_NAME = /`[A-Za-z0-9_./ -]+`/y;
const SIGN = /==|!=|<=|>=|&&|\|\||[-+*/%!<>?:.,()[\]{}]/y;
/** What a backslash may stand before. */
const ESCAPED =
  String.raw`\\(?:[abfnrtv"'\\?\x60]|[xX]\p{AHex}{2}|u\p{AHex}{4}|U\p{AHex}{8}|` +
  String.raw`[0-3][0-7]{2})`;
/** The beginning of what may stand after one. */
const HALF_ESCAPED = String.raw`\\(?:[xX]\p{AHex}?|u\p{AHex}{0,3}|U\p{AHex}{0,7}|[0-3][0-7]?)?`;
const QUOTE = new RegExp(
  String.raw`([bB])?("""(?:[^\\]|${ESCAPED})*?"""|'''(?:[^\\]|${ESCAPED})*?'''|` +
    String.raw`"(?:[^"\\\n\r]|${ESCAPED})*"|'(?:[^'\\\n\r]|${ESCAPED})*')`,
  'uy',
);
/** A quote that is not closed, up to what may not stand in it. */
const OPEN_QUOTE = new RegExp(
  String.raw`(?:"(?:[^"\\\n\r]|${ESCAPED})*|'(?:[^'\\\n\r]|${ESCAPED})*)(?:${HALF_ESCAPED})?`,
  'uy',
);
/** The first half of a sign that has two. */
const HALF_SIGN = /[=&|]/y;
const RAW_QUOTE = /([bB][rR]|[rR][bB]?)("""[^]*?"""|'''[^]*?'''|"[^"\n\r]*"|'[^'\n\r]*')/y;

function match(pattern: RegExp, source: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(source);
}

/**
 * All words, the last of kind `end`; what is none of them is reported in `issues`, and the text is
 * not read to its end where there is more of it than is told.
 */
export function tokenize(source: string, issues: Issue[]): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < source.length) {
    const space = match(SPACE, source, at);
    if (space !== null) {
      at += space[0].length;
      continue;
    }
    const token = next(source, at, issues);
    if (token === null) {
      const text = unrecognized(source, at);
      issues.push({ at, message: `Syntax error: token recognition error at: '${text}'` });
      // upstream gives up, too
      if (issues.length > ISSUES_MAX) break;
      at += text.length;
      continue;
    }
    tokens.push(token);
    at += token.text.length;
  }
  tokens.push({ kind: 'end', at: source.length, text: '' });
  return tokens;
}

/** As far as a word might have gone on, with what it could not go on with. */
function unrecognized(source: string, at: number): string {
  const open = match(OPEN_QUOTE, source, at)?.[0] ?? match(HALF_SIGN, source, at)?.[0] ?? '';
  const end = at + open.length;
  const wrong = source.codePointAt(end);
  return open + (wrong === undefined ? '' : String.fromCodePoint(wrong));
}

function next(source: string, at: number, issues: Issue[]): Token | null {
  const raw = match(RAW_QUOTE, source, at);
  const quote = raw ?? match(QUOTE, source, at);
  if (quote !== null) return quoted(quote, raw !== null, at, issues);
  const double = match(DOUBLE, source, at);
  if (double !== null) return { kind: 'double', at, text: double[0] };
  const integer = match(INTEGER, source, at);
  if (integer !== null) {
    return { kind: integer[1] === '' ? 'int' : 'uint', at, text: integer[0] };
  }
  const name = match(NAME, source, at);
  if (name !== null) return { kind: 'name', at, text: name[0] };
  const quotedName = match(QUOTED_NAME, source, at);
  if (quotedName !== null) return { kind: 'quotedName', at, text: quotedName[0] };
  const sign = match(SIGN, source, at);
  return sign === null ? null : { kind: 'sign', at, text: sign[0] };
}

function quoted(found: RegExpExecArray, isRaw: boolean, at: number, issues: Issue[]): Token {
  const [text, prefix = '', quote = ''] = found;
  const edge = quote.startsWith('"""') || quote.startsWith("'''") ? 3 : 1;
  const inner = quote.slice(edge, -edge).replaceAll('\r\n', '\n');
  const isBytes = /b/i.test(prefix);
  const points = isRaw ? [{ code: -1, text: inner }] : unescape(inner);
  const hasRunes = points?.some((point) => point.isRune === true) === true;
  if (points === null || (isBytes && hasRunes)) {
    const message = isBytes ? 'unable to unescape string' : 'invalid unicode code point';
    issues.push({ at, message });
    return { kind: 'string', at, text, value: '' };
  }
  if (!isBytes) {
    const value = points
      .map((point) => (point.code < 0 ? point.text : String.fromCodePoint(point.code)))
      .join('');
    return { kind: 'string', at, text, value };
  }
  const parts = points.map((point) =>
    point.code < 0 || point.code > 255 || point.isRune === true
      ? Buffer.from(point.code < 0 ? point.text : String.fromCodePoint(point.code))
      : Buffer.from([point.code]),
  );
  return { kind: 'bytes', at, text, value: new Uint8Array(Buffer.concat(parts)) };
}

interface Piece {
  /** A code point or byte that was escaped; -1 for plain text. */
  readonly code: number;
  readonly text: string;
  readonly isRune?: boolean;
}

const ESCAPE = new RegExp(
  [
    `\\\\(?:([abfnrtv\\\\'"\`?])`,
    '[xX]([0-9a-fA-F]{2})',
    'u([0-9a-fA-F]{4})',
    'U([0-9a-fA-F]{8})',
    '([0-3][0-7]{2}))',
  ].join('|'),
  'y',
);
const PLAIN: Readonly<Record<string, number>> = {
  a: 7,
  b: 8,
  f: 12,
  n: 10,
  r: 13,
  t: 9,
  v: 11,
};

function unescape(text: string): Piece[] | null {
  const pieces: Piece[] = [];
  let at = 0;
  while (at < text.length) {
    const slash = text.indexOf('\\', at);
    const end = slash < 0 ? text.length : slash;
    if (end > at) pieces.push({ code: -1, text: text.slice(at, end) });
    if (slash < 0) break;
    const found = match(ESCAPE, text, slash);
    if (found === null) return null;
    const [all, plain, hex, short, long, octal] = found;
    const rune = short ?? long;
    let code = 0;
    if (plain !== undefined) code = ownMember(PLAIN, plain) ?? plain.charCodeAt(0);
    else if (octal !== undefined) code = Number.parseInt(octal, 8);
    else code = Number.parseInt(rune ?? hex ?? '', 16);
    if (rune !== undefined && (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))) return null;
    pieces.push({ code, text: '', isRune: rune !== undefined });
    at = slash + all.length;
  }
  return pieces;
}
