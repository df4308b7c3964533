/** Times of jq: seconds since 1970, and `[year, month, day, hours, …]` as C has them. */
import { ownMember } from '@megaplane/base/members';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { JqError } from './jq-lexer.ts';
import { shown } from './jq-values.ts';

const MONTHS = [
  ...['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September'],
  ...['October', 'November', 'December'],
];
const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

/** `gmtime`. */
export function brokenDown(seconds: number): JsonValue[] {
  const date = new Date(Math.floor(seconds) * 1000);
  const yearDay = (date.getTime() - Date.UTC(date.getUTCFullYear(), 0)) / 86_400_000;
  return [
    ...[date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate(), date.getUTCHours()],
    ...[date.getUTCMinutes(), date.getUTCSeconds() + (seconds - Math.floor(seconds))],
    ...[date.getUTCDay(), Math.floor(yearDay)],
  ];
}

/** `mktime`. */
export function secondsOf(value: JsonValue): number {
  const numbers = Array.isArray(value) ? value.filter((part) => typeof part === 'number') : [];
  if (!Array.isArray(value) || numbers.length < value.length) {
    throw new JqError(`mktime cannot be applied to: ${shown(value)}`);
  }
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = numbers;
  const date = new Date(0);
  date.setUTCFullYear(year, month, day);
  date.setUTCHours(hour, minute, Math.floor(second));
  return Math.floor(date.getTime() / 1000);
}

/** `strftime`, of seconds or of what `gmtime` gives. */
export function timeText(value: JsonValue, format: JsonValue): string {
  if (typeof format !== 'string') {
    throw new JqError(`strftime requires a string format but got: ${shown(format)}`);
  }
  const date = new Date((typeof value === 'number' ? Math.floor(value) : secondsOf(value)) * 1000);
  const pad = (number: number, width = 2): string => String(number).padStart(width, '0');
  const time = `${pad(date.getUTCHours())}:${pad(date.getUTCMinutes())}`;
  const hour = date.getUTCHours() % 12 || 12;
  const isBefore = date.getUTCFullYear() < 0;
  const year = isBefore ? `-${pad(-date.getUTCFullYear(), 3)}` : pad(date.getUTCFullYear(), 4);
  const day = DAYS[date.getUTCDay()] ?? '';
  const month = MONTHS[date.getUTCMonth()] ?? '';
  const monthDay = `${pad(date.getUTCMonth() + 1)}-${pad(date.getUTCDate())}`;
  const yearDay = Number(brokenDown(date.getTime() / 1000)[7]) + 1;
  const parts: Readonly<Record<string, string>> = {
    ...{ Y: year, y: pad(date.getUTCFullYear() % 100) },
    ...{ m: pad(date.getUTCMonth() + 1), d: pad(date.getUTCDate()) },
    ...{ e: String(date.getUTCDate()).padStart(2), H: pad(date.getUTCHours()), I: pad(hour) },
    ...{ M: pad(date.getUTCMinutes()), S: pad(date.getUTCSeconds()), Z: 'UTC', z: '+0000' },
    ...{ A: day, a: day.slice(0, 3), B: month, b: month.slice(0, 3), h: month.slice(0, 3) },
    ...{ p: date.getUTCHours() < 12 ? 'AM' : 'PM', j: pad(yearDay, 3), R: time },
    ...{ T: `${time}:${pad(date.getUTCSeconds())}`, F: `${year}-${monthDay}` },
    ...{ s: String(date.getTime() / 1000), u: String(date.getUTCDay() || 7), '%': '%', n: '\n' },
    ...{ w: String(date.getUTCDay()), t: '\t' },
  };
  return format.replaceAll(/%([a-zA-Z%])/g, (whole, one: string) => ownMember(parts, one) ?? whole);
}

const TAKES: Readonly<Record<string, string>> = {
  ...{ Y: String.raw`(?<Y>\d{4})`, m: String.raw`(?<m>\d{1,2})`, d: String.raw`(?<d>\d{1,2})` },
  ...{ e: String.raw` ?(?<d>\d{1,2})`, H: String.raw`(?<H>\d{1,2})`, Z: '(?:[A-Z]{3,4})' },
  ...{ M: String.raw`(?<M>\d{1,2})`, S: String.raw`(?<S>\d{1,2})`, '%': '%' },
  ...{ z: String.raw`(?<z>Z|[+-]\d{2}:?\d{2})`, j: String.raw`(?:\d{1,3})` },
  A: `(?:${DAYS.join('|')})`,
  a: `(?:${DAYS.map((day) => day.slice(0, 3)).join('|')})`,
  B: `(?<B>${MONTHS.join('|')})`,
  b: `(?<B>${MONTHS.map((month) => month.slice(0, 3)).join('|')})`,
};
const WHOLE: Readonly<Record<string, string>> = { T: '%H:%M:%S', F: '%Y-%m-%d', R: '%H:%M' };

/** `strptime`. */
export function readTime(value: JsonValue, format: JsonValue): JsonValue[] {
  if (typeof value !== 'string' || typeof format !== 'string') {
    throw new JqError(`strptime cannot be applied to: ${shown(value)}`);
  }
  const long = format.replaceAll(/%[TFR]/g, (one) => ownMember(WHOLE, one.slice(1)) ?? one);
  const pattern = long
    .split(/(%[a-zA-Z%])/)
    .map((part, at) => (at % 2 === 0 ? RegExp.escape(part) : ownMember(TAKES, part.slice(1))));
  if (pattern.includes(undefined)) throw new JqError(`unsupported format of time: ${format}`);
  const groups = new RegExp(`^${pattern.join('')}$`).exec(value)?.groups;
  if (groups === undefined) {
    throw new JqError(`strptime cannot read ${shown(value)} as ${JSON.stringify(format)}`);
  }
  const { Y = '1900', m, B, d = '1', H = '0', M = '0', S = '0', z = 'Z' } = groups;
  const named = MONTHS.findIndex((month) => month.startsWith(B ?? '?'));
  const month = m === undefined ? Math.max(0, named) : Number(m) - 1;
  const [, sign, hours = '0', minutes = '0'] = /^([+-])(\d\d):?(\d\d)$/.exec(z) ?? [];
  const east = (Number(hours) * 3600 + Number(minutes) * 60) * (sign === '-' ? -1 : 1);
  const date = Date.UTC(Number(Y), month, Number(d), Number(H), Number(M), Number(S)) / 1000;
  return brokenDown(date - east);
}
