/**
 * Times and durations as Kubernetes writes them: `metav1.Time` (RFC 3339, whole seconds, UTC),
 * `metav1.MicroTime` (six fractional digits) and Go's durations.
 *
 * A time is seconds since 1970 with nanoseconds beside it, so that what protobuf holds passes
 * through unchanged. /
 */
import { ownMember } from '@megaplane/base/members';
import { quoted } from '../json/quoting.ts';

const NANOS_PER_SECOND = 1e9;
const NANOS_PER_HOUR = 3_600_000_000_000n;

/** `2026-01-02T03:04:05Z`. Years outside 0..9999 are cut to that range. */
export function formatTime(seconds: number): string {
  return `${dateText(seconds)}Z`;
}

/** `2026-01-02T03:04:05.000000Z`. */
export function formatMicroTime(seconds: number, nanos: number): string {
  const micros = Math.floor(nanos / 1000);
  return `${dateText(seconds)}.${String(micros).padStart(6, '0')}Z`;
}

const SECONDS_MIN = -62167219200;
const SECONDS_MAX = 253402300799;

function dateText(seconds: number): string {
  const inRange = Math.min(Math.max(Math.trunc(seconds), SECONDS_MIN), SECONDS_MAX);
  const days = Math.floor(inRange / 86400);
  const rest = inRange - days * 86400;
  const hour = Math.floor(rest / 3600);
  const minute = Math.floor(rest / 60) % 60;
  return `${dayText(days)}T${two(hour)}:${two(minute)}:${two(rest % 60)}`;
}

/** The last day asked for: times of one day come in crowds. */
let lastDay = Number.NaN;
let lastDayText = '';

function dayText(days: number): string {
  if (days === lastDay) return lastDayText;
  lastDayText = new Date(days * 86400000).toISOString().slice(0, 10);
  lastDay = days;
  return lastDayText;
}

const TWO_DIGITS: readonly string[] = Array.from({ length: 100 }, (_, value) =>
  String(value).padStart(2, '0'),
);

function two(value: number): string {
  return TWO_DIGITS[value] ?? '00';
}

/** A point in time: `nanos` is 0..999,999,999 after `seconds`. */
export interface Instant {
  readonly seconds: number;
  readonly nanos: number;
}

const RFC_3339 =
  /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(Z|([+-])(\d\d):(\d\d))$/;
const DAYS_OF_MONTH = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** Digits of a range of text as a number; NaN if there is something else. */
function digitsAt(text: string, start: number, end: number): number {
  let value = 0;
  for (let at = start; at < end; at++) {
    const digit = text.charCodeAt(at) - 0x30;
    if (!(digit >= 0 && digit <= 9)) return Number.NaN;
    value = value * 10 + digit;
  }
  return value;
}

/** Days from 1970-01-01 to a date of the Gregorian calendar, before it too. */
function daysTo(year: number, month: number, day: number): number {
  const shifted = month <= 2 ? year - 1 : year;
  const era = Math.floor(shifted / 400);
  const ofEra = shifted - era * 400;
  const ofYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  const inEra = ofEra * 365 + Math.floor(ofEra / 4) - Math.floor(ofEra / 100) + ofYear;
  return era * 146097 + inEra - 719468;
}

