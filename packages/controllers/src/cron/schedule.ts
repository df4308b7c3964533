/**
 * Cron schedules as CronJobs have them: five fields or a descriptor, in a time zone.
 *
 * The rules are those of the parser that upstream uses: a star in the field of days of the month
 * or of the week leaves the choice to the other one, else either of them is enough; hours that a
 * change of the clock leaves out are not made up for.
 */

import { parseCronFields, type CronField } from '@megaplane/machinery/cron-fields';

/** When a schedule is due. */
export interface Schedule {
  /** The first time after `afterMs` (milliseconds since 1970), or Infinity within five years. */
  next(afterMs: number): number;
}

export type ParsedSchedule =
  | { readonly ok: true; readonly schedule: Schedule }
  | { readonly ok: false; readonly message: string };

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const YEARS_MAX = 5;
const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: MINUTE_MS, h: HOUR_MS };

/** Reads a schedule; `timeZone` is a name of the IANA database, or '' for UTC. */
export function parseSchedule(text: string, timeZone: string): ParsedSchedule {
  const every = /^@every (.+)$/.exec(text)?.[1];
  if (every !== undefined) return parseEvery(every);
  const fields = parseCronFields(text);
  if (typeof fields === 'string') return failed(fields);
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

class FieldSchedule implements Schedule {
  readonly #minutes: CronField;
  readonly #hours: CronField;
  readonly #days: CronField;
  readonly #months: CronField;
  readonly #weekdays: CronField;
  readonly #clock: LocalClock;

  constructor(fields: readonly CronField[], clock: LocalClock) {
    const none: CronField = { bits: 0n, isStar: false };
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

function has({ bits }: CronField, value: number): boolean {
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
