import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { stringAt } from '@megaplane/machinery/json';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims';
const VOLUMES = '/api/v1/persistentvolumes';
const RESIZER = 'volume.kubernetes.io/storage-resizer';

async function started(source: JsonObject): Promise<WorkloadApi> {
  const api = new WorkloadApi();
  startManager(api, ['persistentvolume-expander']);
  await api.advance(100);
  const made = await api.request({
    method: 'POST',
    path: CLAIMS,
    body: {
      metadata: { name: 'c' },
      spec: { volumeName: 'v', resources: { requests: { storage: '1Gi' } } },
      status: { phase: 'Bound', capacity: { storage: '1Gi' } },
    },
  });
  assert(made.ok);
  const uid = stringAt(made.object, 'metadata', 'uid');
  const claimRef = { namespace: 'default', name: 'c', uid };
  const body = { metadata: { name: 'v' }, spec: { claimRef, ...source } };
  await api.request({ method: 'POST', path: VOLUMES, body });
  await api.advance(1_000);
  return api;
}

async function ask(api: WorkloadApi, storage: string): Promise<void> {
  const contentType = 'application/merge-patch+json';
  const body = { spec: { resources: { requests: { storage } } } };
  await api.request({ method: 'PATCH', path: `${CLAIMS}/c`, contentType, body });
  await api.advance(1_000);
}

const resizerOf = (api: WorkloadApi): string =>
  stringAt(api.all('/api/v1/persistentvolumeclaims')[0], 'metadata', 'annotations', RESIZER);

test('a claim that asks for more is told that somebody outside has to do it', async () => {
  const api = await started({ csi: { driver: 'd.io', volumeHandle: 'h' } });
  assert.deepEqual(api.events, []);
  await ask(api, '2Gi');
  const text = 'ExternalExpanding: waiting for an external controller to expand this PVC';
  assert.deepEqual(api.events, [text]);
  assert.deepEqual(api.eventTypes, ['Warning']);
  assert.equal(resizerOf(api), '');
  await ask(api, '2048Mi');
  assert.equal(api.events.length, 1, 'the same amount in other words is no news');
  const before = api.log.length;
  await api.advance(600_000);
  assert.equal(api.log.length, before);
});

test('a claim of a plug-in that was moved gets the name of its driver', async () => {
  const api = await started({ awsElasticBlockStore: { volumeID: 'v' } });
  await ask(api, '2Gi');
  const waits = 'waiting for external resizer to expand the pvc';
  const text = `ExternalExpanding: CSI migration enabled for kubernetes.io/aws-ebs; ${waits}`;
  assert.deepEqual(api.events, [text]);
  assert.equal(resizerOf(api), 'ebs.csi.aws.com');
});

test('a volume of another claim is not spoken of', async () => {
  const api = await started({ csi: { driver: 'd.io', volumeHandle: 'h' } });
  const contentType = 'application/merge-patch+json';
  const body = { spec: { claimRef: { uid: 'other' } } };
  await api.request({ method: 'PATCH', path: `${VOLUMES}/v`, contentType, body });
  await ask(api, '2Gi');
  assert.deepEqual(api.events, []);
});
