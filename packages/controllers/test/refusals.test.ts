import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { startManager } from './manager.ts';
import { WorkloadApi } from './workload-api.ts';

const CORE = '/api/v1/namespaces/default';
const APPS = '/apis/apps/v1/namespaces/default';
const BATCH = '/apis/batch/v1/namespaces/default';
const MERGE = 'application/merge-patch+json';
const TEMPLATE = {
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'c', image: 'i' }] },
};

async function started(names: readonly string[]): Promise<WorkloadApi> {
  const api = new WorkloadApi();
  startManager(api, names);
  await api.advance(100);
  return api;
}

async function post(api: WorkloadApi, path: string, body: JsonObject): Promise<void> {
  const answer = await api.request({ method: 'POST', path, body });
  assert(answer.ok);
}

function statefulSet(spec: JsonObject): JsonObject {
  const claim = { metadata: { name: 'data' }, spec: {} };
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: 'web' },
    spec: {
      serviceName: 'web',
      replicas: 1,
      selector: { matchLabels: { app: 'web' } },
      template: TEMPLATE,
      volumeClaimTemplates: [claim],
      ...spec,
    },
  };
}

function told(api: WorkloadApi, start: string): string[] {
  return api.events.filter((text) => text.startsWith(start));
}

test('a pod of a set does not come before the claim that is being deleted is gone', async () => {
  const api = await started(['statefulset-controller']);
  const claims = `${CORE}/persistentvolumeclaims`;
  await post(api, claims, {
    metadata: { name: 'data-web-0', deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['x'] },
  });
  await post(api, `${APPS}/statefulsets`, statefulSet({}));
  await api.advance(1_000);
  assert.equal(api.all('/api/v1/pods').length, 0);
  const why = 'pvc data-web-0 is being deleted';
  const text = `create Pod web-0 in StatefulSet web failed error: ${why}`;
  assert.ok(told(api, 'FailedCreate').every((one) => one.endsWith(text)));
  assert.ok(told(api, 'FailedCreate').length > 0);
  const path = `${claims}/data-web-0`;
  await api.request({
    method: 'PATCH',
    path,
    contentType: MERGE,
    body: { metadata: { finalizers: null } },
  });
  await api.request({ method: 'DELETE', path, body: {} });
  await api.advance(60_000);
  assert.equal(api.all('/api/v1/pods').length, 1);
  assert.equal(api.all('/api/v1/persistentvolumeclaims').length, 1);
});

test('a parallel set asks for few pods while they are refused', async () => {
  const api = await started(['statefulset-controller']);
  let asked = 0;
  api.faultOf = ({ method, path }) => {
    if (method !== 'POST' || !path.endsWith('/pods')) return 'none';
    asked++;
    return 'forbidden';
  };
  const spec = { replicas: 50, podManagementPolicy: 'Parallel', volumeClaimTemplates: [] };
  await post(api, `${APPS}/statefulsets`, statefulSet(spec));
  await api.advance(1_000);
  assert(asked > 1 && asked < 12, `${asked} asked`);
  api.faultOf = () => 'none';
  await api.advance(120_000);
  assert.equal(api.all('/api/v1/pods').length, 50);
});

test('claims of all pods that are scaled away go with them before any is deleted', async () => {
  const api = await started(['statefulset-controller']);
  const persistentVolumeClaimRetentionPolicy = { whenDeleted: 'Delete', whenScaled: 'Delete' };
  const spec = { replicas: 3, persistentVolumeClaimRetentionPolicy };
  await post(api, `${APPS}/statefulsets`, statefulSet(spec));
  for (let i = 0; i < 4; i++) {
    await api.bringUp();
    await api.advance(1_000);
  }
  api.faultOf = ({ method }) => (method === 'DELETE' ? 'forbidden' : 'none');
  const path = `${APPS}/statefulsets/web`;
  const scale = (replicas: number): Promise<unknown> =>
    api.request({ method: 'PATCH', path, contentType: MERGE, body: { spec: { replicas } } });
  await scale(1);
  await api.advance(5_000);
  const owners = (): string[] =>
    api
      .all('/api/v1/persistentvolumeclaims')
      .map((claim) => stringAt(listAt(claim, 'metadata', 'ownerReferences')[0], 'kind'));
  assert.deepEqual(owners().toSorted(), ['Pod', 'Pod', 'StatefulSet']);
  await scale(3);
  await api.advance(120_000);
  assert.deepEqual(owners(), ['StatefulSet', 'StatefulSet', 'StatefulSet']);
});

