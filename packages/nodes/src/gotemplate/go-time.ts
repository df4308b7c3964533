/** Times of Go as templates format and read them: layouts are the reference time, as `15:04`. */
import { ownMember } from '@megaplane/base/members';

/** A `time.Time`. */
export class GoTime {
  readonly ms: number;

  constructor(ms: number) {
    this.ms = ms;
  }

  /** As Go's `String` has it. */
  get text(): string {
    return formatTime('2006-01-02 15:04:05.999999999 -0700 MST', this.ms, 'UTC');
  }

  /** RFC 3339 with as many digits of the second as needed. */
  get rfc3339(): string {
    return formatTime('2006-01-02T15:04:05.999999999Z07:00', this.ms, 'UTC');
  }
}

/** What Go has where a text was no time. */
export const ZERO_TIME_MS = -62_135_596_800_000;

const MONTHS = [
  ...['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September'],
  ...['October', 'November', 'December'],
];
const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

/** The parts of a layout, longest first where one begins as another does (`nextStdChunk`). */
const PART = new RegExp(
  [
    ...[
      'January',
      'Jan(?![a-z])',
      'Monday',
      'Mon(?![a-z])',
      'MST',
      '2006',
      '__2',
      '_2',
      '002',
      '01',
      '02',
      '03',
    ],
    ...['04', '05', '06', '15', 'PM', 'pm', 'Z07:00', 'Z0700', 'Z07', '-07:00', '-0700', '-07'],
    ...[String.raw`[.,]0+(?!\d)`, String.raw`[.,]9+(?!\d)`, '1', '2', '3', '4', '5'],
  ].join('|'),
  'g',
);

