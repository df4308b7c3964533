import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HealthCounts } from './health-counts.ts';
import { healthPage, type HealthCheck } from './health-pages.ts';

// The texts are those of kube-scheduler v1.36.1.
const check = (name: string, problem = ''): HealthCheck => ({ name, problem: () => problem });
const SHUTDOWN = check('shutdown');

function textAt(path: string, query: string, problem = '', counts = new HealthCounts()): string {
  const readyz = [SHUTDOWN, check('sched-handler-sync', problem)];
  const checks = { healthz: [check('ping')], readyz };
  const page = healthPage(path, new URLSearchParams(query), checks, counts);
  return page === null ? 'none' : `${page.status} ${page.text}`;
}

test('health is told in one word, or check by check', () => {
  assert.equal(textAt('/healthz', ''), '200 ok');
  assert.equal(textAt('/healthz', 'verbose'), '200 [+]ping ok\nhealthz check passed\n');
  const sync = '[+]sched-handler-sync ok\nreadyz check passed\n';
  assert.equal(textAt('/readyz', 'verbose'), `200 [+]shutdown ok\n${sync}`);
  assert.equal(textAt('/readyz/shutdown', ''), '200 ok');
  assert.equal(textAt('/readyz/ping', ''), 'none');
  assert.equal(textAt('/other', ''), 'none');
});

test('what is not well is always told check by check, without the reason', () => {
  const failed = '[-]sched-handler-sync failed: reason withheld\nreadyz check failed\n';
  assert.equal(textAt('/readyz', '', 'late'), `500 [+]shutdown ok\n${failed}`);
  const single = textAt('/readyz/sched-handler-sync', '', 'late');
  assert.equal(single, '500 internal server error: late\n');
});

test('checks can be left out by name', () => {
  assert.equal(textAt('/readyz', 'exclude=sched-handler-sync', 'late'), '200 ok');
  const warning = 'warn: some health checks cannot be excluded: no matches for "ping"\n';
  const lines = `[+]shutdown ok\n[+]sched-handler-sync ok\n${warning}readyz check passed\n`;
  assert.equal(textAt('/readyz', 'exclude=ping&verbose'), `200 ${lines}`);
});

test('checks are counted by page and outcome, excluded ones and single ones are not', () => {
  const counts = new HealthCounts();
  textAt('/readyz', '', '', counts);
  textAt('/readyz', 'exclude=shutdown', 'late', counts);
  textAt('/healthz/ping', '', '', counts);
  const lines = counts.text(12.5).split('\n');
  const values = lines.filter((line) => line !== '' && !line.startsWith('#'));
  assert.deepEqual(values, [
    'kubernetes_healthcheck{name="sched-handler-sync",type="readyz"} 0',
    'kubernetes_healthcheck{name="shutdown",type="readyz"} 1',
    'kubernetes_healthchecks_total{name="sched-handler-sync",status="error",type="readyz"} 1',
    'kubernetes_healthchecks_total{name="sched-handler-sync",status="success",type="readyz"} 1',
    'kubernetes_healthchecks_total{name="shutdown",status="success",type="readyz"} 1',
    'process_start_time_seconds 12.5',
  ]);
});
