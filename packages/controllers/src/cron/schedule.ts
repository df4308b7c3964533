/**
 * Cron schedules as CronJobs have them: five fields or a descriptor, in a time zone.
 *
 * The rules are those of the parser that upstream uses: a star in the field of days of the month
 * or of the week leaves the choice to the other one, else either of them is enough; hours that a
 * change of the clock leaves out are not made up for.
 */

/** When a schedule is due. */
export interface Schedule {
  /** The first time after `afterMs` (milliseconds since 1970), or Infinity within five years. */
  next(afterMs: number): number;
}

export type ParsedSchedule =
  | { readonly ok: true; readonly schedule: Schedule }
  | { readonly ok: false; readonly message: string };

interface FieldRule {
  readonly least: number;
  readonly most: number;
  readonly names: readonly string[];
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const FIELDS: readonly FieldRule[] = [
  { least: 0, most: 59, names: [] },
  { least: 0, most: 23, names: [] },
  { least: 1, most: 31, names: [] },
  { least: 1, most: 12, names: ['', ...MONTHS] },
  { least: 0, most: 6, names: DAYS },
];
const DESCRIPTORS: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const YEARS_MAX = 5;
const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: MINUTE_MS, h: HOUR_MS };

/** Values of a field as bits, and whether it was a star. */
interface Field {
  readonly bits: bigint;
  readonly isStar: boolean;
}

/** Reads a schedule; `timeZone` is a name of the IANA database, or '' for UTC. */
export function parseSchedule(text: string, timeZone: string): ParsedSchedule {
  const every = /^@every (.+)$/.exec(text)?.[1];
  if (every !== undefined) return parseEvery(every);
  const expression = text.startsWith('@') ? DESCRIPTORS[text] : text;
  if (expression === undefined) return failed(`unrecognized descriptor: ${text}`);
  const parts = expression.trim().split(/\s+/);
  if (parts.length !== FIELDS.length || parts[0] === '') {
    const found = parts[0] === '' ? 0 : parts.length;
    return failed(`expected exactly 5 fields, found ${found}: [${parts.join(' ')}]`);
  }
  const fields: Field[] = [];
  for (const [index, rule] of FIELDS.entries()) {
    const field = parseField(parts[index] ?? '', rule);
    if (typeof field === 'string') return failed(field);
    fields.push(field);
  }
  return { ok: true, schedule: new FieldSchedule(fields, localClock(timeZone)) };
}

function failed(message: string): ParsedSchedule {
  return { ok: false, message };
}

/** `@every 1h30m`: counted from the time that is asked about, in whole seconds. */
function parseEvery(text: string): ParsedSchedule {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)];
  if (parts.map(([part]) => part).join('') !== text || parts.length === 0) {
    return failed(`failed to parse duration @every ${text}`);
  }
  const sum = parts.reduce((ms, [, count = '', unit = '']) => {
    return ms + Number(count) * (UNITS_MS[unit] ?? 0);
  }, 0);
  const periodMs = Math.max(1000, Math.floor(sum / 1000) * 1000);
  const next = (afterMs: number): number => Math.floor(afterMs / 1000) * 1000 + periodMs;
  return { ok: true, schedule: { next } };
}

function parseField(text: string, rule: FieldRule): Field | string {
  let bits = 0n;
  let isStar = false;
  for (const part of text.split(',')) {
    const range = parseRange(part, rule);
    if (typeof range === 'string') return range;
    bits |= range.bits;
    if (range.isStar) isStar = true;
  }
  return { bits, isStar };
}