/** Minutes east of Greenwich; 0 for zones that are not known. */
function zoneMinutes(
  ms: number,
  zone: string,
): { readonly minutes: number; readonly name: string } {
  if (zone === 'UTC' || zone === 'Local' || zone === '') return { minutes: 0, name: 'UTC' };
  try {
    const parts = new Intl.DateTimeFormat('en-US', {
      ...{ timeZone: zone, timeZoneName: 'short', hourCycle: 'h23', year: 'numeric' },
      ...{ month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric' },
    }).formatToParts(ms);
    const of = (type: string): string => parts.find((part) => part.type === type)?.value ?? '';
    const [year = 0, month = 1, day, hour, minute] = ['year', 'month', 'day', 'hour', 'minute'].map(
      (type) => Number(of(type)),
    );
    const local = Date.UTC(year, month - 1, day, hour, minute);
    const minutes = Math.round((local - Math.floor(ms / 60_000) * 60_000) / 60_000);
    const given = of('timeZoneName');
    const name = given.startsWith('GMT') ? offsetText(minutes, '').replace(/00$/, '') : given;
    return { minutes, name };
  } catch {
    // as Go's sprig: a zone that nobody knows is UTC
    return { minutes: 0, name: 'UTC' };
  }
}

function offsetText(minutes: number, colon: string): string {
  const size = Math.abs(minutes);
  const two = (number: number): string => String(number).padStart(2, '0');
  return `${minutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}${colon}${two(size % 60)}`;
}

/** A time by a layout, as `Time.In(zone).Format(layout)`. */
export function formatTime(layout: string, ms: number, zone: string): string {
  const { minutes, name } = zoneMinutes(ms, zone);
  const time = new Date(ms + minutes * 60_000);
  return layout.replaceAll(PART, (part) => partText(part, time, minutes, name));
}

function partText(part: string, time: Date, minutes: number, zoneName: string): string {
  const pad = (number: number, width = 2, by = '0'): string => String(number).padStart(width, by);
  const month = MONTHS[time.getUTCMonth()] ?? '';
  const day = DAYS[time.getUTCDay()] ?? '';
  const hour = time.getUTCHours();
  const yearDay =
    Math.floor((time.getTime() - Date.UTC(time.getUTCFullYear(), 0)) / 86_400_000) + 1;
  const parts: Readonly<Record<string, string>> = {
    ...{ '2006': pad(time.getUTCFullYear(), 4), '06': pad(time.getUTCFullYear() % 100) },
    ...{ January: month, Jan: month.slice(0, 3), Monday: day, Mon: day.slice(0, 3) },
    ...{ '01': pad(time.getUTCMonth() + 1), '1': String(time.getUTCMonth() + 1) },
    ...{ '02': pad(time.getUTCDate()), _2: pad(time.getUTCDate(), 2, ' ') },
    ...{ '2': String(time.getUTCDate()), '002': pad(yearDay, 3), __2: pad(yearDay, 3, ' ') },
    ...{ '15': pad(hour), '03': pad(hour % 12 || 12), '3': String(hour % 12 || 12) },
    ...{ '04': pad(time.getUTCMinutes()), '4': String(time.getUTCMinutes()) },
    ...{ '05': pad(time.getUTCSeconds()), '5': String(time.getUTCSeconds()) },
    ...{ PM: hour < 12 ? 'AM' : 'PM', pm: hour < 12 ? 'am' : 'pm', MST: zoneName },
    ...{ '-07:00': offsetText(minutes, ':'), '-0700': offsetText(minutes, '') },
    ...{ '-07': offsetText(minutes, '').slice(0, 3) },
    'Z07:00': minutes === 0 ? 'Z' : offsetText(minutes, ':'),
    Z0700: minutes === 0 ? 'Z' : offsetText(minutes, ''),
    Z07: minutes === 0 ? 'Z' : offsetText(minutes, '').slice(0, 3),
  };
  const found = ownMember(parts, part);
  if (found !== undefined) return found;
  const digits = pad(time.getUTCMilliseconds(), 3).padEnd(part.length - 1, '0');
  const cut = digits.slice(0, part.length - 1);
  const shown = part.includes('9') ? cut.replace(/0+$/, '') : cut;
  return shown === '' ? '' : `${part.slice(0, 1)}${shown}`;
}

/** What each part of a layout takes when a text is read. */
const TAKES: Readonly<Record<string, string>> = {
  ...{ '2006': String.raw`\d{4}`, '06': String.raw`\d\d`, '01': String.raw`\d\d` },
  ...{ '1': String.raw`\d\d?`, '02': String.raw`\d\d?`, '2': String.raw`\d\d?` },
  ...{ _2: String.raw` ?\d\d?`, '15': String.raw`\d\d`, '03': String.raw`\d\d` },
  ...{ '3': String.raw`\d\d?`, '04': String.raw`\d\d`, '4': String.raw`\d\d?` },
  ...{ '05': String.raw`\d\d(?:[.,]\d+)?`, '5': String.raw`\d\d?(?:[.,]\d+)?` },
  ...{ January: MONTHS.join('|'), Jan: MONTHS.map((month) => month.slice(0, 3)).join('|') },
  ...{ Monday: DAYS.join('|'), Mon: DAYS.map((day) => day.slice(0, 3)).join('|') },
  ...{ MST: '[A-Z]{3,4}', PM: 'AM|PM', pm: 'am|pm', 'Z07:00': String.raw`Z|[+-]\d\d:\d\d` },
  ...{ Z0700: String.raw`Z|[+-]\d{4}`, Z07: String.raw`Z|[+-]\d\d` },
  ...{ '-07:00': String.raw`[+-]\d\d:\d\d`, '-0700': String.raw`[+-]\d{4}` },
  ...{ '-07': String.raw`[+-]\d\d`, '002': String.raw`\d{3}`, __2: String.raw`[ \d]{2}\d` },
};

/** The time that a text tells by a layout; undefined where it does not fit. */
export function parseTime(layout: string, text: string): number | undefined {
  const names: string[] = [];
  let pattern = '';
  let at = 0;
  for (const match of layout.matchAll(PART)) {
    const [part] = match;
    pattern += RegExp.escape(layout.slice(at, match.index));
    pattern += `(${ownMember(TAKES, part) ?? String.raw`[.,]\d+`})`;
    names.push(part);
    at = match.index + part.length;
  }
  const found = new RegExp(`^${pattern}${RegExp.escape(layout.slice(at))}$`).exec(text);
  if (found === null) return undefined;
  return timeOfParts(new Map(names.map((name, index) => [name, found[index + 1] ?? ''])));
}

function timeOfParts(parts: ReadonlyMap<string, string>): number | undefined {
  const first = (...names: string[]): string | undefined =>
    names.map((name) => parts.get(name)).find((value) => value !== undefined);
  const short = Number(parts.get('06') ?? '0');
  const year = Number(
    parts.get('2006') ?? (parts.has('06') ? short + (short < 69 ? 2000 : 1900) : 0),
  );
  const monthName = first('January', 'Jan');
  const named = MONTHS.findIndex((month) => month.slice(0, 3) === monthName?.slice(0, 3)) + 1;
  const month = monthName === undefined ? Number(first('01', '1') ?? '1') : named;
  const day = Number(first('02', '2', '_2') ?? '1');
  const half = first('PM', 'pm')?.toUpperCase();
  const clock = Number(first('15', '03', '3') ?? '0');
  const hour = half === undefined ? clock : (clock % 12) + (half === 'PM' ? 12 : 0);
  const minute = Number(first('04', '4') ?? '0');
  const second = Number((first('05', '5') ?? '0').replace(',', '.'));
  const isPossible =
    month >= 1 && month <= 12 && day >= 1 && hour < 24 && minute < 60 && second < 60;
  const time = new Date(0);
  time.setUTCFullYear(year, month - 1, day);
  if (!isPossible || time.getUTCMonth() !== month - 1) return undefined;
  time.setUTCHours(hour, minute, 0, Math.round(second * 1000));
  const zone = first('Z07:00', 'Z0700', 'Z07', '-07:00', '-0700', '-07') ?? 'Z';
  const [, sign, hours = '0', minutes = '0'] = /^([+-])(\d\d):?(\d\d)?$/.exec(zone) ?? [];
  const eastMs = (Number(hours) * 60 + Number(minutes)) * 60_000;
  return time.getTime() - (sign === '-' ? -eastMs : sign === '+' ? eastMs : 0);
}
