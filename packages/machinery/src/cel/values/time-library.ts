/** Points in time and spans of it: their texts, and their parts in a time zone. */
import type { Library } from './functions.ts';
import { parseGoDuration } from '../../meta/times.ts';
import { CelError, Duration, Timestamp, type CelValue } from './values.ts';

const SECOND = 1_000_000_000n;
export function parseCelDuration(text: string): CelValue {
  const nanos = parseGoDuration(text);
  return nanos === undefined
    ? new CelError("type conversion error from 'string' to 'google.protobuf.Duration'")
    : new Duration(nanos);
}

/** Seconds with a fraction: `90s`, `1.5s`. */
export function durationText({ nanos }: Duration): string {
  const sign = nanos < 0n ? '-' : '';
  const size = nanos < 0n ? -nanos : nanos;
  const fraction = fractionText(size % SECOND);
  return `${sign}${size / SECOND}${fraction}s`;
}

function fractionText(nanos: bigint): string {
  return nanos === 0n ? '' : `.${String(nanos).padStart(9, '0').replace(/0+$/, '')}`;
}

/** RFC 3339 in UTC. */
export function timestampText({ nanos }: Timestamp): string {
  const part = ((nanos % SECOND) + SECOND) % SECOND;
  const seconds = Number((nanos - part) / SECOND);
  const text = new Date(seconds * 1000).toISOString().slice(0, 19);
  return `${text}${fractionText(part)}Z`;
}

const RFC3339 =
  /^(\d{4})-(\d\d)-(\d\d)T(\d\d?):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))$/;