/** `*`, `?`, `n`, `a-b`, each with `/step`; `n/step` goes to the end. */
function parseRange(text: string, rule: FieldRule): Field | string {
  const [range = '', stepText, extra] = text.split('/');
  if (extra !== undefined) return `too many slashes: ${text}`;
  const step = stepText === undefined ? 1 : Number(stepText);
  if (!Number.isInteger(step) || step <= 0 || stepText === '') {
    return step === 0 && stepText !== ''
      ? `step of range should be a positive number: ${text}`
      : `failed to parse int from ${text}`;
  }
  const isStar = range === '*' || range === '?';
  const [fromText = '', toText, third] = range.split('-');
  if (third !== undefined) return `too many hyphens: ${text}`;
  const from = isStar ? rule.least : valueOf(fromText, rule);
  let to = isStar ? rule.most : valueOf(toText ?? fromText, rule);
  if (from === undefined || to === undefined) return `failed to parse int from ${range}`;
  if (!isStar && toText === undefined && stepText !== undefined) to = rule.most;
  if (from < rule.least)
    return `beginning of range (${from}) below minimum (${rule.least}): ${text}`;
  if (to > rule.most) return `end of range (${to}) above maximum (${rule.most}): ${text}`;
  if (from > to) return `beginning of range (${from}) beyond end of range (${to}): ${text}`;
  let bits = 0n;
  for (let value = from; value <= to; value += step) bits |= 1n << BigInt(value);
  return { bits, isStar: isStar && step === 1 };
}

function valueOf(text: string, rule: FieldRule): number | undefined {
  const name = rule.names.indexOf(text.toLowerCase());
  if (name >= 0 && text !== '') return name;
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

class FieldSchedule implements Schedule {
  readonly #minutes: Field;
  readonly #hours: Field;
  readonly #days: Field;
  readonly #months: Field;
  readonly #weekdays: Field;
  readonly #clock: LocalClock;

  constructor(fields: readonly Field[], clock: LocalClock) {
    const none: Field = { bits: 0n, isStar: false };
    const [minutes = none, hours = none, days = none, months = none, weekdays = none] = fields;
    this.#minutes = minutes;
    this.#hours = hours;
    this.#days = days;
    this.#months = months;
    this.#weekdays = weekdays;
    this.#clock = clock;
  }

  next(afterMs: number): number {
    const clock = this.#clock;
    let ms = Math.floor(afterMs / MINUTE_MS) * MINUTE_MS + MINUTE_MS;
    const lastYear = new Date(clock.localOf(ms)).getUTCFullYear() + YEARS_MAX;
    for (;;) {
      const localMs = clock.localOf(ms);
      const local = new Date(localMs);
      const year = local.getUTCFullYear();
      if (year > lastYear) return Infinity;
      if (!has(this.#months, local.getUTCMonth() + 1)) {
        ms = later(ms, clock.utcOf(Date.UTC(year, local.getUTCMonth() + 1, 1)));
      } else if (!this.#isDay(local)) {
        ms = later(ms, clock.utcOf(Math.floor(localMs / DAY_MS) * DAY_MS + DAY_MS));
      } else if (!has(this.#hours, local.getUTCHours())) {
        ms += HOUR_MS - (localMs % HOUR_MS);
      } else if (has(this.#minutes, local.getUTCMinutes())) {
        return ms;
      } else {
        ms += MINUTE_MS;
      }
    }
  }

  #isDay(local: Date): boolean {
    const isDay = has(this.#days, local.getUTCDate());
    const isWeekday = has(this.#weekdays, local.getUTCDay());
    const isEither = !this.#days.isStar && !this.#weekdays.isStar;
    return isEither ? isDay || isWeekday : isDay && isWeekday;
  }
}

function has({ bits }: Field, value: number): boolean {
  return ((bits >> BigInt(value)) & 1n) === 1n;
}

/** A change of the clock must not send the search back. */
function later(ms: number, candidateMs: number): number {
  return candidateMs > ms ? candidateMs : ms + HOUR_MS;
}

/** Local time of a zone as milliseconds that read as if they were UTC. */
interface LocalClock {
  localOf(ms: number): number;
  utcOf(localMs: number): number;
}

/** Whether the name is one of a time zone that is known here. */
export function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone: name }).format(0) !== '';
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

function localClock(timeZone: string): LocalClock {
  if (timeZone === '' || /^(etc\/)?utc$/i.test(timeZone)) {
    return { localOf: (ms) => ms, utcOf: (localMs) => localMs };
  }
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  const localOf = (ms: number): number => {
    const parts: Record<string, number> = {};
    for (const { type, value } of format.formatToParts(ms)) parts[type] = Number(value);
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
    return Date.UTC(year, month - 1, day, hour, minute, second);
  };
  const utcOf = (localMs: number): number => {
    const guess = localMs - (localOf(localMs) - localMs);
    return localMs - (localOf(guess) - guess);
  };
  return { localOf, utcOf };
}
