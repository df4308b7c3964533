import type { JsonValue } from '../json/json-value.ts';
import { stringAt } from '../json/json.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/**
 * A duration for people, in at most two units and coarser with its size. Up to two seconds in
 * the future count as now, because clocks differ; further away is `<invalid>`.
 */
export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / SECOND_MS);
  if (seconds < -1) return '<invalid>';
  if (seconds < 0) return '0s';
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(ms / MINUTE_MS);
  if (minutes < 10) return pair(minutes, 'm', seconds % 60, 's');
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(ms / HOUR_MS);
  if (hours < 8) return pair(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return `${hours}h`;
  const days = Math.floor(hours / 24);
  if (hours < 192) return pair(days, 'd', hours % 24, 'h');
  if (days < 730) return `${days}d`;
  const years = Math.floor(days / 365);
  return days < 2920 ? pair(years, 'y', days % 365, 'd') : `${years}y`;
}

function pair(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit}${small}${smallUnit}`;
}

/** In place of now: ages become marks, for those who keep a row and fill in its ages later. */
export const LATER: number = Number.NaN;
/** A mark: the time since which it is, in milliseconds since 1970, between two of these. */
export const MARK = '\u0001';

/** How many were made so far: texts of objects may hold what looks like one. */
export const marks: { made: number } = { made: 0 };

/** Time since `atMs`, or a mark. */
export function agoText(atMs: number, nowMs: number): string {
  if (!Number.isNaN(nowMs)) return humanDuration(nowMs - atMs);
  marks.made++;
  return MARK + String(atMs) + MARK;
}

/** Time since a timestamp, or `<unknown>` where there is none. */
export function sinceText(timestamp: string, nowMs: number): string {
  const atMs = Date.parse(timestamp);
  return Number.isNaN(atMs) ? '<unknown>' : agoText(atMs, nowMs);
}

/** Age of an object. */
export function ageText(object: JsonValue, nowMs: number): string {
  return sinceText(stringAt(object, 'metadata', 'creationTimestamp'), nowMs);
}
