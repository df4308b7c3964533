import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { listAt } from '@megaplane/machinery/json';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';

const CLASSES = '/apis/storage.k8s.io/v1/volumeattributesclasses';
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims';
const VOLUMES = '/api/v1/persistentvolumes';
const FINALIZER = 'kubernetes.io/vac-protection';

async function started(): Promise<WorkloadApi> {
  const api = new WorkloadApi();
  api.served = [
    ...api.served,
    ['storage.k8s.io', 'volumeattributesclasses', 'VolumeAttributesClass', 'Cluster'],
  ];
  startManager(api, ['volumeattributesclass-protection-controller']);
  await api.advance(1_000);
  await post(api, CLASSES, { metadata: { name: 'gold' }, driverName: 'd.io' });
  return api;
}

async function post(api: WorkloadApi, path: string, body: JsonObject): Promise<void> {
  assert((await api.request({ method: 'POST', path, body })).ok);
  await api.advance(1_000);
}

async function remove(api: WorkloadApi, path: string): Promise<void> {
  assert((await api.request({ method: 'DELETE', path })).ok);
  await api.advance(1_000);
}

const finalizersOf = (api: WorkloadApi): readonly JsonValue[] | undefined => {
  const found = api.objects.get(`${CLASSES} /gold`);
  return found === undefined ? undefined : listAt(found, 'metadata', 'finalizers');
};

test('a class gets its finalizer, and goes at once where nobody names it', async () => {
  const api = await started();
  assert.deepEqual(finalizersOf(api), [FINALIZER]);
  await remove(api, `${CLASSES}/gold`);
  assert.deepEqual(finalizersOf(api), []);
});

test('a class stays until the last claim and the last volume have left it', async () => {
  const api = await started();
  const spec = { volumeAttributesClassName: 'gold' };
  await post(api, VOLUMES, { metadata: { name: 'v' }, spec });
  const status = { currentVolumeAttributesClassName: 'gold' };
  await post(api, CLAIMS, { metadata: { name: 'using' }, status });
  const modifyVolumeStatus = { targetVolumeAttributesClassName: 'gold', status: 'Pending' };
  await post(api, CLAIMS, { metadata: { name: 'moving' }, status: { modifyVolumeStatus } });
  await remove(api, `${CLASSES}/gold`);
  await remove(api, `${VOLUMES}/v`);
  await remove(api, `${CLAIMS}/using`);
  assert.deepEqual(finalizersOf(api), [FINALIZER]);
  const contentType = 'application/merge-patch+json';
  const body = { status: { modifyVolumeStatus: null } };
  await api.request({ method: 'PATCH', path: `${CLAIMS}/moving`, contentType, body });
  await api.advance(1_000);
  assert.deepEqual(finalizersOf(api), []);
});
