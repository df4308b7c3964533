import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, stringAt } from '@megaplane/machinery/json';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';

const CORE = '/api/v1/namespaces/default';
const CLAIMS = `${CORE}/persistentvolumeclaims`;
const MERGE = 'application/merge-patch+json';

async function started(): Promise<WorkloadApi> {
  const api = new WorkloadApi();
  startManager(api, [
    'persistentvolumeclaim-protection-controller',
    'persistentvolume-protection-controller',
  ]);
  await api.advance(100);
  return api;
}

async function make(
  api: WorkloadApi,
  path: string,
  kind: string,
  more: JsonObject,
): Promise<string> {
  const answer = await api.request({
    method: 'POST',
    path,
    body: { apiVersion: 'v1', kind, ...more },
  });
  assert(answer.ok);
  await api.advance(500);
  return stringAt(answer.object, 'metadata', 'uid');
}

const finalizers = (api: WorkloadApi, resource: string): unknown[] =>
  [...api.objects]
    .filter(([key]) => key.includes(`/${resource} `))
    .map(([, object]) => listAt(object, 'metadata', 'finalizers'));

test('claims and volumes without the finalizer get it, beside those that they have', async () => {
  const api = await started();
  await make(api, CLAIMS, 'PersistentVolumeClaim', { metadata: { name: 'c' } });
  const metadata = { name: 'v', finalizers: ['example.com/x'] };
  await make(api, '/api/v1/persistentvolumes', 'PersistentVolume', { metadata });
  assert.deepEqual(finalizers(api, 'persistentvolumeclaims'), [['kubernetes.io/pvc-protection']]);
  assert.deepEqual(finalizers(api, 'persistentvolumes'), [
    ['example.com/x', 'kubernetes.io/pv-protection'],
  ]);
});

test('a claim that was made for a pod waits until the kubelet is done with the pod', async () => {
  const api = await started();
  const volumes = [{ name: 'data', ephemeral: {} }];
  const uid = await make(api, `${CORE}/pods`, 'Pod', {
    metadata: { name: 'p', finalizers: ['example.com/x'] },
    spec: { nodeName: 'n', volumes },
  });
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid }];
  await make(api, CLAIMS, 'PersistentVolumeClaim', {
    metadata: { name: 'p-data', ownerReferences },
  });
  await api.request({ method: 'DELETE', path: `${CLAIMS}/p-data`, body: {} });
  await api.advance(1_000);
  assert.deepEqual(finalizers(api, 'persistentvolumeclaims'), [['kubernetes.io/pvc-protection']]);
  const body = {
    metadata: { deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 0 },
  };
  await api.request({ method: 'PATCH', path: `${CORE}/pods/p`, contentType: MERGE, body });
  await api.advance(1_000);
  assert.deepEqual(finalizers(api, 'persistentvolumeclaims'), [[]]);
});
