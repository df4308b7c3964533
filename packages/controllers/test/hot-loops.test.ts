/** What cannot be done now is tried ever more seldom: requests per minute are bounded. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClientRequest, ClientResponse } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { stringAt } from '@megaplane/machinery/json';
import { startManager } from './manager.ts';
import { WorkloadApi } from './workload-api.ts';

const APPS = '/apis/apps/v1/namespaces/default';
const PODS = '/api/v1/namespaces/default/pods';
const MINUTE_MS = 60_000;
/** In the first minute waits double from 5 ms on; afterwards a try comes once in it, and less. */
const FIRST_MINUTE_MAX = 40;
const MINUTE_MAX = 6;

/** Counts what is asked, by minute and by what it is asked of. */
class CountingApi extends WorkloadApi {
  readonly counts: Map<string, number>[] = [];

  override async request(request: ClientRequest): Promise<ClientResponse> {
    const minute = Math.floor((this.timers.nowMs() - this.startMs) / MINUTE_MS);
    const counts = (this.counts[minute] ??= new Map());
    const what = `${request.method} ${request.path.split('?')[0]}`;
    counts.set(what, (counts.get(what) ?? 0) + 1);
    return super.request(request);
  }

  startMs: number = this.timers.nowMs();

  /** From now on. */
  reset(): void {
    this.counts.length = 0;
    this.startMs = this.timers.nowMs();
  }

  assertCalm(): void {
    for (const [minute, counts] of this.counts.entries()) {
      const most = minute === 0 ? FIRST_MINUTE_MAX : MINUTE_MAX;
      for (const [what, count] of counts ?? []) {
        assert(count <= most, `minute ${minute}: ${what} ${count} times`);
      }
    }
  }
}

async function started(): Promise<CountingApi> {
  const api = new CountingApi();
  const apiVersion = 'v1';
  const metadata = { name: 'default' };
  await api.request({
    method: 'POST',
    path: '/api/v1/namespaces',
    body: { apiVersion, kind: 'Namespace', metadata },
  });
  // Without those that look at nodes ten times a second: there are none.
  const others = ['nodelifecycle', 'taint-eviction-controller', 'podgc'].map((one) => `-${one}`);
  startManager(api, ['*', ...others]);
  await api.advance(1_000);
  return api;
}

function workload(kind: string, more: JsonObject): JsonObject {
  const labels = { app: kind.toLowerCase() };
  const spec = { containers: [{ name: 'c', image: 'i' }] };
  const template = { metadata: { labels }, spec };
  const metadata = { name: kind.toLowerCase() };
  return {
    apiVersion: 'apps/v1',
    kind,
    metadata,
    spec: { selector: { matchLabels: labels }, template, ...more },
  };
}

async function makeAll(api: CountingApi): Promise<void> {
  const strategy = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } };
  const deployment = { replicas: 4, strategy, progressDeadlineSeconds: 600 };
  const rolling = { type: 'RollingUpdate' };
  const job = {
    ...{ completions: 2, parallelism: 2, backoffLimit: 6, completionMode: 'NonIndexed' },
    template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }] } },
  };
  const batch = '/apis/batch/v1/namespaces/default/jobs';
  const metadata = { name: 'job' };
  await post(api, `${APPS}/deployments`, workload('Deployment', deployment));
  await post(
    api,
    `${APPS}/statefulsets`,
    workload('StatefulSet', { replicas: 2, serviceName: 's', updateStrategy: rolling }),
  );
  await post(api, batch, { apiVersion: 'batch/v1', kind: 'Job', metadata, spec: job });
}

async function post(api: CountingApi, path: string, body: JsonObject): Promise<void> {
  const { faultOf } = api;
  api.faultOf = () => 'none';
  const answer = api.request({ method: 'POST', path, body });
  api.faultOf = faultOf;
  assert((await answer).ok);
}

test('a webhook that refuses all pods is asked ever more seldom', async () => {
  const api = await started();
  api.faultOf = ({ method, path }) => (method === 'POST' && path === PODS ? 'refused' : 'none');
  api.reset();
  await makeAll(api);
  await api.advance(30 * MINUTE_MS);
  // Three owners ask for pods by one path.
  for (const counts of api.counts)
    counts.set(`POST ${PODS}`, (counts.get(`POST ${PODS}`) ?? 0) / 3);
  api.assertCalm();
  assert.equal(api.all('/api/v1/pods').length, 0);
});

