/** The functions of the sprig library on text. */
import { createHash } from 'node:crypto';
import type { GoValue } from './go-values.ts';
import { intOf, textOf, textsOf } from './sprig-functions.ts';
import type { TemplateFunctions } from './template-run.ts';

/** Text that one function may make. */
const TEXT_LENGTH_MAX: number = 4 * 1024 * 1024;

/** As `strings.Repeat`, which ends the program where less than nothing is asked for. */
function repeated(text: string, count: number): string {
  if (count < 0) throw new Error('strings: negative Repeat count');
  if (text.length * count > TEXT_LENGTH_MAX) throw new Error('repeat: the text is too long');
  return text.repeat(count);
}

function indented(spaces: GoValue, value: GoValue): string {
  const pad = repeated(' ', Number(intOf(spaces)));
  return pad + textOf(value).replaceAll('\n', `\n${pad}`);
}

function trimmed(text: string, cut: string, atStart: boolean, atEnd: boolean): string {
  let from = 0;
  let to = text.length;
  while (atStart && from < to && cut.includes(text[from] ?? '')) from++;
  while (atEnd && to > from && cut.includes(text[to - 1] ?? '')) to--;
  return text.slice(from, to);
}

/** As slices of Go: of bytes, and what lies outside is an error. */
function part(text: Buffer, from: number, to: number): string {
  if (from >= 0 && from <= to && to <= text.length) return text.toString('utf8', from, to);
  throw new Error(`runtime error: slice bounds out of range [${from}:${to}]`);
}

function truncated(count: GoValue, value: GoValue): string {
  const text = Buffer.from(textOf(value));
  const length = Number(intOf(count));
  const isWhole = length < 0 ? text.length + length <= 0 : length >= text.length;
  return (
    isWhole ? text : length < 0 ? text.subarray(length) : text.subarray(0, length)
  ).toString();
}

/** sprig gives the error as text. */
function base64Text(text: string): string {
  const digits = /^[A-Za-z0-9+/\r\n]*/.exec(text)?.[0].length ?? 0;
  const length = text.replaceAll(/[\r\n]/g, '').length;
  const isWhole = /^={0,2}$/.test(text.slice(digits)) && length % 4 === 0;
  if (isWhole) return Buffer.from(text, 'base64').toString('utf8');
  const place = digits < text.length ? digits : text.length - (text.length % 4);
  return `illegal base64 data at input byte ${place}`;
}

const sha = (algorithm: string) => (value: GoValue) =>
  createHash(algorithm).update(textOf(value)).digest('hex');

/** Joined by what stands before them; splits are maps of `_0`, `_1` and so on. */
function splitMap(separator: GoValue, value: GoValue): GoValue {
  const parts = textOf(value).split(textOf(separator));
  return Object.fromEntries(parts.map((part, index) => [`_${index}`, part]));
}

export const SPRIG_STRINGS: TemplateFunctions = {
  trim: (value) => textOf(value).trim(),
  trimAll: (cut, value) => trimmed(textOf(value), textOf(cut), true, true),
  trimSuffix: (suffix, value) => {
    const text = textOf(value);
    const end = textOf(suffix);
    return end !== '' && text.endsWith(end) ? text.slice(0, -end.length) : text;
  },
  trimPrefix: (prefix, value) => {
    const text = textOf(value);
    return text.startsWith(textOf(prefix)) ? text.slice(textOf(prefix).length) : text;
  },
  upper: (value) => textOf(value).toUpperCase(),
  lower: (value) => textOf(value).toLowerCase(),
  title: (value) =>
    textOf(value).replaceAll(/(^|[\0-/:-@[-^`{-\x7f\s])\p{L}/gu, (one) => one.toUpperCase()),
  untitle: (value) => textOf(value).replaceAll(/(^|\s)\p{L}/gu, (one) => one.toLowerCase()),
  repeat: (count, value) => repeated(textOf(value), Number(intOf(count))),
  substr: (start, end, value) => {
    const text = Buffer.from(textOf(value));
    const from = Number(intOf(start));
    const to = Number(intOf(end));
    if (from < 0) return part(text, 0, to);
    return part(text, from, to < 0 || to > text.length ? text.length : to);
  },
  trunc: truncated,
  // bytes, not characters, as goutils takes them
  nospace: (value) => {
    const bytes = Buffer.from(textOf(value)).toString('latin1');
    const kept = bytes.replaceAll(/[\t\n\v\f\r \u0085\u00A0]/g, '');
    return kept === bytes ? textOf(value) : kept;
  },
  contains: (part, value) => textOf(value).includes(textOf(part)),
  hasPrefix: (prefix, value) => textOf(value).startsWith(textOf(prefix)),
  hasSuffix: (suffix, value) => textOf(value).endsWith(textOf(suffix)),
  replace: (from, to, value) => textOf(value).replaceAll(textOf(from), () => textOf(to)),
  quote: (...values) =>
    textsOf(values)
      .map((text) => JSON.stringify(text))
      .join(' '),
  squote: (...values) =>
    textsOf(values)
      .map((text) => `'${text}'`)
      .join(' '),
  cat: (...values) => textsOf(values).join(' '),
  indent: indented,
  nindent: (spaces, value) => `\n${indented(spaces, value)}`,
  plural: (one, many, count) => (intOf(count) === 1n ? one : many),
  join: (separator, value) => textsOf(value).join(textOf(separator)),
  split: splitMap,
  splitList: (separator, value) => textOf(value).split(textOf(separator)),
  b64enc: (value) => Buffer.from(textOf(value)).toString('base64'),
  b64dec: (value) => base64Text(textOf(value)),
  sha1sum: sha('sha1'),
  sha256sum: sha('sha256'),
  sha512sum: sha('sha512'),
};
