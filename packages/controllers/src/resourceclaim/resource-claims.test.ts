import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';

const CORE = '/api/v1/namespaces/default';
const GROUP = '/apis/resource.k8s.io/v1';
const CLAIMS = `${GROUP}/namespaces/default/resourceclaims`;
const SPEC: JsonObject = { devices: { requests: [{ name: 'gpu' }] } };

async function started(isServed = true): Promise<WorkloadApi> {
  const api = new WorkloadApi();
  if (isServed) {
    api.served = [
      ...api.served,
      ['resource.k8s.io', 'resourceclaims', 'ResourceClaim', 'Namespaced'],
      ['resource.k8s.io', 'resourceclaimtemplates', 'ResourceClaimTemplate', 'Namespaced'],
    ];
  }
  startManager(api, ['resourceclaim-controller', 'ephemeral-volume-controller']);
  await api.advance(1_000);
  return api;
}

async function addTemplate(api: WorkloadApi): Promise<void> {
  const spec = { metadata: { labels: { a: 'b' } }, spec: SPEC };
  const body = { apiVersion: 'resource.k8s.io/v1', kind: 'ResourceClaimTemplate', spec };
  const path = `${GROUP}/namespaces/default/resourceclaimtemplates`;
  await api.request({ method: 'POST', path, body: { ...body, metadata: { name: 'gpus' } } });
}

async function addPod(api: WorkloadApi, name: string): Promise<string> {
  const spec = { resourceClaims: [{ name: 'card', resourceClaimTemplateName: 'gpus' }] };
  const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec };
  const answer = await api.request({ method: 'POST', path: `${CORE}/pods`, body });
  assert(answer.ok);
  await api.advance(1_000);
  return stringAt(answer.object, 'metadata', 'uid');
}

const claims = (api: WorkloadApi): JsonObject[] => api.all(`${GROUP}/resourceclaims`);

async function patch(api: WorkloadApi, path: string, body: JsonObject): Promise<void> {
  const contentType = 'application/merge-patch+json';
  assert((await api.request({ method: 'PATCH', path, contentType, body })).ok);
  await api.advance(1_000);
}

test('a pod that names a template gets a claim of its own, and is told its name', async () => {
  const api = await started();
  await addTemplate(api);
  const uid = await addPod(api, 'p');
  const [claim] = claims(api);
  const name = stringAt(claim, 'metadata', 'name');
  assert(name.startsWith('p-card-'));
  assert.deepEqual(claim?.['spec'], SPEC);
  assert.deepEqual(objectAt(claim, 'metadata', 'labels'), { a: 'b' });
  const annotations = { 'resource.kubernetes.io/pod-claim-name': 'card' };
  assert.deepEqual(objectAt(claim, 'metadata', 'annotations'), annotations);
  const owner = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid, controller: true };
  assert.deepEqual(listAt(claim, 'metadata', 'ownerReferences'), [owner]);
  const [pod] = api.all('/api/v1/pods');
  const told = listAt(pod, 'status', 'resourceClaimStatuses');
  assert.deepEqual(told, [{ name: 'card', resourceClaimName: name }]);
  const before = api.log.length;
  await api.advance(600_000);
  assert.equal(api.log.length, before, 'nothing more is written');
});

test('a pod waits for its template, with an event that says so', async () => {
  const api = await started();
  await addPod(api, 'p');
  assert.equal(claims(api).length, 0);
  assert(api.events.some((text) => text.startsWith('FailedResourceClaimCreation')));
  await addTemplate(api);
  await api.advance(1_000);
  assert.equal(claims(api).length, 1);
});

test('who has ended is taken off, and what nobody uses is given back and deleted', async () => {
  const api = await started();
  await addTemplate(api);
  const uid = await addPod(api, 'p');
  const name = stringAt(claims(api)[0], 'metadata', 'name');
  const finalizers = ['resource.kubernetes.io/delete-protection'];
  const reservedFor = [{ resource: 'pods', name: 'p', uid }];
  const status = { allocation: { devices: {} }, reservedFor };
  await patch(api, `${CLAIMS}/${name}`, { metadata: { finalizers }, status });
  assert.deepEqual(objectAt(claims(api)[0], 'status'), status, 'in use, nothing changes');
  await patch(api, `${CORE}/pods/p`, { status: { phase: 'Succeeded' } });
  assert.deepEqual(claims(api), []);
  assert(api.log.some((line) => line === `PUT ${CLAIMS}/${name}/status`));
});

test('an allocation without a user is given back only when its claim is deleted', async () => {
  const api = await started();
  const finalizers = ['resource.kubernetes.io/delete-protection'];
  const body = {
    ...{ apiVersion: 'resource.k8s.io/v1', kind: 'ResourceClaim' },
    metadata: { name: 'shared', finalizers },
    spec: SPEC,
    status: { allocation: { devices: {} } },
  };
  await api.request({ method: 'POST', path: CLAIMS, body });
  await api.advance(1_000);
  assert.deepEqual(objectAt(claims(api)[0], 'status', 'allocation'), { devices: {} });
  const deletionTimestamp = '2026-01-01T00:00:00Z';
  await patch(api, `${CLAIMS}/shared`, { metadata: { deletionTimestamp } });
  const [claim] = claims(api);
  assert.deepEqual(listAt(claim, 'metadata', 'finalizers'), []);
  assert.equal(objectAt(claim, 'status', 'allocation'), undefined);
});

test('where the server has no such kind the others work all the same', async () => {
  const api = await started(false);
  await addPod(api, 'p');
  assert.equal(claims(api).length, 0);
  assert(!api.log.some((line) => line.includes('resource.k8s.io')));
});