test('a quota that refuses half of the replicas is asked ever more seldom', async () => {
  const api = await started();
  let made = 0;
  api.faultOf = ({ method, path }) =>
    method === 'POST' && path === PODS && ++made > 2 ? 'forbidden' : 'none';
  const strategy = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } };
  api.reset();
  await post(api, `${APPS}/deployments`, workload('Deployment', { replicas: 4, strategy }));
  await api.bringUp();
  await api.advance(30 * MINUTE_MS);
  api.assertCalm();
  assert.equal(api.all('/api/v1/pods').length, 2);
  api.faultOf = () => 'none';
  // A thousand seconds between tries, as upstream, unless something happens meanwhile.
  await api.advance(17 * MINUTE_MS);
  assert.equal(api.all('/api/v1/pods').length, 4);
  const tries = api.counts.slice(1, 30).map((counts) => counts.get(`POST ${PODS}`) ?? 0);
  assert(tries.reduce((all, one) => all + one, 0) <= 6, `after the first minute: ${tries.join()}`);
});

test('owners in circles are deleted without end of questions', async () => {
  for (const propagationPolicy of ['Foreground', 'Background']) {
    const api = await started();
    const path = '/api/v1/namespaces/default/configmaps';
    const uids: string[] = [];
    for (const name of ['a', 'b', 'c']) {
      const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } };
      const made = await api.request({ method: 'POST', path, body });
      uids.push(made.ok ? stringAt(made.object, 'metadata', 'uid') : '');
    }
    for (const [i, name] of ['a', 'b', 'c'].entries()) {
      const next = (i + 1) % 3;
      const reference = { apiVersion: 'v1', kind: 'ConfigMap', blockOwnerDeletion: true };
      const owner = { ...reference, name: 'abc'.charAt(next), uid: uids[next] ?? '' };
      const body = { metadata: { ownerReferences: [owner] } };
      const contentType = 'application/merge-patch+json';
      await api.request({ method: 'PATCH', path: `${path}/${name}`, contentType, body });
    }
    await api.advance(1_000);
    api.reset();
    await api.request({ method: 'DELETE', path: `${path}/a`, body: { propagationPolicy } });
    await api.advance(30 * MINUTE_MS);
    assert.deepEqual(api.all('/api/v1/configmaps'), [], propagationPolicy);
    api.assertCalm();
  }
});

test('ten minutes of 429 for all writes are waited out, and then all is made', async () => {
  const api = await started();
  api.faultOf = () => 'throttled';
  api.reset();
  await makeAll(api);
  await api.advance(10 * MINUTE_MS);
  for (const counts of api.counts)
    counts.set(`POST ${PODS}`, (counts.get(`POST ${PODS}`) ?? 0) / 3);
  api.assertCalm();
  api.faultOf = () => 'none';
  for (let i = 0; i < 8; i++) {
    await api.advance(MINUTE_MS);
    await api.bringUp();
  }
  assert.equal(api.all('/api/v1/pods').length, 4 + 2 + 2);
});

/** Every pod that runs fails at once. */
async function failAll(api: CountingApi): Promise<void> {
  for (const pod of api.all('/api/v1/pods')) {
    if (stringAt(pod, 'status', 'phase') === 'Failed') continue;
    const name = stringAt(pod, 'metadata', 'name');
    const state = { terminated: { exitCode: 7, finishedAt: nowOf(api) } };
    const status = { phase: 'Failed', containerStatuses: [{ name: 'c', state }] };
    const contentType = 'application/merge-patch+json';
    const path = `${PODS}/${name}/status`;
    await api.request({ method: 'PATCH', path, contentType, body: { status } });
  }
}

function nowOf(api: CountingApi): string {
  return new Date(api.timers.wallMs()).toISOString().replace(/\.\d+Z$/, 'Z');
}

test('Jobs whose pods always fail make others ever more seldom, by any policy', async () => {
  const rules = [{ action: 'Ignore', onExitCodes: { operator: 'In', values: [7] } }];
  const indexed = { completionMode: 'Indexed', backoffLimitPerIndex: 1_000 };
  const policies: readonly JsonObject[] = [
    {},
    { completionMode: 'Indexed' },
    indexed,
    { podFailurePolicy: { rules }, podReplacementPolicy: 'Failed' },
    { ...indexed, podFailurePolicy: { rules }, podReplacementPolicy: 'Failed' },
  ];
  for (const policy of policies) {
    const api = await started();
    const containers = [{ name: 'c', image: 'i' }];
    const template = { spec: { restartPolicy: 'Never', containers } };
    const spec = { completions: 1, parallelism: 1, backoffLimit: 1_000, template, ...policy };
    const path = '/apis/batch/v1/namespaces/default/jobs';
    const metadata = { name: 'job' };
    await post(api, path, { apiVersion: 'batch/v1', kind: 'Job', metadata, spec });
    api.reset();
    for (let i = 0; i < 10 * 30; i++) {
      await api.advance(2_000);
      await failAll(api);
    }
    const made = api.counts.map((counts) => counts?.get(`POST ${PODS}`) ?? 0);
    const sum = made.reduce((all, one) => all + one, 0);
    assert(sum >= 4 && sum <= 7, `${JSON.stringify(policy)}: pods by minute ${made.join()}`);
  }
});
