/** The functions of the sprig library on text, and on time. */
import { createHash } from 'node:crypto';
import { isList, type GoValue } from './go-values.ts';
import { intOf, textOf } from './sprig-functions.ts';
import type { TemplateFunctions } from './template-run.ts';

/** Text that one function may make. */
const TEXT_LENGTH_MAX: number = 4 * 1024 * 1024;

function lengthOf(value: GoValue): number {
  return Math.max(0, Number(intOf(value)));
}

function repeated(text: string, count: number): string {
  if (text.length * count > TEXT_LENGTH_MAX) throw new Error('repeat: the text is too long');
  return text.repeat(count);
}

function indented(spaces: GoValue, value: GoValue): string {
  const pad = repeated(' ', lengthOf(spaces));
  return pad + textOf(value).replaceAll('\n', `\n${pad}`);
}

function trimmed(text: string, cut: string, atStart: boolean, atEnd: boolean): string {
  let from = 0;
  let to = text.length;
  while (atStart && from < to && cut.includes(text[from] ?? '')) from++;
  while (atEnd && to > from && cut.includes(text[to - 1] ?? '')) to--;
  return text.slice(from, to);
}

function texts(values: readonly GoValue[]): string[] {
  return values.filter((value) => value !== undefined && value !== null).map(textOf);
}

function truncated(count: GoValue, value: GoValue): string {
  const text = textOf(value);
  const length = Number(intOf(count));
  if (length < 0) return text.length + length > 0 ? text.slice(text.length + length) : text;
  return text.slice(0, length);
}

/** sprig gives the error as text. */
function base64Text(text: string): string {
  const digits = /^[A-Za-z0-9+/\r\n]*/.exec(text)?.[0].length ?? 0;
  const isWhole = /^={0,2}$/.test(text.slice(digits)) && text.length % 4 === 0;
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
    textOf(value).replaceAll(/(^|[^\p{L}\p{Nd}_'])\p{L}/gu, (one) => one.toUpperCase()),
  untitle: (value) => textOf(value).replaceAll(/(^|\s)\p{L}/gu, (one) => one.toLowerCase()),
  repeat: (count, value) => repeated(textOf(value), lengthOf(count)),
  substr: (start, end, value) => {
    const text = textOf(value);
    const from = Math.max(0, Number(intOf(start)));
    const to = Number(intOf(end));
    return to < 0 || to > text.length ? text.slice(from) : text.slice(from, to);
  },
  trunc: truncated,
  nospace: (value) => textOf(value).replaceAll(/\s/g, ''),
  contains: (part, value) => textOf(value).includes(textOf(part)),
  hasPrefix: (prefix, value) => textOf(value).startsWith(textOf(prefix)),
  hasSuffix: (suffix, value) => textOf(value).endsWith(textOf(suffix)),
  replace: (from, to, value) => textOf(value).replaceAll(textOf(from), () => textOf(to)),
  quote: (...values) =>
    texts(values)
      .map((text) => JSON.stringify(text))
      .join(' '),
  squote: (...values) =>
    texts(values)
      .map((text) => `'${text}'`)
      .join(' '),
  cat: (...values) => texts(values).join(' '),
  indent: indented,
  nindent: (spaces, value) => `\n${indented(spaces, value)}`,
  plural: (one, many, count) => (intOf(count) === 1n ? one : many),
  join: (separator, value) =>
    (isList(value) ? texts(value) : [textOf(value)]).join(textOf(separator)),
  split: splitMap,
  splitList: (separator, value) => textOf(value).split(textOf(separator)),
  b64enc: (value) => Buffer.from(textOf(value)).toString('base64'),
  b64dec: (value) => base64Text(textOf(value)),
  sha1sum: sha('sha1'),
  sha256sum: sha('sha256'),
  sha512sum: sha('sha512'),
};

const LAYOUT = /2006|January|Jan|Monday|Mon|MST|Z07:00|-0700|-07:00|\.0+|01|02|03|04|05|15|06|PM/g;
const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];
const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

/** A time in UTC by a layout of Go's package time. */
function byLayout(layout: string, time: Date): string {
  const two = (number: number): string => String(number).padStart(2, '0');
  const parts: Readonly<Record<string, string>> = {
    '2006': String(time.getUTCFullYear()),
    '06': two(time.getUTCFullYear() % 100),
    January: MONTHS[time.getUTCMonth()] ?? '',
    Jan: (MONTHS[time.getUTCMonth()] ?? '').slice(0, 3),
    '01': two(time.getUTCMonth() + 1),
    '02': two(time.getUTCDate()),
    Monday: DAYS[time.getUTCDay()] ?? '',
    Mon: (DAYS[time.getUTCDay()] ?? '').slice(0, 3),
    '15': two(time.getUTCHours()),
    '03': two(time.getUTCHours() % 12 || 12),
    '04': two(time.getUTCMinutes()),
    '05': two(time.getUTCSeconds()),
    PM: time.getUTCHours() < 12 ? 'AM' : 'PM',
    MST: 'UTC',
    'Z07:00': 'Z',
    '-0700': '+0000',
    '-07:00': '+00:00',
  };
  return layout.replaceAll(LAYOUT, (part) => {
    if (!part.startsWith('.')) return parts[part] ?? part;
    return `.${String(time.getUTCMilliseconds())
      .padStart(3, '0')
      .padEnd(part.length - 1, '0')}`;
  });
}

/** Functions on time; `now` gives RFC 3339 with nanoseconds, in UTC. */
export function timeFunctions(nowMs: () => number): TemplateFunctions {
  const timeOf = (value: GoValue): Date => {
    if (typeof value === 'string') return new Date(value);
    const isNone = value === undefined || value === null;
    return new Date(isNone ? nowMs() : Number(intOf(value)) * 1000);
  };
  const inZone = (layout: GoValue, value: GoValue): string =>
    byLayout(textOf(layout), timeOf(value));
  const read = (_layout: GoValue, value: GoValue): string =>
    timeOf(value)
      .toISOString()
      .replace(/\.?0+Z$/, 'Z');
  return {
    now: () => new Date(nowMs()).toISOString(),
    date: (layout, value) => byLayout(textOf(layout), timeOf(value)),
    dateInZone: inZone,
    date_in_zone: inZone,
    htmlDate: (value) => byLayout('2006-01-02', timeOf(value)),
    htmlDateInZone: (value) => byLayout('2006-01-02', timeOf(value)),
    unixEpoch: (value) => String(Math.floor(timeOf(value).getTime() / 1000)),
    toDate: read,
    mustToDate: read,
  };
}
