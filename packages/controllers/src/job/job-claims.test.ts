import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, stringAt } from '@megaplane/machinery/json';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';

const JOBS = '/apis/batch/v1/namespaces/default/jobs';
const PODS = '/api/v1/namespaces/default/pods';
const TRACKING = 'batch.kubernetes.io/job-tracking';

async function addJob(api: WorkloadApi, name: string, labels: JsonObject): Promise<void> {
  const spec = {
    ...{ parallelism: 1, completions: 1, backoffLimit: 6, manualSelector: true },
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { restartPolicy: 'Never', containers: [] } },
  };
  const body = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name }, spec };
  assert((await api.request({ method: 'POST', path: JOBS, body })).ok);
  await api.advance(1_000);
}

async function addPod(api: WorkloadApi, name: string, labels: JsonObject): Promise<void> {
  const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name, labels }, spec: {} };
  assert((await api.request({ method: 'POST', path: PODS, body })).ok);
}

async function started(): Promise<WorkloadApi> {
  const api = new WorkloadApi();
  startManager(api, ['job-controller']);
  await api.advance(100);
  return api;
}

function pod(api: WorkloadApi, name: string): { owner: string; isTracked: boolean } {
  const found = api.objects.get(`/api/v1/pods default/${name}`);
  const owner = stringAt(listAt(found, 'metadata', 'ownerReferences')[0], 'name');
  return { owner, isTracked: listAt(found, 'metadata', 'finalizers').includes(TRACKING) };
}

async function relabel(api: WorkloadApi, name: string, labels: JsonObject): Promise<void> {
  const contentType = 'application/merge-patch+json';
  const body = { metadata: { labels } };
  await api.request({ method: 'PATCH', path: `${PODS}/${name}`, contentType, body });
  // What pods tell is gathered for a second, and again when it is written.
  await api.advance(3_000);
}

test('a Job takes the pods that it selects, and makes no others for them', async () => {
  const api = await started();
  await addPod(api, 'mine', { app: 'a' });
  await addPod(api, 'other', { app: 'b' });
  await addJob(api, 'j', { app: 'a' });
  assert.deepEqual(pod(api, 'mine'), { owner: 'j', isTracked: true });
  assert.deepEqual(pod(api, 'other'), { owner: '', isTracked: false });
  assert.equal(api.all('/api/v1/pods').length, 2);
  const [job] = api.all('/apis/batch/v1/jobs');
  assert.equal(numberAt(job, 'status', 'active'), 1);
});

test('a pod whose labels change leaves its Job, and is taken back', async () => {
  const api = await started();
  await addJob(api, 'j', { app: 'a' });
  const [made] = api.all('/api/v1/pods');
  const name = stringAt(made, 'metadata', 'name');
  await relabel(api, name, { app: 'x' });
  assert.deepEqual(pod(api, name), { owner: '', isTracked: false });
  assert.equal(api.all('/api/v1/pods').length, 2);
  await relabel(api, name, { app: 'a' });
  assert.equal(api.all('/api/v1/pods').length, 1, 'one of the two was too many');
});

test('a Job that goes takes nothing', async () => {
  const api = await started();
  await addJob(api, 'j', { app: 'a' });
  api.faultOf = ({ method }) => (method === 'PATCH' ? 'refused' : 'none');
  await addPod(api, 'late', { app: 'a' });
  await api.advance(1_000);
  await api.request({ method: 'DELETE', path: `${JOBS}/j`, body: {} });
  api.faultOf = () => 'none';
  await api.advance(120_000);
  assert.deepEqual(pod(api, 'late'), { owner: '', isTracked: false });
});
