import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, stringAt } from '@megaplane/machinery/json';
import { formatTime } from '@megaplane/machinery/times';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';

const BATCH = '/apis/batch/v1/namespaces/default';

async function change(api: WorkloadApi, path: string, body: JsonObject): Promise<void> {
  const contentType = 'application/merge-patch+json';
  assert((await api.request({ method: 'PATCH', path, contentType, body })).ok);
  await api.advance(1_000);
}

test('another schedule is waited for, what it missed is made when something happens', async () => {
  const api = new WorkloadApi();
  startManager(api, ['cronjob-controller']);
  const nowMs = api.timers.wallMs();
  const hour = new Date(nowMs).getUTCHours();
  const schedule = (hours: number): string => `0 ${(hour + 24 + hours) % 24} * * *`;
  const body: JsonObject = {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name: 'c' },
    spec: { schedule: schedule(3), jobTemplate: { spec: {} } },
    status: { lastScheduleTime: formatTime(Math.floor(nowMs / 1000) - 5 * 3600) },
  };
  assert((await api.request({ method: 'POST', path: `${BATCH}/cronjobs`, body })).ok);
  await api.advance(1_000);
  await change(api, `${BATCH}/cronjobs/c`, { spec: { schedule: schedule(-2) } });
  assert.equal(api.all('/apis/batch/v1/jobs').length, 0);
  await change(api, `${BATCH}/cronjobs/c`, { metadata: { labels: { a: 'b' } } });
  const jobs = api.all('/apis/batch/v1/jobs');
  assert.equal(jobs.length, 1);
  const [cronJob] = api.all('/apis/batch/v1/cronjobs');
  assert.equal(listAt(cronJob, 'status', 'active').length, 1);
});

test('a Job that was made before and has ended is told of as completed', async () => {
  const api = new WorkloadApi();
  startManager(api, ['cronjob-controller']);
  const nowS = Math.floor(api.timers.wallMs() / 1000);
  const body: JsonObject = {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name: 'c' },
    spec: { schedule: '0 * * * *', jobTemplate: { spec: {} } },
    status: { lastScheduleTime: formatTime(nowS - 3600) },
  };
  assert((await api.request({ method: 'POST', path: `${BATCH}/cronjobs`, body })).ok);
  await api.advance(1_000);
  const [job] = api.all('/apis/batch/v1/jobs');
  const name = stringAt(job, 'metadata', 'name');
  const conditions = [{ type: 'Complete', status: 'True' }];
  await change(api, `${BATCH}/jobs/${name}`, { status: { conditions } });
  const lastScheduleTime = formatTime(nowS - 3600);
  await change(api, `${BATCH}/cronjobs/c`, { status: { lastScheduleTime } });
  const seen = api.events.filter((text) => text.includes(`Saw completed job: ${name}`));
  assert.equal(seen.length, 2);
});
