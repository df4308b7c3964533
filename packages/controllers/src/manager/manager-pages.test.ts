import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from '@megaplane/client/http-endpoint';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import { managerConfigz } from './manager-configz.ts';
import { ManagerPages } from './manager-pages.ts';

function pagesOf(isElected: boolean, atWork: readonly string[]): (url: string) => Page | null {
  const pages = new ManagerPages({
    flags: new Map([['controllers', '*']]),
    startedMs: 1_000,
    runtime: 'node v26',
    nowMs: () => 61_000,
    metrics: () => 'up 1\n',
    configz: () => '{}',
    atWork: () => atWork,
    isElected,
    *graph(uids) {
      yield `${uids.join()}\n`;
    },
  });
  return (url) => {
    const [path = '', query] = url.split('?');
    return pages.pageAt({ path, query: new URLSearchParams(query), accept: '' });
  };
}

test('health is told controller by controller, once they are at work', () => {
  const waiting = pagesOf(true, []);
  assert.equal(waiting('/healthz')?.text, 'ok');
  assert.equal(waiting('/healthz?verbose')?.text, '[+]leaderElection ok\nhealthz check passed\n');
  const leading = pagesOf(true, ['job-controller']);
  const text = '[+]leaderElection ok\n[+]job-controller ok\nhealthz check passed\n';
  assert.equal(leading('/healthz?verbose')?.text, text);
  assert.equal(leading('/healthz/job-controller')?.text, 'ok');
  assert.equal(leading('/healthz/other-controller'), null);
  const slis = leading('/metrics/slis')?.text ?? '';
  assert.match(slis, /kubernetes_healthcheck\{name="job-controller",type="healthz"\} 1/);
  assert.equal(pagesOf(false, [])('/healthz?verbose')?.text, '[+]ping ok\nhealthz check passed\n');
});

test('the program tells of itself, and of the graph of owners', async () => {
  const page = pagesOf(false, []);
  assert.match(page('/metrics')?.text ?? '', /^up 1\n/);
  assert.match(page('/statusz')?.text ?? '', /^\nkube-controller-manager statusz\n/);
  assert.match(page('/flagz')?.text ?? '', /\ncontrollers \*\n/);
  assert.equal(page('/debug/controllers/other/graph'), null);
  const graph = page('/debug/controllers/garbage-collector-controller/graph?uid=a&uid=b');
  assert.equal(graph?.contentType, 'text/vnd.graphviz');
  let text = '';
  for await (const piece of graph?.pieces ?? []) text += piece;
  assert.equal(text, 'a,b\n');
});

test('configz shows what was told and what is usual', () => {
  const log = (): void => {};
  const shown = managerConfigz({
    ...{ kubeconfig: 'k', log, nodeMonitorPeriodMs: 2_500 },
    concurrentSyncs: { 'job-controller': 9 },
  });
  const [whole] = Object.values(shown);
  assert.equal(stringAt(whole, 'kind'), 'KubeControllerManagerConfiguration');
  assert.deepEqual(objectAt(whole, 'JobController'), { ConcurrentJobSyncs: 9 });
  assert.equal(stringAt(whole, 'KubeCloudShared', 'NodeMonitorPeriod'), '2.5s');
  assert.equal(stringAt(whole, 'Generic', 'LeaderElection', 'renewDeadline'), '10s');
});
