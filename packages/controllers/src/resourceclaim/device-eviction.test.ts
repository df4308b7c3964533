import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { listAt, stringAt } from '@megaplane/machinery/json';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';

const CORE = '/api/v1/namespaces/default';
const GROUP = '/apis/resource.k8s.io/v1';
const SLICES = `${GROUP}/resourceslices`;
const CLAIMS = `${GROUP}/namespaces/default/resourceclaims`;

async function started(): Promise<WorkloadApi> {
  const api = new WorkloadApi();
  api.served = [
    ...api.served,
    ['resource.k8s.io', 'resourceclaims', 'ResourceClaim', 'Namespaced'],
    ['resource.k8s.io', 'resourceslices', 'ResourceSlice', 'Cluster'],
  ];
  startManager(api, ['device-taint-eviction-controller']);
  await api.advance(1_000);
  return api;
}

async function post(api: WorkloadApi, path: string, body: JsonObject): Promise<string> {
  const answer = await api.request({ method: 'POST', path, body });
  assert(answer.ok);
  await api.advance(100);
  return stringAt(answer.object, 'metadata', 'uid');
}

async function patch(api: WorkloadApi, path: string, body: JsonObject): Promise<void> {
  const contentType = 'application/merge-patch+json';
  assert((await api.request({ method: 'PATCH', path, contentType, body })).ok);
  await api.advance(1_000);
}

/** A pod, and the claim that it uses, with one device. */
async function addPod(
  api: WorkloadApi,
  { nodeName = 'n', tolerations = [] as JsonValue[] } = {},
): Promise<void> {
  const resourceClaims = [{ name: 'card', resourceClaimName: 'c' }];
  const spec = { ...(nodeName === '' ? {} : { nodeName }), resourceClaims };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec };
  const uid = await post(api, `${CORE}/pods`, pod);
  const results = [{ request: 'r', driver: 'd.io', pool: 'n', device: 'gpu-0', tolerations }];
  const reservedFor = [{ resource: 'pods', name: 'p', uid }];
  const status = { allocation: { devices: { results } }, reservedFor };
  await post(api, CLAIMS, { metadata: { name: 'c' }, spec: {}, status });
}

function slice(api: WorkloadApi, effect: string, generation = 1): JsonObject {
  const timeAdded = new Date(api.timers.nowMs()).toISOString().replace(/\.\d+Z$/, 'Z');
  const taints = effect === '' ? [] : [{ key: 'broken', effect, timeAdded }];
  const devices = [{ name: 'gpu-0', taints }, { name: 'gpu-1' }];
  return { spec: { driver: 'd.io', pool: { name: 'n', generation }, devices } };
}

const pods = (api: WorkloadApi): number =>
  api.all('/api/v1/pods').filter((one) => stringAt(one, 'metadata', 'deletionTimestamp') === '')
    .length;

test('a pod goes when its device is tainted, with an event and a condition', async () => {
  const api = await started();
  await addPod(api);
  await post(api, SLICES, { metadata: { name: 's' }, ...slice(api, 'NoSchedule') });
  await api.advance(60_000);
  assert.equal(pods(api), 1, 'NoSchedule drives nobody out');
  let condition: JsonValue | undefined;
  api.faultOf = (request) => {
    if (request.method !== 'DELETE') return 'none';
    [condition] = listAt(api.all('/api/v1/pods')[0], 'status', 'conditions');
    return 'none';
  };
  await patch(api, `${SLICES}/s`, slice(api, 'NoExecute'));
  assert.equal(pods(api), 0);
  assert.deepEqual(api.events, ['DeviceTaintManagerEviction: Marking for deletion']);
  assert.equal(stringAt(condition, 'reason'), 'DeletionByDeviceTaintManager');
});

test('a toleration gives time, and a taint that goes meanwhile calls it off', async () => {
  const api = await started();
  const toleration = { operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 };
  await addPod(api, { tolerations: [toleration] });
  await post(api, SLICES, { metadata: { name: 's' }, ...slice(api, 'NoExecute') });
  await api.advance(50_000);
  assert.equal(pods(api), 1);
  await patch(api, `${SLICES}/s`, slice(api, ''));
  assert.deepEqual(api.events, ['DeviceTaintManagerEviction: Cancelling deletion']);
  await api.advance(60_000);
  assert.equal(pods(api), 1);
  await patch(api, `${SLICES}/s`, slice(api, 'NoExecute'));
  await api.advance(61_000);
  assert.equal(pods(api), 0);
});

test('who tolerates it for good stays, and so does who has another device', async () => {
  const api = await started();
  const tolerations = [
    { key: 'broken', operator: 'Exists', effect: 'NoExecute' },
    { operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 1 },
  ];
  await addPod(api, { tolerations });
  await post(api, SLICES, { metadata: { name: 's' }, ...slice(api, 'NoExecute') });
  await api.advance(600_000);
  assert.equal(pods(api), 1);
  assert.deepEqual(api.events, []);
});

test('a pod goes once it has a node; old generations of a pool do not count', async () => {
  const api = await started();
  await post(api, SLICES, { metadata: { name: 'old' }, ...slice(api, 'NoExecute') });
  await post(api, SLICES, { metadata: { name: 'new' }, ...slice(api, '', 2) });
  await addPod(api, { nodeName: '' });
  await api.advance(10_000);
  await patch(api, `${SLICES}/new`, slice(api, 'NoExecute', 2));
  assert.equal(pods(api), 1);
  await patch(api, `${CORE}/pods/p`, { spec: { nodeName: 'n' } });
  assert.equal(pods(api), 0);
});
