/**
 * The decisions of a CronJob, without world: which run is due, what the Job of a run is called and
 * made of, which of its finished Jobs are too many. The rules are upstream's.
 */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { formatTime, parseTime } from '@megaplane/machinery/times';
import { controllerReference, type PodOwner } from '../framework/pod-control.ts';
import type { Schedule } from './schedule.ts';

export const SCHEDULED_AT = 'batch.kubernetes.io/cronjob-scheduled-timestamp';
/** So many missed runs are worth a warning. */
export const MISSED_MANY = 100;

/** Milliseconds of a time in an object; undefined where there is none. */
export function timeMs(object: JsonObject, ...path: readonly string[]): number | undefined {
  const time = parseTime(stringAt(object, ...path));
  return time === undefined ? undefined : time.seconds * 1000;
}

export interface DueRun {
  /** When the newest run that is due was planned; undefined for none. */
  readonly atMs: number | undefined;
  readonly missesMany: boolean;
  /** The schedule has no further runs, as that of the 30th of February. */
  readonly isNever?: boolean;
}

/** The newest run that is due at `nowMs`, since the last one or within the starting deadline. */
export function dueRun(cronJob: JsonObject, schedule: Schedule, nowMs: number): DueRun {
  const none = { atMs: undefined, missesMany: false };
  let earliestMs =
    timeMs(cronJob, 'status', 'lastScheduleTime') ??
    timeMs(cronJob, 'metadata', 'creationTimestamp') ??
    nowMs;
  const deadlineSeconds = valueAt(cronJob, 'spec', 'startingDeadlineSeconds');
  if (typeof deadlineSeconds === 'number') {
    earliestMs = Math.max(earliestMs, nowMs - deadlineSeconds * 1000);
  }
  const first = schedule.next(earliestMs);
  if (first === Infinity) return { ...none, isNever: true };
  if (first > nowMs) return none;
  const second = schedule.next(first);
  if (second === Infinity) return { ...none, isNever: true };
  if (second > nowMs) return { atMs: first, missesMany: false };
  const betweenMs = Math.max(1000, Math.round((second - first) / 1000) * 1000);
  const missed = Math.floor((nowMs - first) / betweenMs) + 1;
  // where runs lie unevenly none may be found: then the next one is waited for, as upstream
  let atMs: number | undefined;
  const from = first + (missed - 2) * betweenMs;
  for (let ms = schedule.next(from); ms <= nowMs; ms = schedule.next(ms)) atMs = ms;
  return { atMs, missesMany: missed > MISSED_MANY };
}

/** Whether the run of `atMs` is beyond its starting deadline. */
export function isTooLate(cronJob: JsonObject, atMs: number, nowMs: number): boolean {
  const seconds = valueAt(cronJob, 'spec', 'startingDeadlineSeconds');
  return typeof seconds === 'number' && atMs + seconds * 1000 < nowMs;
}

/** The name of the Job of a run: the same for every try at it. */
export function jobName(cronJob: JsonObject, atMs: number): string {
  return `${stringAt(cronJob, 'metadata', 'name')}-${Math.floor(atMs / 60_000)}`;
}

/** The Job of a run. */
export function jobOf(cronJob: JsonObject, owner: PodOwner, atMs: number): JsonObject {
  const template = objectAt(cronJob, 'spec', 'jobTemplate') ?? {};
  const given = objectAt(template, 'metadata') ?? {};
  const annotations = { ...objectAt(given, 'annotations') };
  annotations[SCHEDULED_AT] = scheduledText(atMs, stringAt(cronJob, 'spec', 'timeZone'));
  const metadata: JsonObject = {
    name: jobName(cronJob, atMs),
    namespace: owner.namespace,
    annotations,
    ownerReferences: [controllerReference(owner)],
  };
  const labels = objectAt(given, 'labels');
  if (labels !== undefined) metadata['labels'] = labels;
  const spec = objectAt(template, 'spec') ?? {};
  return { apiVersion: 'batch/v1', kind: 'Job', metadata, spec };
}

/** RFC 3339 in the time zone of the schedule. */
function scheduledText(atMs: number, timeZone: string): string {
  if (timeZone === '' || /^(etc\/)?utc$/i.test(timeZone)) return formatTime(atMs / 1000);
  const format = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' });
  const name = format.formatToParts(atMs).find(({ type }) => type === 'timeZoneName')?.value ?? '';
  const offset = name.replace('GMT', '');
  // As Go prints it: without an offset, whatever the zone is called.
  if (offset === '' || offset === '+00:00') return formatTime(atMs / 1000);
  const sign = offset.startsWith('-') ? -1 : 1;
  const [hours = 0, minutes = 0] = offset.slice(1).split(':').map(Number);
  const localMs = atMs + sign * (hours * 60 + minutes) * 60_000;
  return formatTime(localMs / 1000).replace('Z', offset);
}

/** `Complete` or `Failed` where the Job has ended. */
export function endOf(job: JsonObject): 'Complete' | 'Failed' | undefined {
  for (const condition of listAt(job, 'status', 'conditions')) {
    const type = stringAt(condition, 'type');
    const isEnd = type === 'Complete' || type === 'Failed';
    if (isEnd && stringAt(condition, 'status') === 'True') return type;
  }
  return undefined;
}

/** Finished Jobs beyond the limits of the history, those first that began first. */
export function surplusJobs(cronJob: JsonObject, jobs: readonly JsonObject[]): JsonObject[] {
  const surplus: JsonObject[] = [];
  for (const [end, field] of [
    ['Complete', 'successfulJobsHistoryLimit'],
    ['Failed', 'failedJobsHistoryLimit'],
  ] as const) {
    if (typeof valueAt(cronJob, 'spec', field) !== 'number') continue;
    const limit = numberAt(cronJob, 'spec', field);
    const ended = jobs.filter((job) => endOf(job) === end).toSorted(byStart);
    surplus.push(...ended.slice(0, Math.max(0, ended.length - limit)));
  }
  return surplus;
}

function byStart(left: JsonObject, right: JsonObject): number {
  const leftMs = timeMs(left, 'status', 'startTime') ?? Infinity;
  const rightMs = timeMs(right, 'status', 'startTime') ?? Infinity;
  if (leftMs !== rightMs) return leftMs < rightMs ? -1 : 1;
  const names = [left, right].map((job) => stringAt(job, 'metadata', 'name'));
  return (names[0] ?? '') < (names[1] ?? '') ? -1 : 1;
}
