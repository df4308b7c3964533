import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt } from '@megaplane/machinery/json';
import { dueRun, isTooLate, jobOf, SCHEDULED_AT, surplusJobs } from './cron-job.ts';
import { parseSchedule, type Schedule } from './schedule.ts';

const OWNER = { apiVersion: 'batch/v1', kind: 'CronJob', namespace: 'd', name: 'c', uid: 'u' };

function every(text: string): Schedule {
  const parsed = parseSchedule(text, '');
  assert(parsed.ok);
  return parsed.schedule;
}

function cronJob(lastScheduleTime: string, spec: JsonObject = {}): JsonObject {
  return { metadata: { name: 'c' }, spec, status: { lastScheduleTime } };
}

function due(one: JsonObject, text: string, now: string): readonly [string | undefined, boolean] {
  const { atMs, missesMany } = dueRun(one, every(text), Date.parse(now));
  return [atMs === undefined ? undefined : new Date(atMs).toISOString(), missesMany];
}

test('of the runs that were missed the newest is due', () => {
  const one = cronJob('2026-01-01T00:00:00Z');
  assert.deepEqual(due(one, '*/10 * * * *', '2026-01-01T00:09:59Z'), [undefined, false]);
  assert.deepEqual(due(one, '*/10 * * * *', '2026-01-01T00:10:00Z'), [
    '2026-01-01T00:10:00.000Z',
    false,
  ]);
  assert.deepEqual(due(one, '*/10 * * * *', '2026-01-01T05:05:00Z'), [
    '2026-01-01T05:00:00.000Z',
    false,
  ]);
  assert.deepEqual(due(one, '* * * * *', '2026-01-02T00:00:30Z'), [
    '2026-01-02T00:00:00.000Z',
    true,
  ]);
  assert.deepEqual(due(one, '30 6-16/4 * * 1-5', '2026-01-05T12:00:00Z'), [
    '2026-01-05T10:30:00.000Z',
    false,
  ]);
});

test('a schedule without runs is told apart from one that waits', () => {
  const one = cronJob('2026-01-01T00:00:00Z');
  const isNever = (text: string): boolean | undefined =>
    dueRun(one, every(text), Date.parse('2026-01-01T00:00:30Z')).isNever;
  assert.equal(isNever('0 0 30 2 *'), true);
  assert.equal(isNever('0 0 29 2 *'), undefined);
});

test('runs that lie unevenly: the newest is guessed as upstream does, or waited for', () => {
  const one = cronJob('2026-01-02T06:30:00Z');
  const text = '30 6-16/4 * * 1-5';
  assert.deepEqual(due(one, text, '2026-01-05T03:00:00Z'), [undefined, false]);
  assert.deepEqual(due(one, text, '2026-01-05T06:30:00Z'), ['2026-01-05T06:30:00.000Z', false]);
});

test('a starting deadline hides what is older', () => {
  const one = cronJob('2026-01-01T00:00:00Z', { startingDeadlineSeconds: 60 });
  assert.deepEqual(due(one, '0 * * * *', '2026-01-01T01:00:59Z'), [
    '2026-01-01T01:00:00.000Z',
    false,
  ]);
  assert.deepEqual(due(one, '0 * * * *', '2026-01-01T01:30:00Z'), [undefined, false]);
  assert.equal(
    isTooLate(one, Date.parse('2026-01-01T01:00:00Z'), Date.parse('2026-01-01T01:01:01Z')),
    true,
  );
});

test('the job of a run tells when it was planned, in the zone of the schedule', () => {
  const one = cronJob('', {
    timeZone: 'America/New_York',
    jobTemplate: { metadata: { labels: { a: 'b' } }, spec: { x: 1 } },
  });
  const job = jobOf(one, OWNER, Date.parse('2026-07-01T13:00:00Z'));
  const metadata = job['metadata'] as JsonObject;
  assert.equal(metadata['name'], `c-${Date.parse('2026-07-01T13:00:00Z') / 60_000}`);
  assert.deepEqual(metadata['annotations'], { [SCHEDULED_AT]: '2026-07-01T09:00:00-04:00' });
  assert.deepEqual([metadata['labels'], job['spec']], [{ a: 'b' }, { x: 1 }]);
  const winter = jobOf(
    cronJob('', { timeZone: 'Europe/London' }),
    OWNER,
    Date.parse('2026-01-01T00:00:00Z'),
  );
  assert.deepEqual(objectAt(winter, 'metadata', 'annotations'), {
    [SCHEDULED_AT]: '2026-01-01T00:00:00Z',
  });
});

test('finished jobs beyond the limits go, the oldest first', () => {
  const job = (name: string, type: string, startTime: string): JsonObject => ({
    metadata: { name },
    status: { startTime, conditions: [{ type, status: 'True' }] },
  });
  const jobs = [
    job('new', 'Complete', '2026-01-03T00:00:00Z'),
    job('old', 'Complete', '2026-01-01T00:00:00Z'),
    job('bad', 'Failed', '2026-01-02T00:00:00Z'),
  ];
  const names = (spec: JsonObject): unknown =>
    surplusJobs({ spec }, jobs).map((one) => (one['metadata'] as JsonObject)['name']);
  assert.deepEqual(names({ successfulJobsHistoryLimit: 1, failedJobsHistoryLimit: 1 }), ['old']);
  assert.deepEqual(names({ successfulJobsHistoryLimit: 0, failedJobsHistoryLimit: 0 }), [
    'old',
    'new',
    'bad',
  ]);
  assert.deepEqual(names({}), []);
});