test('pods that a Job gives up are deleted once', async () => {
  const api = await started(['job-controller']);
  const spec = { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }] };
  await post(api, `${BATCH}/jobs`, {
    metadata: { name: 'job' },
    spec: {
      parallelism: 2,
      completions: 2,
      backoffLimit: 6,
      activeDeadlineSeconds: 2,
      selector: { matchLabels: { app: 'job' } },
      template: { metadata: { labels: { app: 'job' } }, spec },
    },
  });
  await api.bringUp();
  await api.advance(500);
  await api.bringUp();
  let deleted = 0;
  api.faultOf = ({ method, path }) => {
    if (method === 'DELETE' && path.startsWith(`${CORE}/pods/`)) deleted++;
    return 'none';
  };
  // Their deletion comes late, and with other news of the Job before it.
  api.holdWatches('/api/v1/pods');
  await api.advance(3_000);
  await api.request({
    method: 'PATCH',
    path: `${BATCH}/jobs/job`,
    contentType: MERGE,
    body: { metadata: { labels: { a: 'b' } } },
  });
  await api.advance(1_000);
  api.releaseWatches();
  await api.advance(5_000);
  assert.equal(deleted, 2);
});

test('what pods tell of a Job is gathered for a second', async () => {
  const api = await started(['job-controller']);
  const template = { metadata: { labels: { app: 'job' } }, spec: TEMPLATE.spec };
  await post(api, `${BATCH}/jobs`, {
    metadata: { name: 'job' },
    spec: { parallelism: 20, completions: 20, backoffLimit: 6, template },
  });
  await api.advance(3_000);
  let statuses = 0;
  api.faultOf = ({ method, path }) => {
    if (method === 'PATCH' && path.endsWith('/jobs/job/status')) statuses++;
    return 'none';
  };
  for (let pods = 1; pods <= 20; pods++) {
    await api.bringUp(pods);
    await api.advance(40);
  }
  await api.advance(2_000);
  const [job] = api.all('/apis/batch/v1/jobs');
  assert.equal(objectAt(job, 'status')?.['ready'], 20);
  assert(statuses <= 2, `${statuses} statuses written`);
});

test('Jobs and services whose work fails wait a second at least', async () => {
  const api = await started(['job-controller', 'endpointslice-controller']);
  const counts = new Map<string, number>();
  api.faultOf = ({ method, path }) => {
    const kind = path.split('/').at(-1) ?? '';
    if (method !== 'POST' || (kind !== 'pods' && kind !== 'endpointslices')) return 'none';
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
    return 'refused';
  };
  await post(api, `${BATCH}/jobs`, {
    metadata: { name: 'job' },
    spec: { parallelism: 1, completions: 1, backoffLimit: 6, template: TEMPLATE },
  });
  await post(api, `${CORE}/services`, {
    metadata: { name: 'web' },
    spec: { selector: { app: 'web' }, clusterIP: '10.0.0.1', ipFamilies: ['IPv4'] },
  });
  await api.advance(6_000);
  for (const [kind, count] of counts) assert(count >= 2 && count <= 4, `${kind}: ${count}`);
  assert.equal(counts.size, 2);
});

test('a completed Job that a cron job keeps none of is not told of', async () => {
  const api = await started(['cronjob-controller']);
  await post(api, `${BATCH}/cronjobs`, {
    metadata: { name: 'cron', creationTimestamp: new Date(api.timers.nowMs()).toISOString() },
    spec: {
      schedule: '* * * * *',
      successfulJobsHistoryLimit: 0,
      failedJobsHistoryLimit: 0,
      jobTemplate: { spec: { template: TEMPLATE } },
    },
  });
  await api.advance(61_000);
  const [job] = api.all('/apis/batch/v1/jobs');
  const metadata = objectAt(job, 'metadata');
  const conditions = [{ type: 'Complete', status: 'True' }];
  await api.request({
    method: 'PATCH',
    path: `${BATCH}/jobs/${stringAt(metadata, 'name')}/status`,
    contentType: MERGE,
    body: { status: { conditions, completionTime: new Date(api.timers.nowMs()).toISOString() } },
  });
  await api.advance(5_000);
  assert.equal(api.all('/apis/batch/v1/jobs').length, 0);
  assert.deepEqual(told(api, 'SawCompletedJob'), []);
  assert.equal(told(api, 'SuccessfulDelete').length, 1, api.events.join(','));
});
