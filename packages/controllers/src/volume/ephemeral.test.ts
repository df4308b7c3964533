import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';

const CORE = '/api/v1/namespaces/default';
const SPEC: JsonObject = { accessModes: ['ReadWriteOnce'], storageClassName: 'fast' };

async function started(): Promise<WorkloadApi> {
  const api = new WorkloadApi();
  startManager(api, ['ephemeral-volume-controller']);
  await api.advance(100);
  return api;
}

async function addPod(api: WorkloadApi, name: string, more: JsonObject = {}): Promise<string> {
  const metadata = { labels: { a: 'b' }, annotations: { c: 'd' } };
  const scratch = { name: 'scratch', ephemeral: { volumeClaimTemplate: { metadata, spec: SPEC } } };
  const body = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { volumes: [{ name: 'plain', emptyDir: {} }, scratch], ...more },
  };
  const answer = await api.request({ method: 'POST', path: `${CORE}/pods`, body });
  assert(answer.ok);
  await api.advance(1_000);
  return stringAt(answer.object, 'metadata', 'uid');
}

const claims = (api: WorkloadApi): JsonObject[] => api.all('/api/v1/persistentvolumeclaims');

test('an ephemeral volume is a claim of its pod, and made again when it goes', async () => {
  const api = await started();
  const uid = await addPod(api, 'p');
  const [claim] = claims(api);
  assert.equal(stringAt(claim, 'metadata', 'name'), 'p-scratch');
  assert.deepEqual(claim?.['spec'], SPEC);
  assert.deepEqual(objectAt(claim, 'metadata', 'labels'), { a: 'b' });
  assert.deepEqual(listAt(claim, 'metadata', 'ownerReferences'), [
    {
      ...{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid },
      ...{ controller: true, blockOwnerDeletion: true },
    },
  ]);
  await api.request({
    method: 'DELETE',
    path: `${CORE}/persistentvolumeclaims/p-scratch`,
    body: {},
  });
  await api.advance(1_000);
  assert.equal(claims(api).length, 1);
  const before = api.log.length;
  await api.advance(600_000);
  assert.equal(api.log.length, before, 'nothing more is written');
});

test('a claim of somebody else is left alone, and used when it is gone', async () => {
  const api = await started();
  const path = `${CORE}/persistentvolumeclaims`;
  const body = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'p-scratch' } };
  await api.request({ method: 'POST', path, body });
  const uid = await addPod(api, 'p');
  await api.advance(300_000);
  assert.deepEqual(listAt(claims(api)[0], 'metadata', 'ownerReferences'), []);
  await api.request({ method: 'DELETE', path: `${path}/p-scratch`, body: {} });
  await api.advance(61_000);
  const [owner] = listAt(claims(api)[0], 'metadata', 'ownerReferences');
  assert.equal(stringAt(owner, 'uid'), uid);
});

test('refused claims are asked for again, and pods that go get none', async () => {
  const api = await started();
  let refusals = 5;
  api.faultOf = ({ path }) =>
    path.endsWith('/persistentvolumeclaims') && refusals-- > 0 ? 'refused' : 'none';
  await addPod(api, 'p');
  assert.equal(claims(api).length, 1);
  api.faultOf = ({ path }) => (path.endsWith('/persistentvolumeclaims') ? 'refused' : 'none');
  await addPod(api, 'q');
  await api.request({ method: 'DELETE', path: `${CORE}/pods/q`, body: {} });
  api.faultOf = () => 'none';
  await api.advance(300_000);
  assert.equal(claims(api).length, 1);
});

test('a pod that was made for a node has its claims, and costs nothing after that', async () => {
  const api = await started();
  await addPod(api, 'p', { nodeName: 'n' });
  assert.equal(stringAt(claims(api)[0], 'metadata', 'name'), 'p-scratch');
  const contentType = 'application/merge-patch+json';
  const body = { status: { phase: 'Running' } };
  await api.request({ method: 'PATCH', path: `${CORE}/pods/p`, contentType, body });
  const before = api.log.length;
  await api.advance(60_000);
  assert.equal(api.log.length, before);
});

test('volumes after one whose claim cannot be made wait for it', async () => {
  const api = await started();
  api.faultOf = ({ path }) => (path.endsWith('/persistentvolumeclaims') ? 'refused' : 'none');
  const one = (name: string): JsonObject => ({
    name,
    ephemeral: { volumeClaimTemplate: { spec: SPEC } },
  });
  await addPod(api, 'p', { volumes: [one('a'), one('b')] });
  assert(api.events.every((text) => text.includes('ephemeral volume a: create PVC p-a')));
  api.faultOf = () => 'none';
  await api.advance(60_000);
  assert.equal(claims(api).length, 2);
});