/** Seconds since 1970 of `2026-01-02T03:04:05` at the start of a text; NaN if it is none. */
function secondsOf(text: string): number {
  const isShaped =
    text.charCodeAt(4) === 0x2d &&
    text.charCodeAt(7) === 0x2d &&
    text.charCodeAt(10) === 0x54 &&
    text.charCodeAt(13) === 0x3a &&
    text.charCodeAt(16) === 0x3a;
  if (!isShaped) return Number.NaN;
  const year = digitsAt(text, 0, 4);
  const month = digitsAt(text, 5, 7);
  const day = digitsAt(text, 8, 10);
  const hour = digitsAt(text, 11, 13);
  const minute = digitsAt(text, 14, 16);
  const second = digitsAt(text, 17, 19);
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const days = month === 2 && isLeap ? 29 : (DAYS_OF_MONTH[month - 1] ?? 0);
  if (!(day >= 1 && day <= days && hour <= 23 && minute <= 59 && second <= 59)) return Number.NaN;
  return daysTo(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
}

const UTC = 0x5a;
const COLON = 0x3a;

/**
 * Reads RFC 3339, with any zone and any fraction; undefined for anything else, also for days that
 * do not exist.
 */
export function parseTime(sent: string): Instant | undefined {
  // an hour may be of one digit, as Go reads it
  const text = sent.charCodeAt(12) === COLON ? sent.replace(/^(.{10}T)(\d:)/, '$10$2') : sent;
  const seconds = secondsOf(text);
  if (Number.isNaN(seconds)) return undefined;
  if (text.length === 20 && text.charCodeAt(19) === UTC) return { seconds, nanos: 0 };
  if (text.length === 27 && text.charCodeAt(26) === UTC && text.charCodeAt(19) === 0x2e) {
    const micros = digitsAt(text, 20, 26);
    if (!Number.isNaN(micros)) return { seconds, nanos: micros * 1000 };
  }
  const match = RFC_3339.exec(text);
  if (match === null) return undefined;
  const part = (index: number): number => Number(match[index] ?? 0);
  // Go takes these
  if (part(10) > 24 || part(11) > 60) return undefined;
  const offset = (part(10) * 3600 + part(11) * 60) * (match[9] === '-' ? -1 : 1);
  const nanos = Number((match[7] ?? '').slice(0, 9).padEnd(9, '0'));
  return { seconds: seconds - offset, nanos };
}

/** True for text that `metav1.MicroTime` reads: exactly six fractional digits. */
export function isMicroTime(text: string): boolean {
  const match = RFC_3339.exec(text);
  return match !== null && match[7]?.length === 6 && parseTime(text) !== undefined;
}

/** Go's `Duration.String`: `1h0m0s`, `1.5s`, `100ms`, `0s`. */
export function formatDuration(nanos: number | bigint): string {
  if (typeof nanos === 'bigint') return formatLong(nanos);
  if (nanos === 0) return '0s';
  const sign = nanos < 0 ? '-' : '';
  const size = Math.abs(nanos);
  if (size < 1e3) return `${sign}${size}ns`;
  if (size < 1e6) return `${sign}${fraction(size, 1e3)}µs`;
  if (size < NANOS_PER_SECOND) return `${sign}${fraction(size, 1e6)}ms`;
  const whole = Math.floor(size / NANOS_PER_SECOND);
  const rest = size - whole * NANOS_PER_SECOND;
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  const seconds = `${fraction((whole % 60) * NANOS_PER_SECOND + rest, NANOS_PER_SECOND)}s`;
  if (hours > 0) return `${sign}${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${sign}${minutes}m${seconds}` : `${sign}${seconds}`;
}

/** The hours by themselves: what is left then is exact as a plain number. */
function formatLong(nanos: bigint): string {
  const size = nanos < 0n ? -nanos : nanos;
  const hours = size / NANOS_PER_HOUR;
  const rest = Number(size % NANOS_PER_HOUR);
  if (hours === 0n) return formatDuration(Number(nanos));
  // of an hour and the rest, only what stands behind the hour is of interest
  const shown = formatDuration(Number(NANOS_PER_HOUR) + rest);
  return `${nanos < 0n ? '-' : ''}${hours}${shown.slice(1)}`;
}

function fraction(value: number, unit: number): string {
  const whole = Math.floor(value / unit);
  const rest = value - whole * unit;
  if (rest === 0) return String(whole);
  const digits = String(Math.log10(unit));
  return `${whole}.${String(rest).padStart(Number(digits), '0').replace(/0+$/, '')}`;
}

const UNITS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1000n,
  µs: 1000n,
  μs: 1000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: NANOS_PER_HOUR,
};
const DURATION_END = 2n ** 63n;
/** Go's `ParseDuration`: nanoseconds; undefined for text that it refuses. */
export function parseGoDuration(text: string): bigint | undefined {
  const found = /^([+-]?)((?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$/.exec(text);
  if (found === null) return /^[+-]?0$/.test(text) ? 0n : undefined;
  let nanos = 0n;
  for (const part of (found[2] ?? '').matchAll(/(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)/g)) {
    const [, whole = '', fraction = '', unit = ''] = part;
    const digits = whole.replace(/^0+/, '');
    if (digits.length > 19) return undefined;
    const scale = ownMember(UNITS, unit) ?? 1n;
    nanos += BigInt(digits) * scale + fractionNanos(fraction, scale);
    if (nanos > DURATION_END) return undefined;
  }
  if (found[1] === '-') return -nanos;
  return nanos === DURATION_END ? undefined : nanos;
}

/** In doubles, as Go reckons it, of as many digits as its integer holds. */
function fractionNanos(fraction: string, scale: bigint): bigint {
  let digits = /^0*/.exec(fraction)?.[0].length ?? 0;
  let value = 0n;
  for (; digits < fraction.length; digits++) {
    const next = value * 10n + BigInt(fraction[digits] ?? 0);
    if (next > DURATION_END) break;
    value = next;
  }
  return BigInt(Math.trunc(Number(value) * (Number(scale) / 10 ** digits)));
}

/** The same as a plain number, which rounds what is longer than a hundred days. */
export function parseDuration(text: string): number | undefined {
  const nanos = parseGoDuration(text);
  return nanos === undefined ? undefined : Number(nanos);
}

/** What Go's `ParseDuration` says, or ''. */
export function durationFault(text: string): string {
  if (parseDuration(text) !== undefined) return '';
  const [whole, unit = ''] =
    /^[+-]?(?:[\d.]+(?:ns|us|µs|μs|ms|s|m|h))*\d[\d.]*([^\d.]*)/.exec(text) ?? [];
  if (whole === undefined) return `time: invalid duration ${quoted(text)}`;
  const what = unit === '' ? 'missing unit' : `unknown unit ${quoted(unit)}`;
  return `time: ${what} in duration ${quoted(text)}`;
}

const ZERO_TIME = '0001-01-01T00:00:00Z';
const ZERO_MICRO_TIME = '0001-01-01T00:00:00.000000Z';

/** As `metav1.Time` is answered; null for the zero time, undefined for text that is no time. */
export function canonicalTime(text: string): string | null | undefined {
  if (text.length === 20 && text.charCodeAt(19) === UTC) {
    if (Number.isNaN(secondsOf(text))) return undefined;
    return text === ZERO_TIME ? null : text;
  }
  const time = parseTime(text);
  if (time === undefined) return undefined;
  const written = formatTime(time.seconds);
  return written === ZERO_TIME ? null : written;
}

/** As `metav1.MicroTime` is answered; null for the zero time, undefined for text that is none. */
export function canonicalMicroTime(text: string): string | null | undefined {
  const time = parseTime(text);
  if (time === undefined) return undefined;
  const isPlain = text.length === 27 && text.charCodeAt(26) === UTC && text.charCodeAt(19) === 0x2e;
  if (!isPlain && !isMicroTime(text)) return undefined;
  const written = isPlain ? text : formatMicroTime(time.seconds, time.nanos);
  return written === ZERO_MICRO_TIME ? null : written;
}

const TIME_PARTS: readonly (readonly [element: string, pattern: RegExp])[] = [
  ['2006', /^\d{4}/],
  ['-', /^-/],
  ['01', /^\d\d/],
  ['-', /^-/],
  ['02', /^\d\d/],
  ['T', /^T/],
  ['15', /^\d\d?/],
  [':', /^:/],
  ['04', /^\d\d/],
  [':', /^:/],
  ['05', /^\d\d/],
];

/** What Go says of text that is no time, by the layout it was read with. */
export function timeFailure(text: string, isMicro: boolean): string {
  const layout = `2006-01-02T15:04:05${isMicro ? '.000000' : ''}Z07:00`;
  const head = `parsing time ${JSON.stringify(text)}`;
  const parts = [...TIME_PARTS];
  if (isMicro) parts.push(['.000000', /^[.,]\d{6}(?!\d)/]);
  else parts.push(['', /^(?:[.,]\d+)?/]);
  parts.push(['Z07:00', /^(?:Z|[+-]\d\d:\d\d)/]);
  let rest = text;
  for (const [element, pattern] of parts) {
    const match = pattern.exec(rest);
    if (match === null) {
      const found = JSON.stringify(rest);
      return `${head} as ${JSON.stringify(layout)}: cannot parse ${found} as "${element}"`;
    }
    rest = rest.slice(match[0].length);
  }
  if (rest !== '') return `${head}: extra text: ${JSON.stringify(rest)}`;
  const [month, day] = [Number(text.slice(5, 7)), Number(text.slice(8, 10))];
  if (month < 1 || month > 12) return `${head}: month out of range`;
  if (day < 1 || parseTime(`${text.slice(0, 10)}T00:00:00Z`) === undefined) {
    return `${head}: day out of range`;
  }
  return `${head}: ${clockFault(text)} out of range`;
}

/** Which part of the clock, or of the zone, is too large. */
function clockFault(text: string): string {
  const [, hour, minute, second, zoneHour = 0, zoneMinute = 0] =
    /T(\d\d?):(\d\d):(\d\d)[.,\d]*(?:Z|[+-](\d\d):(\d\d))$/.exec(text) ?? [];
  if (Number(hour) > 23) return 'hour';
  if (Number(minute) > 59) return 'minute';
  if (Number(second) > 59) return 'second';
  if (Number(zoneHour) > 24) return 'time zone offset hour';
  return Number(zoneMinute) > 60 ? 'time zone offset minute' : 'hour';
}