export function parseTimestamp(text: string): CelValue {
  const found = RFC3339.exec(text);
  const wrong = new CelError("type conversion error from 'string' to 'google.protobuf.Timestamp'");
  if (found === null) return wrong;
  const [, year, month, day, hour, minute, second, fraction = '', sign, hours, minutes] = found;
  const parts = [year, month, day, hour, minute, second].map(Number);
  const [y = 0, mo = 0, d = 0, h = 0, mi = 0, s = 0] = parts;
  const date = new Date(0);
  date.setUTCFullYear(y, mo - 1, d);
  date.setUTCHours(h, mi, s);
  const isReal = date.getUTCMonth() === mo - 1 && date.getUTCDate() === d;
  if (!isReal || h > 23 || mi > 59 || s > 59) return wrong;
  if (Number(hours ?? 0) > 24 || Number(minutes ?? 0) > 60) return wrong;
  const offset = (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60;
  const seconds = date.getTime() / 1000 - (sign === '-' ? -offset : offset);
  const nanos = BigInt(fraction.slice(0, 9).padEnd(9, '0'));
  const total = BigInt(seconds) * SECOND + nanos;
  return y < 1 ? new CelError('timestamp overflow') : new Timestamp(total);
}

interface Parts {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
  readonly weekday: number;
  readonly dayOfYear: number;
}

const DAY_MS = 86_400_000;
/** Formatters are dear to make; a zone that is asked about once is asked about again. */
const FORMATTERS_MAX = 100;
const formatters = new Map<string, Intl.DateTimeFormat>();

/** Minutes that a zone is ahead of UTC then; null for a zone that does not exist. */
function offsetMinutes(zone: string, ms: number): number | null {
  if (zone === '' || zone === 'UTC') return 0;
  const fixed = /^([+-]?)(\d\d):(\d\d)$/.exec(zone);
  if (fixed !== null) {
    const minutes = Number(fixed[2]) * 60 + Number(fixed[3]);
    return fixed[1] === '-' ? -minutes : minutes;
  }
  const formatter = formatterOf(zone);
  if (formatter === null) return null;
  const found: Record<string, number> = {};
  for (const { type, value } of formatter.formatToParts(ms)) found[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = found;
  const local = new Date(0);
  local.setUTCFullYear(year, month - 1, day);
  local.setUTCHours(hour, minute, second);
  return Math.round((local.getTime() - Math.floor(ms / 1000) * 1000) / 60_000);
}

function formatterOf(zone: string): Intl.DateTimeFormat | null {
  const known = formatters.get(zone);
  if (known !== undefined) return known;
  if (formatters.size >= FORMATTERS_MAX) formatters.clear();
  try {
    const made = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
    formatters.set(zone, made);
    return made;
  } catch {
    return null;
  }
}

function partsOf({ nanos }: Timestamp, zone: string): Parts | null {
  const ms = Number((nanos - (((nanos % 1_000_000n) + 1_000_000n) % 1_000_000n)) / 1_000_000n);
  const offset = offsetMinutes(zone, ms);
  if (offset === null) return null;
  const local = new Date(ms + offset * 60_000);
  const start = new Date(0);
  start.setUTCFullYear(local.getUTCFullYear(), 0, 1);
  return {
    year: local.getUTCFullYear(),
    month: local.getUTCMonth(),
    day: local.getUTCDate(),
    hour: local.getUTCHours(),
    minute: local.getUTCMinutes(),
    second: local.getUTCSeconds(),
    weekday: local.getUTCDay(),
    dayOfYear: Math.floor((local.getTime() - start.getTime()) / DAY_MS),
  };
}

const GETTERS: Readonly<Record<string, (parts: Parts) => number>> = {
  getFullYear: ({ year }) => year,
  getMonth: ({ month }) => month,
  getDayOfYear: ({ dayOfYear }) => dayOfYear,
  getDate: ({ day }) => day,
  getDayOfMonth: ({ day }) => day - 1,
  getDayOfWeek: ({ weekday }) => weekday,
  getHours: ({ hour }) => hour,
  getMinutes: ({ minute }) => minute,
  getSeconds: ({ second }) => second,
};

function milliseconds(time: Timestamp, zone = ''): CelValue {
  const { nanos } = time;
  if (partsOf(time, zone) === null) return unknownZone(zone);
  return (((nanos % SECOND) + SECOND) % SECOND) / 1_000_000n;
}

/** What Go says of a zone that is no name, or no offset. */
function unknownZone(zone: string): CelError {
  if (zone.includes(':')) {
    const [hours = ''] = zone.split(':');
    return new CelError(`strconv.Atoi: parsing ${JSON.stringify(hours)}: invalid syntax`);
  }
  const isPath = zone.startsWith('/') || zone.startsWith('\\') || zone.includes('..');
  return new CelError(isPath ? 'time: invalid location name' : `unknown time zone ${zone}`);
}

function getters(): Library {
  const library: Record<string, (time: Timestamp, zone?: string) => CelValue> = {};
  for (const [name, part] of Object.entries(GETTERS)) {
    const get = (time: Timestamp, zone = ''): CelValue => {
      const parts = partsOf(time, zone);
      if (parts === null) return unknownZone(zone);
      return BigInt(part(parts));
    };
    library[`timestamp_${name}: timestamp . ${name}(): int`] = get;
    library[`timestamp_${name}_tz: timestamp . ${name}(string): int`] = get;
  }
  library['timestamp_to_milliseconds: timestamp . getMilliseconds(): int'] = milliseconds;
  library['timestamp_to_milliseconds_tz: timestamp . getMilliseconds(string): int'] = milliseconds;
  return library;
}

const DURATIONS: Library = {
  'duration_to_hours: duration . getHours(): int': ({ nanos }: Duration) =>
    nanos / (3600n * SECOND),
  'duration_to_minutes: duration . getMinutes(): int': ({ nanos }: Duration) =>
    nanos / (60n * SECOND),
  'duration_to_seconds: duration . getSeconds(): int': ({ nanos }: Duration) => nanos / SECOND,
  'duration_to_milliseconds: duration . getMilliseconds(): int': ({ nanos }: Duration) =>
    nanos / 1_000_000n,
};

export const TIME_LIBRARY: readonly Library[] = [getters(), DURATIONS];
