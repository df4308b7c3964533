/** Rarer functions of the sprig library: words, codes, chunks, and those that begin with `must`. */
import { ownMember } from '@megaplane/base/members';
import { decimalFold } from './go-decimals.ts';
import { GoFloat, GoInt64, isList, isMap, typeName, type GoValue } from './go-values.ts';
import { escapable } from './builtin-functions.ts';
import { floatOf, intOf, listOf, SPRIG_FUNCTIONS, textOf } from './sprig-functions.ts';
import type { TemplateFunction, TemplateFunctions } from './template-run.ts';

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

function base32(text: string): string {
  let bits = '';
  for (const byte of Buffer.from(text)) bits += byte.toString(2).padStart(8, '0');
  let made = '';
  for (let at = 0; at < bits.length; at += 5) {
    made += BASE32[Number.parseInt(bits.slice(at, at + 5).padEnd(5, '0'), 2)] ?? '';
  }
  return made.padEnd(Math.ceil(made.length / 8) * 8, '=');
}

function adler32(text: string): number {
  let low = 1;
  let high = 0;
  for (const byte of Buffer.from(text)) {
    low = (low + byte) % 65_521;
    high = (high + low) % 65_521;
  }
  return high * 65_536 + low;
}

function abbreviated(count: GoValue, value: GoValue): string {
  const text = textOf(value);
  const width = Number(intOf(count));
  return width < 4 || text.length <= width ? text : `${text.slice(0, width - 3)}...`;
}

function swapped(text: string): string {
  return Array.from(text)
    .map((one) => {
      const isUpper = one === one.toUpperCase() && one !== one.toLowerCase();
      return isUpper ? one.toLowerCase() : one.toUpperCase();
    })
    .join('');
}

function chunked(size: GoValue, list: GoValue): GoValue {
  const items = listOf(list);
  const count = Math.max(1, Number(intOf(size)));
  const chunks: GoValue[] = [];
  for (let at = 0; at < items.length; at += count) chunks.push(items.slice(at, at + count));
  return chunks;
}

function copied(value: GoValue): GoValue {
  if (value === null || value === undefined) throw new Error('call on zero Value');
  return copiedInside(value);
}

function copiedInside(value: GoValue): GoValue {
  if (isList(value)) return value.map(copiedInside);
  if (!isMap(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, copiedInside(one)]));
}

const extreme =
  (choose: (...values: number[]) => number): TemplateFunction =>
  (...values) =>
    new GoFloat(choose(...values.map(floatOf)));

/** Functions that end the template where their namesakes give a zero: here both do. */
function must(...names: readonly string[]): TemplateFunctions {
  return Object.fromEntries(
    names.map((name) => {
      const own = ownMember(SPRIG_FUNCTIONS, name) ?? ((): GoValue => null);
      return [`must${name.slice(0, 1).toUpperCase()}${name.slice(1)}`, own];
    }),
  );
}

const JS: Readonly<Record<string, string>> = {
  '\\': String.raw`\\`,
  "'": String.raw`\'`,
  '"': String.raw`\"`,
  '<': String.raw`\u003C`,
  '>': String.raw`\u003E`,
  '&': String.raw`\u0026`,
  '=': String.raw`\u003D`,
};

export const SPRIG_WORDS: TemplateFunctions = {
  ...must('append', 'prepend', 'first', 'rest', 'last', 'initial', 'reverse', 'uniq', 'without'),
  ...must('has', 'slice', 'compact', 'merge', 'mergeOverwrite', 'toJson', 'toPrettyJson'),
  ...must('toRawJson'),
  mustPush: SPRIG_FUNCTIONS['append'] ?? ((): GoValue => null),
  abbrev: abbreviated,
  // bytes, not characters, as goutils takes them
  initials: (value) =>
    Buffer.from(textOf(value))
      .toString('latin1')
      .split(/[\t\n\v\f\r \u0085\u00A0]+/)
      .map((word) => word.slice(0, 1))
      .join(''),
  swapcase: (value) => swapped(textOf(value)),
  trimall: (cut, value) => {
    const isCut = (one: string): boolean => textOf(cut).includes(one);
    const all = Array.from(textOf(value));
    const from = all.findIndex((one) => !isCut(one));
    const to = all.findLastIndex((one) => !isCut(one));
    return from < 0 ? '' : all.slice(from, to + 1).join('');
  },
  splitn: (separator, count, value) => {
    const parts = textOf(value).split(textOf(separator));
    const given = Number(intOf(count));
    const most = given < 0 ? parts.length : given;
    const kept = parts.slice(0, Math.max(0, most - 1));
    if (most > 0 && parts.length >= most) kept.push(parts.slice(most - 1).join(textOf(separator)));
    return Object.fromEntries(kept.map((part, at) => [`_${at}`, part]));
  },
  adler32sum: (value) => String(adler32(textOf(value))),
  b32enc: (value) => base32(textOf(value)),
  toDecimal: (value) => {
    const text = textOf(value);
    return new GoInt64(/^[+-]?[0-7]+$/.test(text) ? BigInt(Number.parseInt(text, 8)) : 0n);
  },
  add1f: (value) => new GoFloat(decimalFold('add', floatOf(value), [1])),
  maxf: extreme(Math.max),
  minf: extreme(Math.min),
  chunk: chunked,
  mustChunk: chunked,
  deepCopy: copied,
  mustDeepCopy: copied,
  typeIsLike: (type, value) => [typeName(value), `*${typeName(value)}`].includes(textOf(type)),
  hello: () => 'Hello!',
  urlquery: (...values) =>
    encodeURIComponent(escapable(values))
      .replaceAll('%20', '+')
      .replaceAll(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`),
  js: (...values) =>
    escapable(values).replaceAll(/[\\'"<>&=]/g, (one) => ownMember(JS, one) ?? one),
};
