import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';

const CORE = '/api/v1/namespaces/default';
const POD_NAME = 'statefulset.kubernetes.io/pod-name';
const APPS = '/apis/apps/v1/namespaces/default';

async function started(): Promise<WorkloadApi> {
  const api = new WorkloadApi();
  startManager(api, [
    'statefulset-controller',
    'daemonset-controller',
    'replicationcontroller-controller',
  ]);
  await api.advance(100);
  return api;
}

function podOf(name: string, labels: JsonObject, status?: JsonObject): JsonObject {
  const spec = { containers: [{ name: 'c' }] };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name, labels }, spec };
  return status === undefined ? pod : { ...pod, status };
}

function setOf(replicas: number): JsonObject {
  const template = { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c' }] } };
  const selector = { matchLabels: { app: 'web' } };
  const spec = { replicas, serviceName: 'web', selector, template };
  return { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name: 'web' }, spec };
}

async function add(api: WorkloadApi, resource: string, body: JsonObject): Promise<void> {
  const root = resource === 'pods' ? CORE : APPS;
  assert((await api.request({ method: 'POST', path: `${root}/${resource}`, body })).ok);
  await api.advance(1_000);
}

function podNamed(api: WorkloadApi, name: string): JsonObject | undefined {
  return api.all('/api/v1/pods').find((pod) => stringAt(pod, 'metadata', 'name') === name);
}

test('a StatefulSet takes the pod of its ordinal that belongs to nobody', async () => {
  const api = await started();
  await add(api, 'pods', podOf('web-0', { app: 'web' }));
  await add(api, 'pods', podOf('lonely', { app: 'web' }));
  await add(api, 'statefulsets', setOf(1));
  assert.equal(stringAt(podNamed(api, 'web-0'), 'metadata', 'labels', POD_NAME), '', 'not ready');
  await api.bringUp();
  await api.advance(1_000);
  const pod = podNamed(api, 'web-0');
  assert.equal(stringAt(listAt(pod, 'metadata', 'ownerReferences')[0], 'name'), 'web');
  const labels = objectAt(pod, 'metadata', 'labels');
  assert.equal(labels?.[POD_NAME], 'web-0');
  assert.equal(labels?.['apps.kubernetes.io/pod-index'], '0');
  const lonely = podNamed(api, 'lonely');
  assert.deepEqual(listAt(lonely, 'metadata', 'ownerReferences'), [], 'a name without ordinal');
  assert(
    api.events.some((text) => text.includes('update Pod web-0 in StatefulSet web successful')),
  );
});

test('a StatefulSet leaves a pod of its name that does not match alone', async () => {
  const api = await started();
  await add(api, 'pods', podOf('web-0', { app: 'other' }));
  await add(api, 'statefulsets', setOf(1));
  assert.deepEqual(objectAt(podNamed(api, 'web-0'), 'metadata', 'labels'), { app: 'other' });
  assert.deepEqual(listAt(podNamed(api, 'web-0'), 'metadata', 'ownerReferences'), []);
  // it tried; of a name that is taken nobody is told
  assert(api.log.includes(`POST ${CORE}/pods`));
  assert.deepEqual(api.events, []);
});

test('a StatefulSet lets a pod go whose labels no longer match', async () => {
  const api = await started();
  await add(api, 'statefulsets', setOf(1));
  const path = `${CORE}/pods/web-0`;
  const contentType = 'application/merge-patch+json';
  const body = { metadata: { labels: { app: 'debug' } } };
  await api.request({ method: 'PATCH', path, contentType, body });
  await api.advance(1_000);
  assert.deepEqual(listAt(podNamed(api, 'web-0'), 'metadata', 'ownerReferences'), []);
});

test('revisions that a deleted set left are taken up again, not made anew', async () => {
  const api = await started();
  await add(api, 'statefulsets', setOf(1));
  const [made] = api.all('/apis/apps/v1/controllerrevisions');
  const name = stringAt(made, 'metadata', 'name');
  const contentType = 'application/merge-patch+json';
  const path = `${APPS}/controllerrevisions/${name}`;
  await api.request({ method: 'DELETE', path: `${APPS}/statefulsets/web`, body: {} });
  const body = { metadata: { ownerReferences: null } };
  await api.request({ method: 'PATCH', path, contentType, body });
  await api.request({ method: 'PATCH', path: `${CORE}/pods/web-0`, contentType, body });
  await api.advance(1_000);
  await add(api, 'statefulsets', setOf(1));
  const all = api.all('/apis/apps/v1/controllerrevisions');
  assert.deepEqual(
    all.map((one) => stringAt(one, 'metadata', 'name')),
    [name],
  );
  const uid = stringAt(api.all('/apis/apps/v1/statefulsets')[0], 'metadata', 'uid');
  assert.equal(stringAt(listAt(all[0], 'metadata', 'ownerReferences')[0], 'uid'), uid);
  assert.equal(
    stringAt(listAt(podNamed(api, 'web-0'), 'metadata', 'ownerReferences')[0], 'uid'),
    uid,
  );
});

test('a ReplicationController whose selector changes lets its pods go', async () => {
  const api = await started();
  const labelled = (app: string): JsonObject => ({
    selector: { app },
    template: { metadata: { labels: { app } }, spec: { containers: [{ name: 'c' }] } },
  });
  const path = `${CORE}/replicationcontrollers`;
  const spec = { replicas: 1, ...labelled('old') };
  const metadata = { name: 'web' };
  const body = { apiVersion: 'v1', kind: 'ReplicationController', metadata, spec };
  assert((await api.request({ method: 'POST', path, body })).ok);
  await api.advance(1_000);
  await api.request({
    method: 'PATCH',
    path: `${path}/web`,
    contentType: 'application/merge-patch+json',
    body: { spec: labelled('new') },
  });
  await api.advance(1_000);
  const owned = api
    .all('/api/v1/pods')
    .map((pod) => [
      stringAt(pod, 'metadata', 'labels', 'app'),
      listAt(pod, 'metadata', 'ownerReferences').length,
    ]);
  assert.deepEqual(Object.fromEntries(owned), { new: 1, old: 0 });
});

test('a pod of a StatefulSet that loses the label with its name gets it again', async () => {
  const api = await started();
  await add(api, 'statefulsets', setOf(1));
  await api.bringUp();
  await api.advance(1_000);
  await api.request({
    method: 'PATCH',
    path: `${CORE}/pods/web-0`,
    contentType: 'application/merge-patch+json',
    body: { metadata: { labels: { [POD_NAME]: null } } },
  });
  await api.advance(1_000);
  const labels = objectAt(podNamed(api, 'web-0'), 'metadata', 'labels');
  assert.equal(labels?.[POD_NAME], 'web-0');
});
