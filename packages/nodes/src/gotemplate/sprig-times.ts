/** The functions of the sprig library on time and on spans of time. */
import { durationMs } from '../yaml/go-numbers.ts';
import { formatTime, GoTime, parseTime, ZERO_TIME_MS } from './go-time.ts';
import { GoInt64, type GoValue } from './go-values.ts';
import { textOf } from './sprig-functions.ts';
import type { TemplateFunctions } from './template-run.ts';

const ROUND: readonly (readonly [unit: string, ms: number])[] = [
  ['y', 365 * 86_400_000],
  ['mo', 30 * 86_400_000],
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
];

function rounded(spanMs: number): string {
  const found = ROUND.find(([, ms]) => Math.abs(spanMs) > ms);
  return found === undefined ? '0s' : `${Math.floor(Math.abs(spanMs) / found[1])}${found[0]}`;
}

/** Whole seconds as Go prints a duration: `1m35s`. */
function secondsText(seconds: number): string {
  const whole = Math.abs(seconds);
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  const parts = [`${whole % 60}s`];
  if (whole >= 60) parts.unshift(`${minutes}m`);
  if (whole >= 3600) parts.unshift(`${hours}h`);
  return (seconds < 0 ? '-' : '') + parts.join('');
}

/** `Local` is UTC here. */
export function timeFunctions(nowMs: () => number): TemplateFunctions {
  /** As sprig: times and seconds since 1970; whatever else there is stands for now. */
  const timeMs = (value: GoValue): number => {
    if (value instanceof GoTime) return value.ms;
    if (value instanceof GoInt64) return Number(value.value) * 1000;
    return typeof value === 'bigint' ? Number(value) * 1000 : nowMs();
  };
  const inZone = (layout: GoValue, value: GoValue, zone: GoValue): string =>
    formatTime(textOf(layout), timeMs(value), textOf(zone));
  const date = (layout: GoValue, value: GoValue): string => inZone(layout, value, 'Local');
  const moved = (span: GoValue, time: GoValue): GoTime =>
    new GoTime(timeMs(time) + (durationMs(textOf(span)) ?? 0));
  const strictly = (span: GoValue, time: GoValue): GoTime => {
    if (durationMs(textOf(span)) === undefined) throw new Error(`invalid duration ${textOf(span)}`);
    return moved(span, time);
  };
  const htmlDate = '2006-01-02';
  return {
    now: () => new GoTime(nowMs()),
    date,
    ...{ dateInZone: inZone, date_in_zone: inZone },
    htmlDate: (value) => date(htmlDate, value),
    htmlDateInZone: (value, zone) => inZone(htmlDate, value, zone),
    unixEpoch: (value) => String(Math.floor(timeMs(value) / 1000)),
    toDate: (layout, value) => new GoTime(parseTime(textOf(layout), textOf(value)) ?? ZERO_TIME_MS),
    mustToDate: (layout, value) => {
      const time = parseTime(textOf(layout), textOf(value));
      if (time !== undefined) return new GoTime(time);
      throw new Error(`parsing time ${JSON.stringify(value)} as ${JSON.stringify(layout)}`);
    },
    ago: (time) => secondsText(Math.round((nowMs() - timeMs(time)) / 1000)),
    ...{ dateModify: moved, date_modify: moved, mustDateModify: strictly },
    must_date_modify: strictly,
    duration: (value) => {
      if (value instanceof GoInt64) return secondsText(Number(value.value));
      const isWhole = typeof value === 'string' && /^[+-]?\d+$/.test(value);
      return secondsText(isWhole ? Number(value) : 0);
    },
    durationRound: (value) => {
      if (value instanceof GoTime) return rounded(nowMs() - value.ms);
      if (value instanceof GoInt64) return rounded(Number(value.value) / 1e6);
      return typeof value === 'string' ? rounded(durationMs(value) ?? 0) : '0s';
    },
  };
}
