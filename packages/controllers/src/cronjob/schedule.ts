/**
 * Cron schedules as CronJobs have them: five fields or a descriptor, in a time zone.
 *
 * The rules are those of the parser that upstream uses: a star in the field of days of the month
 * or of the week leaves the choice to the other one, else either of them is enough; hours that a
 * change of the clock leaves out are not made up for.
 */

import { parseCronFields, type CronField } from '@megaplane/machinery/cron-fields';
import { durationFault, parseDuration } from '@megaplane/machinery/times';

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
const QUARTER_MS = 900_000;
/** Offsets of a zone that are kept. */
const OFFSETS_MAX = 4_096;
const YEARS_MAX = 5;

/** Reads a schedule; `timeZone` is a name of the IANA database, or '' for UTC. */
export function parseSchedule(text: string, timeZone: string): ParsedSchedule {
  const every = /^@every (.*)$/s.exec(text)?.[1];
  if (every !== undefined) return parseEvery(every);
  const fields = parseCronFields(text);
  if (typeof fields === 'string') return failed(fields);
  return { ok: true, schedule: new FieldSchedule(fields, localClock(timeZone)) };
}

function failed(message: string): ParsedSchedule {
  return { ok: false, message };
}

/** `@every 1h30m`: counted from the time that is asked about, in whole seconds, one at least. */
function parseEvery(text: string): ParsedSchedule {
  const nanos = parseDuration(text);
  if (nanos === undefined) {
    return failed(`failed to parse duration @every ${text}: ${durationFault(text)}`);
  }
  const periodMs = Math.max(1000, Math.floor(nanos / 1e9) * 1000);
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

  /**
   * Step by step as upstream's parser library goes: where clocks change it comes to other days than
   * the calendar says, and so do the runs of every other cluster. `hasStepped` stays true: what is
   * below a field is brought to its beginning at the first step alone.
   */
  next(afterMs: number): number {
    const clock = this.#clock;
    let hasStepped = false;
    let time = clock.at((Math.floor(afterMs / 1000) + 1) * 1000);
    const lastYear = time.year + YEARS_MAX;
    // Each step ends where a larger field may have changed: then all are looked at again.
    while (time.year <= lastYear) {
      if (!has(this.#months, time.month)) {
        if (!hasStepped) time = clock.of(time.year, time.month, 1, 0);
        do time = clock.of(time.year, time.month + 1, time.day, time.hour, time.minute);
        while (time.month !== 1 && !has(this.#months, time.month));
        hasStepped = true;
        if (time.month === 1) continue;
      }
      if (!this.#isDay(time)) {
        time = this.#nextDay(hasStepped ? time : clock.of(time.year, time.month, time.day, 0));
        hasStepped = true;
        if (time.day === 1) continue;
      }
      if (!has(this.#hours, time.hour)) {
        if (!hasStepped) time = clock.of(time.year, time.month, time.day, time.hour);
        do time = clock.at(time.ms + HOUR_MS);
        while (time.hour !== 0 && !has(this.#hours, time.hour));
        hasStepped = true;
        if (time.hour === 0) continue;
      }
      if (!has(this.#minutes, time.minute)) {
        if (!hasStepped) time = clock.at(Math.floor(time.ms / MINUTE_MS) * MINUTE_MS);
        do time = clock.at(time.ms + MINUTE_MS);
        while (time.minute !== 0 && !has(this.#minutes, time.minute));
        hasStepped = true;
        if (time.minute === 0) continue;
      }
      const restMs = time.ms % MINUTE_MS;
      if (restMs === 0) return time.ms;
      time = clock.at(time.ms + MINUTE_MS - restMs);
      hasStepped = true;
    }
    return Infinity;
  }

  /** The next day that matches, or the first of the next month. */
  #nextDay(from: LocalTime): LocalTime {
    const clock = this.#clock;
    let time = from;
    do {
      time = clock.of(time.year, time.month, time.day + 1, time.hour, time.minute);
      // Midnight that a change of the clock leaves out is an hour off.
      if (time.hour > 12) time = clock.at(time.ms + (24 - time.hour) * HOUR_MS);
      else if (time.hour !== 0) time = clock.at(time.ms - time.hour * HOUR_MS);
    } while (time.day !== 1 && !this.#isDay(time));
    return time;
  }

  #isDay({ day, weekday }: LocalTime): boolean {
    const isDay = has(this.#days, day);
    const isWeekday = has(this.#weekdays, weekday);
    const isEither = !this.#days.isStar && !this.#weekdays.isStar;
    return isEither ? isDay || isWeekday : isDay && isWeekday;
  }
}

function has({ bits }: CronField, value: number): boolean {
  return ((bits >> BigInt(value)) & 1n) === 1n;
}

/** A time and what the clock of a zone shows then; months from 1, Sunday is 0. */
interface LocalTime {
  readonly ms: number;
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly weekday: number;
  readonly hour: number;
  readonly minute: number;
}

/** The clock of a zone. */
class LocalClock {
  readonly #offsetOf: (ms: number) => number;

  /** `offsetOf` tells how far the clock is ahead of UTC. */
  constructor(offsetOf: (ms: number) => number) {
    this.#offsetOf = offsetOf;
  }

  at(ms: number): LocalTime {
    const local = new Date(ms + this.#offsetOf(ms));
    return {
      ms,
      year: local.getUTCFullYear(),
      month: local.getUTCMonth() + 1,
      day: local.getUTCDate(),
      weekday: local.getUTCDay(),
      hour: local.getUTCHours(),
      minute: local.getUTCMinutes(),
    };
  }

  /** When the clock shows this, as Go's `time.Date` chooses where that is twice or never. */
  of(year: number, month: number, day: number, hour: number, minute = 0): LocalTime {
    const local = Date.UTC(year, month - 1, day, hour, minute);
    const first = this.#offsetOf(local);
    return this.at(first === 0 ? local : local - this.#offsetOf(local - first));
  }
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
  if (timeZone === '' || /^(etc\/)?utc$/i.test(timeZone)) return new LocalClock(() => 0);
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
  const offsetOf = (ms: number): number => {
    const parts: Record<string, number> = {};
    for (const { type, value } of format.formatToParts(ms)) parts[type] = Number(value);
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
    return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(ms / 1000) * 1000;
  };
  return new LocalClock(keptOffsets(offsetOf));
}

/** Clocks change at quarters of an hour; a search looks at the same ones again and again. */
function keptOffsets(offsetOf: (ms: number) => number): (ms: number) => number {
  const kept = new Map<number, number>();
  return (ms) => {
    const quarter = Math.floor(ms / QUARTER_MS);
    const known = kept.get(quarter);
    if (known !== undefined) return known;
    if (kept.size >= OFFSETS_MAX) kept.clear();
    const offset = offsetOf(quarter * QUARTER_MS);
    kept.set(quarter, offset);
    return offset;
  };
}
